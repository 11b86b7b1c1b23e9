/* SPDX-License-Identifier: Apache-2.0 */
/* One iteration of some ranks, one below the other. */
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/html/plot.h"
#include "report/phrase.h"

#include <math.h>
#include <stdio.h>

#define WIDTH 1040.0
#define LEFT 150.0
#define TOP 10.0
#define LANE_HEIGHT 74.0
#define WORK_HEIGHT 34.0 /* what ran between collectives */
#define MEET_HEIGHT 16.0
#define BEYOND_FRAC 0.02 /* of the iteration is drawn before and after it */

struct lanes {
	const struct report_lanes *of;
	struct str *out;
	struct scale scale;
};

static double x_of(const struct lanes *l, double ms)
{
	double least = -BEYOND_FRAC * l->of->length_ms, most = (1 + BEYOND_FRAC) * l->of->length_ms;

	ms = MIN(MAX(ms, least), most);
	return LEFT + (WIDTH - LEFT - 20) * (ms - least) / (most - least);
}

/* Heights are shares: in which order it ran is not known. */
static void draw_stretch(const struct lanes *l, const struct report_stretch *s, double y)
{
	static const enum event_class order[] = { CLASS_IDLE, CLASS_HOST, CLASS_COMM, CLASS_MEMORY,
						  CLASS_COMPUTE };
	double x = x_of(l, s->begin_ms), width = x_of(l, s->end_ms) - x, at = y + WORK_HEIGHT;

	if (!(width > 0.05))
		return;
	for (size_t i = 0; i < ARRAY_SIZE(order); i++) {
		double frac = s->class_frac[order[i]], height;
		_cleanup_(str_done) struct str tip = { 0 };

		if (!isfinite(frac) || frac < 0.01)
			continue;
		height = MIN(WORK_HEIGHT * frac, at - y);
		at -= height;
		str_printf(&tip, "%s ", event_class_name(order[i]));
		phrase_ms(&tip, frac * (s->end_ms - s->begin_ms));
		str_append(&tip, " of ");
		phrase_ms(&tip, s->end_ms - s->begin_ms);
		svg_rect(l->out, event_class_name(order[i]),
			 (struct svg_box){ x, at, width, MAX(height, 0.0) },
			 markup_borrow(l->out, &tip));
	}
}

static void draw_meeting(const struct lanes *l, const struct report_meeting *m, double y)
{
	double x = x_of(l, m->begin_ms), end = x_of(l, m->end_ms);
	double waited = MIN(MAX(m->wait_ms, 0.0), m->end_ms - m->begin_ms);
	double middle = x_of(l, m->begin_ms + waited);
	_cleanup_(str_done) struct str tip = { 0 };

	if (!(end > x) || m->end_ms < -BEYOND_FRAC * l->of->length_ms)
		return;
	str_append(&tip, "in collectives for ");
	phrase_ms(&tip, m->end_ms - m->begin_ms);
	str_append(&tip, ", of it waiting ");
	phrase_ms(&tip, waited);
	if (middle - x > 0.5)
		svg_rect(l->out, "waiting", (struct svg_box){ x, y, middle - x, MEET_HEIGHT },
			 markup_borrow(l->out, &tip));
	svg_rect(l->out, "comm", (struct svg_box){ middle, y, MAX(end - middle, 1.2), MEET_HEIGHT },
		 markup_borrow(l->out, &tip));
}

static void draw_lane(const struct lanes *l, size_t i)
{
	const struct report_lane *lane = &l->of->lanes[i];
	double y = TOP + LANE_HEIGHT * (double)i;
	char label[32];

	str_printf(l->out, "<g id=\"lane-%d\">", lane->rank);
	(void)snprintf(label, sizeof(label), "%srank %d", i == 0 ? "\xe2\x97\x86 " : "",
		       lane->rank);
	svg_text(l->out, i == 0 ? "rank bad" : "rank", LEFT - 10, y + 16, SVG_END, label);
	svg_text(l->out, "tick", LEFT - 10, y + 32, SVG_END, lane->role);
	svg_text(l->out, "tick", LEFT - 10, y + WORK_HEIGHT + 16, SVG_END, "collectives");
	for (size_t s = 0; s < lane->stretch_cnt; s++)
		draw_stretch(l, &lane->stretches[s], y);
	for (size_t m = 0; m < lane->meeting_cnt; m++)
		draw_meeting(l, &lane->meetings[m], y + WORK_HEIGHT + 4);
	str_append(l->out, "</g>\n");
}

static void draw_axis(const struct lanes *l)
{
	double bottom = TOP + LANE_HEIGHT * (double)l->of->lane_cnt;

	double cnt = floor(l->of->length_ms * 1.0001 / l->scale.step);

	for (int i = 0; i <= (int)cnt; i++) {
		double ms = i * l->scale.step;
		_cleanup_(str_done) struct str label = { 0 };

		str_printf(&label, "%g ms", ms);
		svg_line(l->out, "grid", x_of(l, ms), TOP, x_of(l, ms), bottom);
		svg_text(l->out, "tick", x_of(l, ms), bottom + 14, SVG_MIDDLE,
			 markup_borrow(l->out, &label));
	}
}

static void append_note(struct str *note, const struct report_lanes *lanes)
{
	str_append(note,
		   "Upper bars: what held the critical path between two collectives, heights "
		   "are shares; the order within a bar was not recorded. Blank: not recorded. "
		   "Lower bars: inside collectives, pale while waiting for the last rank. ");
	str_append(note, lanes->aligned ? "Clocks are aligned by the ends of collectives."
					: "Clocks are not aligned: each rank begins at 0.");
}

static bool is_drawn(const struct report_lanes *lanes)
{
	return lanes->lane_cnt >= 2 && lanes->length_ms > 0.0 && isfinite(lanes->length_ms);
}

bool chart_has_lane(const struct report *report, int rank)
{
	for (size_t i = 0; is_drawn(&report->lanes) && i < report->lanes.lane_cnt; i++) {
		if (report->lanes.lanes[i].rank == rank)
			return true;
	}
	return false;
}

void chart_lanes(const struct report *report, struct str *out)
{
	struct lanes l = { .of = &report->lanes, .out = out };
	_cleanup_(str_done) struct str title = { 0 }, note = { 0 };

	if (!is_drawn(l.of))
		return;
	l.scale = scale_make(0.0, l.of->length_ms, 8, true);
	str_append(&title, "One iteration, rank by rank");
	if (l.of->step_known)
		str_printf(&title, ": step %lld", (long long)l.of->step);
	figure_open(out, markup_borrow(out, &title));
	figure_legend(out);
	svg_open(out, WIDTH, TOP + LANE_HEIGHT * (double)l.of->lane_cnt + 22, "lanes",
		 "One iteration of the culprit and of other ranks",
		 "For each rank what ran between collectives, and when it was inside of them.");
	draw_axis(&l);
	for (size_t i = 0; i < l.of->lane_cnt; i++)
		draw_lane(&l, i);
	svg_close(out);
	append_note(&note, l.of);
	figure_close(out, markup_borrow(out, &note));
}
