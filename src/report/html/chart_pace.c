/* SPDX-License-Identifier: Apache-2.0 */
/* The pace of a live job until its report: where it became slow, and which part was profiled. */
#include "report/html/chart.h"
#include "report/html/markup.h"
#include "report/html/plot.h"
#include "report/phrase.h"

#include <math.h>

#define WIDTH 1040.0
#define HEIGHT 250.0
#define MARK_WIDTH 76.0 /* of a mark's word */

static double longest_ms(const struct report *report)
{
	double most = MAX(report->pace.best_ms, report->pace.baseline_ms);

	for (size_t i = 0; i < report->pace.point_cnt; i++)
		most = MAX(most, report->pace.points[i].max_ms);
	return most;
}

static void draw_band(const struct plot *plot, const struct report_pace *pace)
{
	svg_path_begin(plot->out, "band");
	for (size_t i = 0; i < 2 * pace->point_cnt; i++) {
		bool back = i >= pace->point_cnt;
		const struct report_pace_point *p =
			&pace->points[back ? 2 * pace->point_cnt - 1 - i : i];

		svg_path_point(plot->out, i == 0, plot_x(plot, (double)p->step),
			       plot_y(plot, back ? p->min_ms : p->max_ms));
	}
	svg_path_end(plot->out, true, "shortest and longest");
}

static void draw_mean(const struct plot *plot, const struct report_pace *pace)
{
	svg_path_begin(plot->out, "line peer strong");
	for (size_t i = 0; i < pace->point_cnt; i++)
		svg_path_point(plot->out, i == 0, plot_x(plot, (double)pace->points[i].step),
			       plot_y(plot, pace->points[i].mean_ms));
	svg_path_end(plot->out, false, "mean");
}

/* A line across the picture at a step, with a word; nothing outside of it. */
static void draw_moment(const struct plot *plot, double step, const char *word, double text_y)
{
	double x = plot_x(plot, step);
	bool right = x > plot->left + plot->width / 2;

	if (step < plot->x.min || step > plot->x.max)
		return;
	svg_line(plot->out, "moment", x, plot->top, x, plot->top + plot->height);
	svg_text(plot->out, "name", right ? x - 5 : x + 5, text_y, right ? SVG_END : SVG_START,
		 word);
}

static void draw_level(const struct plot *plot, double ms, const char *word, bool right)
{
	double y = plot_y(plot, ms), end = plot->left + plot->width;

	if (!(ms > 0.0))
		return;
	svg_line(plot->out, "expected", plot->left, y, end, y);
	svg_text(plot->out, "tick", right ? end - 4 : plot->left + 4, y - 5,
		 right ? SVG_END : SVG_START, word);
}

/* A word that the next mark would cross is left to the tip. */
static bool has_room(const struct plot *plot, const struct report_pace *pace, size_t i)
{
	double x = plot_x(plot, pace->marks[i].step), next = WIDTH;

	if (i + 1 < pace->mark_cnt)
		next = MIN(next, plot_x(plot, pace->marks[i + 1].step));
	return x + MARK_WIDTH <= next;
}

static void draw_mark(const struct plot *plot, const struct report_pace *pace, size_t i)
{
	const struct report_pace_mark *mark = &pace->marks[i];
	double x = plot_x(plot, mark->step), y = plot->top - 8;
	struct str tip = { 0 };

	str_printf(&tip, "step %.0f: %s%s%s", mark->step, mark->word,
		   mark->text[0] != '\0' ? ", " : "", mark->text);
	svg_line(plot->out, mark->bad ? "moment" : "axis", x, y, x, plot->top + plot->height);
	svg_diamond(plot->out, mark->bad ? "dot bad" : "dot peer", x, y, 5,
		    markup_borrow(plot->out, &tip));
	str_done(&tip);
	if (has_room(plot, pace, i))
		svg_text(plot->out, mark->bad ? "bad" : "name", x + 8, y + 4, SVG_START,
			 mark->word);
}

static void draw_marks(const struct plot *plot, const struct report_pace *pace)
{
	for (size_t i = 0; i < pace->mark_cnt; i++) {
		if (pace->marks[i].step >= plot->x.min && pace->marks[i].step <= plot->x.max)
			draw_mark(plot, pace, i);
	}
}

void chart_pace(const struct report *report, struct str *out)
{
	const struct report_pace *pace = &report->pace;
	const struct report_trigger *trigger = &report->trigger;
	struct plot plot = {
		.out = out, .left = 60, .top = 34, .width = WIDTH - 80, .height = HEIGHT - 74
	};
	double most = longest_ms(report);

	if (pace->point_cnt < 2 || !(most > 0.0) || !isfinite(most))
		return;
	plot.x = scale_whole(
		(double)pace->points[0].step,
		(double)MAX(pace->points[pace->point_cnt - 1].step, pace->points[0].step + 1), 10);
	plot.y = scale_make(0.0, most, 4, true);
	figure_open(out, "Pace of the run");
	svg_open(out, WIDTH, HEIGHT, "pace", "Pace of the run",
		 "Time of an iteration over the steps of the run.");
	plot_axes(&plot, "step", "ms per iteration");
	draw_band(&plot, pace);
	draw_mean(&plot, pace);
	draw_level(&plot, pace->best_ms, "best pace", false);
	draw_level(&plot, pace->baseline_ms, "baseline", true);
	draw_marks(&plot, pace);
	if (trigger->present && trigger->since_step > 0)
		draw_moment(&plot, (double)trigger->since_step, "slow since", plot.top + 12);
	if (trigger->present && trigger->step > 0)
		draw_moment(&plot, (double)trigger->step, "profiled", plot.top + 28);
	svg_close(out);
	figure_close(out, "Mean of the recent iterations on the slowest rank; the band is from the "
			  "shortest to the longest of them.");
}
