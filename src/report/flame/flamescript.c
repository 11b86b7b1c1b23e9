/* SPDX-License-Identifier: Apache-2.0 */
#include "report/flame/flamescript.h"

/* A change of the text changes the hash: tests/cli/flame_test.py prints the new one. */
const char flamescript_hash[] = "XzUXcY17PKZdhmEj/SwyBHxrsSSdsy04bkgdGqYPzLo=";

/* clang-format off */
const char flamescript_text[] =
	"\n"
	"\"use strict\";\n"
	"for (const svg of document.querySelectorAll(\"svg\")) {\n"
	"const boxes = [...svg.querySelectorAll(\"g.box\")];\n"
	"if (boxes.length === 0) continue;\n"
	"const figure = svg.closest(\"figure\");\n"
	"const search = figure.querySelector(\"input\");\n"
	"const said = figure.querySelector(\"output\");\n"
	"const total = svg.viewBox.baseVal.width;\n"
	"const items = boxes.map((g, i) => ({g, i, x: +g.dataset.x, w: +g.dataset.w, r: +g.dataset.r,\n"
	"\tl: g.dataset.l, rect: g.firstChild, tip: g.querySelector(\"title\").textContent, up: null}));\n"
	"const last = [];\n"
	"for (const b of items) {\n"
	"\tconst up = b.r > 0 ? last[b.r - 1] : null;\n"
	"\tb.up = up || null;\n"
	"\tlast[b.r] = b;\n"
	"}\n"
	"let selected = null, zoomed = null;\n"
	"function fit(b, w) {\n"
	"\tlet text = b.g.querySelector(\"text\");\n"
	"\tconst room = Math.floor((w - 8) / 6.7);\n"
	"\tif (room < 8) { if (text) text.textContent = \"\"; return; }\n"
	"\tif (!text) {\n"
	"\t\ttext = document.createElementNS(\"http://www.w3.org/2000/svg\", \"text\");\n"
	"\t\ttext.setAttribute(\"class\", b.rect.classList.contains(\"on\") ? \"cell on\" : \"cell\");\n"
	"\t\ttext.setAttribute(\"y\", b.r * 20 + 13);\n"
	"\t\tb.g.appendChild(text);\n"
	"\t}\n"
	"\ttext.textContent = b.l.length > room ? b.l.slice(0, room - 1) + \"\\u2026\" : b.l;\n"
	"\ttext.setAttribute(\"x\", b.shown + 4);\n"
	"}\n"
	"function zoom(to) {\n"
	"\tzoomed = to;\n"
	"\tconst from = to ? to.x : 0, span = to ? to.w : total, scale = total / span;\n"
	"\tfor (const b of items) {\n"
	"\t\tconst around = to !== null && b.x <= to.x && b.x + b.w >= to.x + to.w && b.r <= to.r;\n"
	"\t\tconst left = around ? 0 : (b.x - from) * scale;\n"
	"\t\tconst width = around ? total : b.w * scale;\n"
	"\t\tconst visible = left > -0.01 && left + width < total + 0.01 && width >= 0.3 &&\n"
	"\t\t\t(to === null || around || b.r > to.r);\n"
	"\t\tb.g.style.display = visible ? \"\" : \"none\";\n"
	"\t\tb.hidden = !visible;\n"
	"\t\tb.shown = left;\n"
	"\t\tif (!visible) continue;\n"
	"\t\tb.rect.setAttribute(\"x\", left.toFixed(2));\n"
	"\t\tb.rect.setAttribute(\"width\", Math.max(width, 0.3).toFixed(2));\n"
	"\t\tb.rect.style.opacity = around && b !== to ? 0.5 : \"\";\n"
	"\t\tfit(b, width);\n"
	"\t}\n"
	"}\n"
	"function select(b, focus) {\n"
	"\tif (selected) { selected.g.setAttribute(\"tabindex\", \"-1\"); selected.g.classList.remove(\"sel\"); }\n"
	"\tselected = b;\n"
	"\tb.g.setAttribute(\"tabindex\", \"0\");\n"
	"\tb.g.classList.add(\"sel\");\n"
	"\tif (focus) b.g.focus({preventScroll: false});\n"
	"\tsaid.textContent = b.tip;\n"
	"}\n"
	"function near(b, step) {\n"
	"\tlet best = null;\n"
	"\tfor (const o of items) {\n"
	"\t\tif (o.r !== b.r || o.hidden || o === b || (o.x - b.x) * step <= 0) continue;\n"
	"\t\tif (best === null || Math.abs(o.x - b.x) < Math.abs(best.x - b.x)) best = o;\n"
	"\t}\n"
	"\treturn best;\n"
	"}\n"
	"function find(text) {\n"
	"\tconst wanted = text.trim().toLowerCase();\n"
	"\tlet sum = 0, count = 0;\n"
	"\tfor (const b of items) {\n"
	"\t\tb.hit = wanted !== \"\" && b.l.toLowerCase().includes(wanted);\n"
	"\t\tb.g.classList.toggle(\"hit\", b.hit);\n"
	"\t\tb.in = b.up !== null && (b.up.hit || b.up.in);\n"
	"\t\tif (b.hit) { count++; if (!b.in) sum += b.w; }\n"
	"\t}\n"
	"\tsaid.textContent = wanted === \"\" ? \"\" :\n"
	"\t\tcount + \" boxes, \" + (100 * sum / total).toFixed(1) + \" % of the width\";\n"
	"}\n"
	"for (const b of items) {\n"
	"\tb.hidden = false;\n"
	"\tb.shown = b.x;\n"
	"\tb.g.addEventListener(\"click\", () => { select(b, true); zoom(zoomed === b ? null : b); });\n"
	"\tb.g.addEventListener(\"mouseenter\", () => { said.textContent = b.tip; });\n"
	"}\n"
	"svg.addEventListener(\"keydown\", event => {\n"
	"\tif (!selected) return;\n"
	"\tlet to = null;\n"
	"\tswitch (event.key) {\n"
	"\tcase \"ArrowUp\": to = selected.up; break;\n"
	"\tcase \"ArrowDown\":\n"
	"\t\tto = items.find(o => o.up === selected && !o.hidden) || null; break;\n"
	"\tcase \"ArrowLeft\": to = near(selected, -1); break;\n"
	"\tcase \"ArrowRight\": to = near(selected, 1); break;\n"
	"\tcase \"Home\": to = items[0]; break;\n"
	"\tcase \"Enter\": case \" \": zoom(zoomed === selected ? null : selected); to = selected; break;\n"
	"\tcase \"Escape\": zoom(null); to = selected; break;\n"
	"\tdefault: return;\n"
	"\t}\n"
	"\tevent.preventDefault();\n"
	"\tif (to) select(to, true);\n"
	"});\n"
	"search.addEventListener(\"input\", () => find(search.value));\n"
	"search.addEventListener(\"keydown\", event => {\n"
	"\tif (event.key === \"Escape\") { search.value = \"\"; find(\"\"); svg.focus(); }\n"
	"\tif (event.key === \"Enter\") {\n"
	"\t\tconst hits = items.filter(b => b.hit && !b.hidden);\n"
	"\t\tconst to = hits[(hits.indexOf(selected) + 1) % hits.length];\n"
	"\t\tif (to) select(to, false);\n"
	"\t}\n"
	"});\n"
	"document.addEventListener(\"keydown\", event => {\n"
	"\tif (event.key === \"/\" && document.activeElement !== search) {\n"
	"\t\tevent.preventDefault();\n"
	"\t\tsearch.focus();\n"
	"\t}\n"
	"});\n"
	"svg.setAttribute(\"role\", \"tree\");\n"
	"items[0].g.setAttribute(\"tabindex\", \"0\");\n"
	"items[0].g.addEventListener(\"focus\", () => { if (!selected) select(items[0], false); });\n"
	"figure.classList.add(\"live\");\n"
	"}\n";
/* clang-format on */

const char flamescript_style[] =
	".find{display:none}figure.live .find{display:block}.find output{margin-left:14px}"
	"g.box{cursor:pointer;outline:none}g.box.sel rect{stroke:var(--ink);stroke-width:2}"
	"g.box.hit rect{fill:var(--bad);fill-opacity:.75;stroke:var(--bad)}\n";

void flamescript_controls(struct str *out)
{
	str_append(out, "<style>");
	str_append(out, flamescript_style);
	str_append(out, "</style>\n");
	flamescript_fields(out);
}

void flamescript_fields(struct str *out)
{
	str_append(out,
		   "<p class=\"find\"><label>Search <input type=\"search\" "
		   "spellcheck=\"false\"></label> <output aria-live=\"polite\"></output></p>\n");
}

void flamescript_append(struct str *out)
{
	str_append(out, "<script>");
	str_append(out, flamescript_text);
	str_append(out, "</script>\n");
}
