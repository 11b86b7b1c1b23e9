/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/timeline/timeline_traces.h"

#include "center/anysize.h"
#include "cmd/jobfiles/oneset.h"
#include "cmd/load.h"
#include "cmd/runfolder.h"
#include "cmd/timeline/timeline_files.h"
#include "cmd/timeline/timeline_output.h"
#include "read/reader.h"
#include "report/timeline/tracepicture.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

/* --- what is drawn --- */

static bool has_recorders(const char *folder)
{
	path_list flights = { 0 };
	char *word = (char *)(uintptr_t)folder;
	struct err err = { "" };
	bool ret = runfolder_is(folder) || timeline_list_flights(&word, 1, &flights, &err) == 0;

	path_list_done(&flights);
	return ret;
}

/* By its name or its first bytes: the reader of recorders reports what is wrong with one. */
static bool is_recorder(const char *path)
{
	const struct reader *named = reader_of_name(path);

	return (named != NULL && named->content == CONTENT_FLIGHT_LOG) ||
	       reader_of(path)->content == CONTENT_FLIGHT_LOG;
}

static enum timeline_material material_of(const char *word)
{
	char resolved[PATH_MAX];
	const char *path = runfolder_resolve(word, resolved);

	if (timeline_is_folder(path))
		return has_recorders(path) ? TIMELINE_RECORDERS : TIMELINE_TRACES;
	return is_recorder(path) ? TIMELINE_RECORDERS : TIMELINE_TRACES;
}

enum timeline_material timeline_material_of(char *const *words, int cnt)
{
	enum timeline_material ret = cnt > 0 ? material_of(words[0]) : TIMELINE_RECORDERS;

	for (int i = 1; i < cnt; i++) {
		if (material_of(words[i]) != ret)
			return TIMELINE_MIXED;
	}
	return ret;
}

/* --- the traces --- */

/* The fingerprints of all traces, and what is drawn of them. */
struct traces {
	struct load_result loaded;
	struct report report;
	bool reported;
	const struct fingerprint **shown;
	struct tracepicture_rank *ranks;
	struct timeline_rank *results;
	size_t cnt;
	const struct timeline_request *request;
	struct err err;
};

static void traces_done(struct traces *t)
{
	for (size_t i = 0; i < t->cnt && t->ranks != NULL; i++)
		free(t->ranks[i].events);
	free(t->shown);
	free(t->ranks);
	free(t->results);
	if (t->reported)
		report_done(&t->report);
	load_done(&t->loaded);
}

/* Fingerprints have no events to draw. */
static int refuse_fingerprints(const path_list *paths, struct err *err)
{
	vec_foreach(path, paths) {
		if (reader_of(*path)->content == CONTENT_FINGERPRINT)
			return err_set(
				err, EINVAL,
				"%s: expected a trace, found a fingerprint: it has no events "
				"to draw; give the trace that it was made of",
				*path);
	}
	return 0;
}

/* Keeps the files of one window of one job. */
static int take_one_job(struct traces *t)
{
	struct oneset oneset = { 0 };
	struct str why = { 0 };
	int error = oneset_take(t->loaded.fps, &t->loaded.cnt, &oneset, &why);

	vec_foreach(note, &oneset.notes)
		(void)fprintf(stderr, "perftracker: %s\n", *note);
	if (error == -EINVAL)
		(void)cmd_fail("%s", str_borrow(&why));
	if (error < 0)
		error = err_set(&t->err, -error, "%s",
				error == -EINVAL ? "the inputs are no traces of one job"
						 : "out of memory");
	str_done(&why);
	oneset_done(&oneset);
	return error;
}

static int find_traces(char *const *words, int cnt, path_list *ret, struct err *err)
{
	struct err why = { "" };
	int error = inputs_expand(words, (size_t)cnt, ret, &why);

	if (error == -ENOENT)
		return err_set(err, ENOENT,
			       "%s; nor flight recorders, which 'perftracker run -o DIR' saves in "
			       "DIR/flight when a training process ends",
			       why.text);
	return error < 0 ? err_set(err, -error, "%s", why.text) : 0;
}

