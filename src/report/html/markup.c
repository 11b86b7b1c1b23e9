/* SPDX-License-Identifier: Apache-2.0 */
#include "report/html/markup.h"

#include "base/text/clean.h"

static void escape(struct str *out, const char *text)
{
	for (const char *p = text; *p != '\0'; p++) {
		switch (*p) {
		case '&':
			str_append(out, "&amp;");
			break;
		case '<':
			str_append(out, "&lt;");
			break;
		case '>':
			str_append(out, "&gt;");
			break;
		case '"':
			str_append(out, "&quot;");
			break;
		case '\'':
			str_append(out, "&#39;");
			break;
		default:
			str_append_char(out, *p);
		}
	}
}

void markup_take(struct str *out, struct str *phrase)
{
	if (str_error(phrase) < 0)
		out->error = str_error(phrase);
	escape(out, str_borrow(phrase));
	str_done(phrase);
}

const char *markup_borrow(struct str *out, const struct str *phrase)
{
	if (str_error(phrase) < 0)
		out->error = str_error(phrase);
	return str_borrow(phrase);
}

void markup_text(struct str *out, const char *text)
{
	struct str clean = { 0 };

	clean_append(&clean, text);
	markup_take(out, &clean);
}

void markup_text_short(struct str *out, const char *text, size_t max_cells)
{
	struct str clean = { 0 };

	clean_append_short(&clean, text, max_cells);
	markup_take(out, &clean);
}

void svg_open(struct str *out, double width, double height, const char *id, const char *title,
	      const char *desc)
{
	str_printf(out,
		   "<svg viewBox=\"0 0 %.0f %.0f\" role=\"img\" aria-labelledby=\"%s-t %s-d\">"
		   "<title id=\"%s-t\">",
		   width, height, id, id, id);
	markup_text(out, title);
	str_printf(out, "</title><desc id=\"%s-d\">", id);
	markup_text(out, desc);
	str_append(out, "</desc>\n");
}

void svg_close(struct str *out)
{
	str_append(out, "</svg>\n");
}

/* Ends an element that was opened up to its last attribute. */
static void end_shape(struct str *out, const char *name, const char *tip)
{
	if (tip == NULL) {
		str_append(out, "/>\n");
		return;
	}
	str_append(out, "><title>");
	markup_text(out, tip);
	str_printf(out, "</title></%s>\n", name);
}

void svg_rect(struct str *out, const char *class, struct svg_box box, const char *tip)
{
	str_printf(out, "<rect class=\"%s\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"",
		   class, box.x, box.y, box.width, box.height);
	end_shape(out, "rect", tip);
}

void svg_circle(struct str *out, const char *class, double x, double y, double r, const char *tip)
{
	str_printf(out, "<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"%.1f\"", class, x, y, r);
	end_shape(out, "circle", tip);
}

void svg_diamond(struct str *out, const char *class, double x, double y, double r, const char *tip)
{
	str_printf(out, "<path class=\"%s\" d=\"M%.1f %.1fl%.1f %.1f %.1f %.1f %.1f %.1fz\"", class,
		   x, y - r, r, r, -r, r, -r, -r);
	end_shape(out, "path", tip);
}

void svg_line(struct str *out, const char *class, double x1, double y1, double x2, double y2)
{
	str_printf(out, "<line class=\"%s\" x1=\"%.1f\" y1=\"%.1f\" x2=\"%.1f\" y2=\"%.1f\"/>\n",
		   class, x1, y1, x2, y2);
}

void svg_text(struct str *out, const char *class, double x, double y, enum svg_anchor anchor,
	      const char *text)
{
	static const char *const anchors[] = { "start", "middle", "end" };

	str_printf(out, "<text class=\"%s\" x=\"%.1f\" y=\"%.1f\" text-anchor=\"%s\">", class, x, y,
		   anchors[anchor]);
	markup_text(out, text);
	str_append(out, "</text>\n");
}

void svg_path_begin(struct str *out, const char *class)
{
	str_printf(out, "<path class=\"%s\" d=\"", class);
}

void svg_path_point(struct str *out, bool first, double x, double y)
{
	str_printf(out, "%s%.1f %.1f", first ? "M" : "L", x, y);
}

void svg_path_end(struct str *out, bool closed, const char *tip)
{
	str_append(out, closed ? "z\"" : "\"");
	end_shape(out, "path", tip);
}
