/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/memory/historydiff.h"

#include "base/text/clean.h"
#include "cmd/memory/storedwindow.h"
#include "compare/compare.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define CHANGES_SHOWN 5u

/* One job: the window that is compared, and its fingerprints. */
struct side {
	char label[64];
	uint64_t number, sick; /* sick: the latest with a finding */
	bool found;
	struct load_result loaded;
	struct err *err;
};

/* The window of a healthy report, or of none, such as the early one; then the latest. */
static int take_window(void *arg, uint64_t number, size_t fingerprint_cnt)
{
	struct side *side = arg;

	if (fingerprint_cnt == 0 || (side->found && number == side->sick))
		return 0;
	side->number = number;
	side->found = true;
	return 0;
}

static int take_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct side *side = arg;

	if (finding_cnt > 0)
		side->sick = report->number;
	return 0;
}

static int load_side(struct store *store, const char *key, struct side *side)
{
	int ret = store_list_reports(store, key, take_report, side, side->err);

	if (ret == 0)
		ret = store_list_windows(store, key, take_window, side, side->err);
	if (ret < 0 || !side->found)
		return ret;
	(void)snprintf(side->label, sizeof(side->label), "%s/%" PRIu64, key, side->number);
	return storedwindow_read(store, key, side->number, side->label, &side->loaded, side->err);
}

static void print_change(const struct change *change)
{
	struct str text = { 0 };

	str_printf(&text, "    %+.1f ms  ", change->delta_ms);
	clean_append_short(&text, change->name, 60);
	if (change->kind == CHANGE_APPEARED)
		str_append(&text, " (new)");
	else if (change->kind == CHANGE_VANISHED)
		str_append(&text, " (gone)");
	if (change->stack_cnt > 0) {
		str_append(&text, ", called by ");
		clean_append_short(&text, change->stack[change->stack_cnt - 1], 60);
	}
	if (!change->significant)
		str_append(&text, "; possibly by chance");
	(void)puts(str_borrow(&text));
	str_done(&text);
}

static int compare_sides(const struct side sides[static 2], struct err *err)
{
	const struct compare_options options = compare_defaults();
	struct compare_run runs[2];
	struct comparison comparison;
	int ret;

	for (size_t i = 0; i < 2; i++)
		runs[i] = (struct compare_run){
			.fps = (const struct fingerprint *const *)sides[i].loaded.fps,
			.cnt = sides[i].loaded.cnt,
			.label = sides[i].label,
		};
	ret = compare_runs(&runs[0], &runs[1], &options, &comparison, err);
	if (ret < 0)
		return ret;
	(void)printf("  From %s to %s, per iteration: %.1f -> %.1f ms\n", sides[0].label,
		     sides[1].label, comparison.before.iteration_ms, comparison.after.iteration_ms);
	for (size_t i = 0; i < MIN(comparison.change_cnt, (size_t)CHANGES_SHOWN); i++)
		print_change(&comparison.changes[i]);
	comparison_done(&comparison);
	return 0;
}

int historydiff_print(struct store *store, const char *before, const char *after, struct err *err)
{
	struct side sides[2] = { { .err = err }, { .err = err } };
	const char *const keys[] = { before, after };
	int ret = 0;

	for (size_t i = 0; i < 2 && ret == 0; i++)
		ret = load_side(store, keys[i], &sides[i]);
	if (ret == 0 && sides[0].loaded.cnt > 0 && sides[1].loaded.cnt > 0)
		ret = compare_sides(sides, err);
	else if (ret == 0)
		(void)printf("  Not explained: the store has no fingerprints of %s\n",
			     sides[0].loaded.cnt == 0 ? before : after);
	load_done(&sides[0].loaded);
	load_done(&sides[1].loaded);
	return ret;
}