static int load(struct traces *t, char *const *words, int cnt)
{
	struct load_options options = load_defaults();
	path_list paths = { 0 };
	int error = find_traces(words, cnt, &paths, &t->err);

	if (error == 0)
		error = refuse_fingerprints(&paths, &t->err);
	if (error == 0)
		error = load_paths(&paths, &options, &t->loaded);
	vec_foreach(failure, &t->loaded.failures)
		(void)fprintf(stderr, "perftracker: left out: %s\n", failure->why.text);
	if (error == 0 && t->loaded.cnt == 0)
		error = err_set(&t->err, ENOENT, "none of %zu file%s could be used", paths.cnt,
				plural(paths.cnt));
	path_list_done(&paths);
	return error == 0 ? take_one_job(t) : error;
}

/* Without a report the picture has no marks. */
static void localize_all(struct traces *t)
{
	struct localize_options options = localize_defaults();
	struct err err = { "" };

	t->reported =
		anysize_localize((const struct fingerprint *const *)t->loaded.fps, t->loaded.cnt,
				 &options, ANYSIZE_BLAME_MAX, &t->report, &err) == 0;
	if (!t->reported)
		(void)fprintf(stderr, "perftracker: no findings are marked: %s\n", err.text);
}

/* --- one rank --- */

static uint64_t collective_key(const struct fp_collective *c)
{
	return c->name * UINT64_C(0x9e3779b97f4a7c15) ^ (c->group_known ? c->group : 0);
}

static int fill_rank(const struct fingerprint *fp, struct tracepicture_rank *ret)
{
	int64_t start_ns = fp->window_start_wall_ns;

	*ret = (struct tracepicture_rank){ .rank = fp->rank,
					   .pid = fp->pid,
					   .host = fp->host,
					   .from_ns = start_ns - fp->warmup_ns,
					   .end_ns = start_ns + fp->window_ns };
	ret->events = calloc(fp->collective_cnt + 1, sizeof(*ret->events));
	if (ret->events == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < fp->collective_cnt; i++) {
		const struct fp_collective *c = &fp->collectives[i];

		ret->events[ret->event_cnt++] =
			(struct instance_event){ .start_ns = start_ns + c->start_ns,
						 .end_ns = start_ns + c->start_ns + c->dur_ns,
						 .key = collective_key(c),
						 .seq = c->group_known ? c->seq : -1 };
	}
	return 0;
}

static bool is_wanted(const rankset_vec *ranks, int rank)
{
	for (size_t i = 0; i < ranks->cnt; i++) {
		if (ranks->data[i] == rank)
			return true;
	}
	return ranks->cnt == 0;
}

static int by_rank(const void *a, const void *b)
{
	const struct fingerprint *const *x = a, *const *y = b;

	return ((*x)->rank > (*y)->rank) - ((*x)->rank < (*y)->rank);
}

static int choose_ranks(struct traces *t)
{
	size_t all = t->loaded.cnt;

	t->shown = calloc(all + 1, sizeof(*t->shown));
	t->ranks = calloc(all + 1, sizeof(*t->ranks));
	t->results = calloc(all + 1, sizeof(*t->results));
	if (t->shown == NULL || t->ranks == NULL || t->results == NULL)
		return -ENOMEM;
	qsort(t->loaded.fps, all, sizeof(*t->loaded.fps), by_rank);
	for (size_t i = 0; i < all; i++) {
		if (!is_wanted(t->request->ranks, t->loaded.fps[i]->rank))
			continue;
		t->shown[t->cnt] = t->loaded.fps[i];
		if (fill_rank(t->loaded.fps[i], &t->ranks[t->cnt]) < 0)
			return -ENOMEM;
		t->cnt++;
	}
	return t->cnt > 0 ? 0
			  : err_set(&t->err, ENOENT,
				    "--ranks: none of these ranks is among the inputs");
}

/* --- the picture --- */

