/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hub/analysis.h"

#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"
#include "localize/localize.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Memory of one analysis, freed once its report is made. */
struct analysis {
	struct fingerprint *fps;
	const struct fingerprint **pointers;
	size_t cnt;
	struct fingerprint *past;
	const struct fingerprint **past_pointers;
	size_t past_cnt;
	struct arena arena; /* texts of the failures */
	VEC(struct report_failure) failures;
};

static int add_failure(struct analysis *analysis, const char *source, const char *why)
{
	struct report_failure failure = { .source = source,
					  .why = arena_strdup(&analysis->arena, why) };

	return failure.source == NULL || failure.why == NULL
		       ? -ENOMEM
		       : vec_push(&analysis->failures, failure);
}

static int read_one(struct analysis *analysis, const char *path)
{
	struct err err;
	int ret = fingerprint_read(path, &analysis->fps[analysis->cnt], &err);

	if (ret == -ENOMEM)
		return ret;
	if (ret < 0)
		return add_failure(analysis, path, err.text);
	analysis->pointers[analysis->cnt] = &analysis->fps[analysis->cnt];
	analysis->cnt++;
	return 0;
}

/* What can't be read is left out: a slowdown can be localized without a past. */
static int load_past(struct analysis *analysis, const struct analysis_input *input)
{
	struct err err;

	analysis->past = calloc(input->past_cnt + 1, sizeof(*analysis->past));
	analysis->past_pointers = calloc(input->past_cnt + 1, sizeof(*analysis->past_pointers));
	if (analysis->past == NULL || analysis->past_pointers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < input->past_cnt; i++) {
		struct fingerprint *fp = &analysis->past[analysis->past_cnt];

		if (fingerprint_read(input->past_paths[i], fp, &err) < 0)
			continue;
		analysis->past_pointers[analysis->past_cnt++] = fp;
	}
	return 0;
}

static int load(struct analysis *analysis, const struct analysis_input *input)
{
	int ret = 0;

	analysis->fps = calloc(input->path_cnt + 1, sizeof(*analysis->fps));
	analysis->pointers = calloc(input->path_cnt + 1, sizeof(*analysis->pointers));
	if (analysis->fps == NULL || analysis->pointers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < input->path_cnt && ret == 0; i++)
		ret = read_one(analysis, input->paths[i]);
	for (size_t i = 0; i < input->absence_cnt && ret == 0; i++)
		ret = add_failure(
			analysis,
			arena_printf(&analysis->arena, "rank %d", input->absences[i].rank),
			input->absences[i].why);
	return ret == 0 ? load_past(analysis, input) : ret;
}

static int run(struct analysis *analysis, const struct analysis_input *input,
	       const struct run_options *options, struct report *ret, struct err *err)
{
	struct localize_options how = localize_defaults();

	if (analysis->cnt == 0)
		return err_set(err, ENODATA, "%s",
			       analysis->failures.cnt > 0 ? analysis->failures.data[0].why
							  : "no fingerprint");
	if (options->min_gain_pct >= 0)
		how.min_gain_pct = options->min_gain_pct;
	how.rank_source = "the job's environment";
	how.trigger = input->trigger;
	how.workers_expected = (int)(input->path_cnt + input->absence_cnt);
	how.failures = analysis->failures.data;
	how.failure_cnt = analysis->failures.cnt;
	how.past = analysis->past_pointers;
	how.past_cnt = analysis->past_cnt;
	how.notes = &input->note;
	how.note_cnt = input->note != NULL;
	return localize(analysis->pointers, analysis->cnt, &how, ret, err);
}

int analysis_run(const struct analysis_input *input, const struct run_options *options,
		 struct report *ret, struct err *err)
{
	struct analysis analysis = { 0 };
	int r;

	arena_init(&analysis.arena);
	r = load(&analysis, input);
	if (r == 0)
		r = run(&analysis, input, options, ret, err);
	else
		(void)err_set(err, -r, "out of memory");
	for (size_t i = 0; i < analysis.cnt; i++)
		fingerprint_done(&analysis.fps[i]);
	for (size_t i = 0; i < analysis.past_cnt; i++)
		fingerprint_done(&analysis.past[i]);
	free(analysis.past);
	free(analysis.past_pointers);
	free(analysis.fps);
	free(analysis.pointers);
	vec_done(&analysis.failures);
	arena_done(&analysis.arena);
	return r;
}
