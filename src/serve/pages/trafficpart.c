/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/pages/trafficpart.h"

#include "report/html/markup.h"
#include "report/phrase.h"
#include "serve/pages/pageparts.h"

#include <math.h>

#define ROWS_MAX 20u

static double number_of(const json_t *object, const char *key)
{
	const json_t *value = json_object_get(object, key);

	return json_is_number(value) ? json_number_value(value) : (double)NAN;
}

static void put_number(struct str *out, const char *name, double value)
{
	str_printf(out, "<td class=\"n\" data-name=\"%s\">", name);
	if (isfinite(value))
		str_printf(out, "%.4g", value);
	else
		str_append(out, "not known");
	str_append(out, "</td>");
}

static void put_ms(struct str *out, const char *name, double ms)
{
	struct str text = { 0 };

	str_printf(out, "<td class=\"n\" data-name=\"%s\">", name);
	if (isfinite(ms))
		phrase_ms(&text, ms);
	else
		str_append(&text, "not known");
	markup_take(out, &text);
	str_append(out, "</td>");
}

static void put_row(struct str *out, const json_t *one)
{
	str_append(out, "<tr><td class=\"name\">");
	markup_text_short(out, json_string_value(json_object_get(one, "operation")), 60);
	str_append(out, "</td>");
	put_number(out, "Ranks", number_of(one, "group_size"));
	put_number(out, "Payload, MB", number_of(one, "bytes") / 1e6);
	put_number(out, "Per iteration", number_of(one, "per_iteration"));
	put_ms(out, "Time per iteration", number_of(one, "ms_per_iteration"));
	put_number(out, "Bus GB/s", number_of(one, "bus_gbytes_per_s"));
	str_append(out, "</tr>\n");
}

void trafficpart_put(struct str *out, const json_t *report, const char *id)
{
	const json_t *list = json_object_get(report, "collectives");
	size_t cnt = json_array_size(list);

	if (cnt == 0)
		return;
	str_append(out, "<h2>Collective traffic</h2>\n<p class=\"note\">In the window of <a "
			"href=\"/reports/");
	pageparts_url(out, id);
	str_append(
		out,
		"\">the latest report</a>.</p>\n<div class=\"scroll\" tabindex=\"0\" role=\"region\" "
		"aria-label=\"Collective traffic\"><table class=\"findings\"><thead><tr><th "
		"scope=\"col\">Operation</th><th scope=\"col\" class=\"n\">Ranks</th><th "
		"scope=\"col\" class=\"n\">Payload, MB</th><th scope=\"col\" class=\"n\">Per iteration</th><th "
		"scope=\"col\" class=\"n\">Time per iteration</th><th scope=\"col\" class=\"n\">Bus "
		"GB/s</th></tr></thead><tbody>\n");
	for (size_t i = 0; i < MIN(cnt, (size_t)ROWS_MAX); i++)
		put_row(out, json_array_get(list, i));
	str_append(out, "</tbody></table></div>\n");
	if (cnt > ROWS_MAX)
		str_printf(out, "<p class=\"note\">%zu more in the report</p>\n", cnt - ROWS_MAX);
}