static int read_trace(void *arg, size_t idx, struct trace *ret, struct err *err)
{
	const struct traces *t = arg;

	return reader_read(t->shown[idx]->source, NULL, ret, err);
}

static int draw_picture(void *arg, struct slice_sink *sink, FILE *out)
{
	struct traces *t = arg;
	const struct tracepicture_options options = {
		.last_ns = sink != NULL ? 0 : (int64_t)(t->request->last_s * NSEC_PER_SEC),
		.sink = sink,
		.wall_only = t->request->wall_only,
		.report = t->reported ? &t->report : NULL,
		.read = read_trace,
		.arg = t,
	};

	return tracepicture_write(t->ranks, t->cnt, &options, out, t->results, &t->err);
}

/* Those of the report that is made of the traces. For free(); NULL: out of memory. */
static struct timebins_finding *own_findings(const struct traces *t, size_t *ret_cnt)
{
	size_t cnt = t->reported ? t->report.finding_cnt : 0;
	struct timebins_finding *ret = calloc(cnt + 1, sizeof(*ret));

	for (size_t i = 0; i < cnt && ret != NULL; i++) {
		const struct finding *finding = &t->report.findings[i];

		ret[i] = (struct timebins_finding){ finding->id, finding->name, finding->ranks,
						    finding->rank_cnt, finding->all_workers };
	}
	*ret_cnt = ret != NULL ? cnt : 0;
	return ret;
}

static int write_part(struct traces *t, FILE *out)
{
	struct timeline_part part = *t->request->part;
	_cleanup_free_ struct timebins_finding *own = NULL;
	struct timeline_subject subject = {
		.cnt = t->cnt, .results = t->results, .draw = draw_picture, .arg = t
	};
	int ret;

	subject.ranks = calloc(t->cnt + 1, sizeof(*subject.ranks));
	for (size_t i = 0; i < t->cnt && subject.ranks != NULL; i++)
		subject.ranks[i] = (struct timebins_rank){ .rank = t->ranks[i].rank,
							   .host = t->ranks[i].host };
	if (part.finding_cnt == 0)
		part.findings = own = own_findings(t, &part.finding_cnt);
	ret = subject.ranks != NULL ? timeline_bins_write(&part, &subject, out) : -ENOMEM;
	free(subject.ranks);
	return ret;
}

static int write_picture(void *arg, FILE *out)
{
	struct traces *t = arg;

	return t->request->part != NULL ? write_part(t, out) : draw_picture(t, NULL, out);
}

/* What is not in the picture, on standard error. */
static void print_notes(const struct traces *t)
{
	size_t by_wall = 0, omitted = 0;

	for (size_t i = 0; i < t->cnt; i++) {
		by_wall += !t->request->wall_only && t->results[i].clock.source == ALIGN_WALL_CLOCK;
		omitted += t->results[i].omitted_cnt;
	}
	if (by_wall > 0)
		(void)fprintf(stderr,
			      "perftracker: %zu rank%s with fewer than three collectives in common "
			      "with others: placed by the clocks of the traces\n",
			      by_wall, plural(by_wall));
	if (omitted > 0)
		(void)fprintf(stderr,
			      "perftracker: %zu slice%s left out, which overlap too many others\n",
			      omitted, plural(omitted));
}

int timeline_traces(const struct timeline_request *request, char *const *words, int cnt)
{
	struct traces t = { .request = request };
	int error = load(&t, words, cnt), status = EXIT_DONE;

	if (error == 0) {
		localize_all(&t);
		error = choose_ranks(&t);
	}
	if (error == 0)
		error = timeline_output(request->output, request->compress, write_picture, &t);
	if (error < 0 && t.err.text[0] != '\0')
		status = cmd_fail("%s", t.err.text);
	else if (error < 0)
		status = cmd_fail("%s: cannot write the trace: %s", request->output,
				  strerror(-error));
	if (error == 0) {
		print_notes(&t);
		if (strcmp(request->output, "-") != 0)
			(void)printf("%s\n", request->output);
	}
	traces_done(&t);
	return status;
}
