/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/jobfiles/oneset.h"

#include "cmd/jobfiles/jobfiles.h"
#include "cmd/jobfiles/ranknames.h"
#include "model/rankset.h"
#include "read/reader.h"

#include <errno.h>
#include <string.h>
#include <time.h>

#define LISTED_MAX 8				     /* sets, or copies, that are listed */
#define WALL_CLOCK_NS (INT64_C(1000000000000000000)) /* smaller times are of no calendar */

void oneset_done(struct oneset *oneset)
{
	vec_foreach(note, &oneset->notes)
		free(*note);
	vec_done(&oneset->notes);
}

/* Takes the text of note, which is empty then. */
static int take_note(struct oneset *oneset, struct str *note)
{
	char *copy = str_error(note) == 0 ? strdup(str_borrow(note)) : NULL;

	str_done(note);
	if (copy == NULL || vec_push(&oneset->notes, copy) < 0) {
		free(copy);
		return -ENOMEM;
	}
	return 0;
}

/* --- ranks --- */

/* The row by the name of its source: a fingerprint is named by the trace it was made from. */
static const char *origin_of(const struct fingerprint *fp)
{
	const struct reader *reader = reader_of_name(fp->source);

	return reader != NULL ? reader->ranks_from : "distributedInfo";
}

static bool has_rank(struct fingerprint *const *fps, size_t cnt, int rank)
{
	for (size_t i = 0; i < cnt; i++) {
		if (fps[i]->rank == rank)
			return true;
	}
	return false;
}

/* In the order of how little they say. */
enum origin { ORIGIN_TRACE, ORIGIN_FILE, ORIGIN_FOLDER, ORIGIN_ORDER };

static enum origin assign_known(struct fingerprint *fp)
{
	int rank = jobfiles_rank(fp);
	bool own = rank == fp->rank;

	fp->rank = rank;
	if (rank < 0)
		return ORIGIN_ORDER;
	if (own)
		return ORIGIN_TRACE;
	return ranknames_of_file(fp->source) >= 0 ? ORIGIN_FILE : ORIGIN_FOLDER;
}

const char *oneset_assign_ranks(struct fingerprint *const *fps, size_t cnt)
{
	static const char *const names[] = { [ORIGIN_FILE] = "file names",
					     [ORIGIN_FOLDER] = "folder names",
					     [ORIGIN_ORDER] = "order of arguments" };
	enum origin worst = ORIGIN_TRACE;
	int next = 0;

	for (size_t i = 0; i < cnt; i++)
		worst = MAX(worst, assign_known(fps[i]));
	for (size_t i = 0; i < cnt && worst == ORIGIN_ORDER; i++) {
		if (fps[i]->rank >= 0)
			continue;
		while (has_rank(fps, cnt, next))
			next++;
		fps[i]->rank = next++;
	}
	if (worst != ORIGIN_TRACE)
		return names[worst];
	return cnt > 0 ? origin_of(fps[0]) : "distributedInfo";
}

/* --- sets in words --- */

/* The files of a set; sets of files are by set. */
struct span {
	const struct jobfile *files;
	size_t cnt;
};

static struct span span_of(const struct jobfiles *j, uint32_t set)
{
	struct span ret = { .files = j->files };

	for (size_t i = 0; i < j->used_cnt; i++) {
		if (j->files[i].set == set && ret.cnt++ == 0)
			ret.files = &j->files[i];
	}
	return ret;
}

static int64_t start_ns(const struct span *span)
{
	int64_t first = INT64_MAX;

	for (size_t i = 0; i < span->cnt; i++)
		first = MIN(first, span->files[i].fp->window_start_wall_ns);
	return first;
}

static void append_time(struct str *out, int64_t wall_ns)
{
	time_t seconds = (time_t)(wall_ns / NSEC_PER_SEC);
	struct tm tm;
	char text[64];

	if (wall_ns < WALL_CLOCK_NS || gmtime_r(&seconds, &tm) == NULL ||
	    strftime(text, sizeof(text), ", %Y-%m-%d %H:%M:%S UTC", &tm) == 0)
		return;
	str_append(out, text);
}

static void append_steps(struct str *out, const struct fingerprint *fp)
{
	if (fp->iteration_cnt == 0 || fp->iterations_by != ITERATIONS_ANNOTATION ||
	    fp->iterations[0].number < 0)
		return;
	str_printf(out, ", steps %lld-%lld", (long long)fp->iterations[0].number,
		   (long long)fp->iterations[fp->iteration_cnt - 1].number);
}

/* "ranks 0-3 of 4, steps 4-6, 2023-11-02 19:57:40 UTC" */
static void append_set(struct str *out, const struct span *span)
{
	_cleanup_free_ int *ranks = calloc(span->cnt + 1, sizeof(*ranks));
	const struct fingerprint *fp = span->files[0].fp;
	size_t known = 0;

	for (size_t i = 0; i < span->cnt && ranks != NULL; i++) {
		if (span->files[i].rank >= 0)
			ranks[known++] = span->files[i].rank;
	}
	if (known == span->cnt) {
		str_append(out, known == 1 ? "rank " : "ranks ");
		rankset_format(out, ranks, known);
	} else {
		str_printf(out, "%zu file%s without ranks", span->cnt, plural((double)span->cnt));
	}
	if (fp->world_size > 0)
		str_printf(out, " of %d", fp->world_size);
	append_steps(out, fp);
	append_time(out, start_ns(span));
}

static void append_files(struct str *out, const struct span *span)
{
	str_append(out, span->files[0].fp->source);
	if (span->cnt > 1)
		str_printf(out, " and %zu more", span->cnt - 1);
}

/* What tells two sets apart, the surest first. */
static void append_difference(struct str *out, const struct span *a, const struct span *b)
{
	const struct fingerprint *x = a->files[0].fp, *y = b->files[0].fp;

	if (x->world_size > 0 && y->world_size > 0 && x->world_size != y->world_size) {
		str_printf(out, "world sizes of %d and %d", x->world_size, y->world_size);
		return;
	}
	for (size_t i = 0; i < a->cnt; i++) {
		for (size_t k = 0; k < b->cnt; k++) {
			if (a->files[i].worker != b->files[k].worker ||
			    jobfiles_same_process(a->files[i].fp, b->files[k].fp))
				continue;
			str_printf(out, "rank %d is process %lld and process %lld",
				   a->files[i].rank, (long long)a->files[i].fp->pid,
				   (long long)b->files[k].fp->pid);
			return;
		}
	}
	str_printf(out, "they begin %.0f s apart, and their collectives do not fit",
		   (double)(start_ns(b) - start_ns(a)) / (double)NSEC_PER_SEC);
}

static void describe_mixture(const struct jobfiles *j, struct str *out)
{
	struct span first = span_of(j, 0), second = span_of(j, 1);

	str_printf(out, "expected files of one job, found %u sets that cannot be compared: ",
		   j->set_cnt);
	append_difference(out, &first, &second);
	for (uint32_t set = 0; set < MIN(j->set_cnt, (uint32_t)LISTED_MAX); set++) {
		struct span span = span_of(j, set);

		str_printf(out, "\n  set %u: ", set + 1);
		append_set(out, &span);
		str_append(out, ": ");
		append_files(out, &span);
	}
	if (j->set_cnt > LISTED_MAX)
		str_printf(out, "\n  and %u more", j->set_cnt - LISTED_MAX);
	str_append(out, "\ngive the files of one set, or a folder that holds no other");
}

/* --- notes --- */

static int note_copies(const struct jobfiles *j, struct oneset *oneset)
{
	int error = 0;

	for (size_t i = j->used_cnt; i < j->cnt && error == 0; i++) {
		struct str note = { 0 };

		if (i - j->used_cnt == LISTED_MAX) {
			str_printf(&note, "%zu more files are copies and were left out",
				   j->cnt - i);
			return take_note(oneset, &note);
		}
		str_printf(&note, "%s holds the same window as %s: used once",
			   j->files[i].fp->source, j->files[i].copy_of->source);
		error = take_note(oneset, &note);
	}
	return error;
}

static int note_windows(const struct jobfiles *j, struct oneset *oneset)
{
	struct span chosen = span_of(j, j->chosen);
	struct str note = { 0 };
	uint32_t listed = 0;

	str_printf(&note, "%u windows of one run: this report is of ", j->set_cnt);
	append_set(&note, &chosen);
	str_append(&note, ", the latest that most ranks have; left out: ");
	for (uint32_t set = 0; set < j->set_cnt && listed < LISTED_MAX; set++) {
		struct span span = span_of(j, set);

		if (set == j->chosen)
			continue;
		str_append(&note, listed++ > 0 ? "; " : "");
		append_set(&note, &span);
	}
	if (j->set_cnt - 1 > listed)
		str_printf(&note, "; and %u more", j->set_cnt - 1 - listed);
	str_append(&note, ". Give the files of another window alone to analyze it");
	return take_note(oneset, &note);
}

static int note_clocks(struct oneset *oneset)
{
	struct str note = { 0 };

	str_append(&note, "clocks of hosts differ by more than the length of the window: the "
			  "collectives show that the files are of one job");
	return take_note(oneset, &note);
}

static int note_alike(struct oneset *oneset)
{
	struct str note = { 0 };

	str_append(
		&note,
		"clocks of hosts are not aligned, and no collective shows by how much they "
		"differ: which host waited for which is not known. Their ranks, steps and lengths "
		"of iterations are those of one job");
	return take_note(oneset, &note);
}

static int make_notes(const struct jobfiles *j, struct oneset *oneset)
{
	int error = note_copies(j, oneset);

	if (error == 0 && j->kind == JOBFILES_WINDOWS)
		error = note_windows(j, oneset);
	if (error == 0 && j->clocks_off && !j->only_alike)
		error = note_clocks(oneset);
	if (error == 0 && j->only_alike)
		error = note_alike(oneset);
	oneset->only_alike = j->only_alike;
	return error;
}

/* --- the choice --- */

static bool is_chosen(const struct jobfiles *j, const struct fingerprint *fp)
{
	for (size_t i = 0; i < j->used_cnt; i++) {
		if (j->files[i].fp == fp)
			return j->files[i].set == j->chosen;
	}
	return false;
}

/* Keeps the chosen fingerprints, in their order. */
static void keep_chosen(const struct jobfiles *j, struct fingerprint **fps, size_t *cnt)
{
	size_t kept = 0;

	for (size_t i = 0; i < *cnt; i++) {
		if (is_chosen(j, fps[i])) {
			fps[kept++] = fps[i];
			continue;
		}
		fingerprint_done(fps[i]);
		free(fps[i]);
	}
	*cnt = kept;
}

int oneset_take(struct fingerprint **fps, size_t *cnt, struct oneset *ret, struct str *why)
{
	struct jobfiles jobfiles;
	int error = jobfiles_find(fps, *cnt, &jobfiles);

	*ret = (struct oneset){ .rank_source = "distributedInfo" };
	if (error < 0)
		return error;
	if (jobfiles.kind == JOBFILES_MIXED) {
		describe_mixture(&jobfiles, why);
		error = str_error(why) < 0 ? -ENOMEM : -EINVAL;
	} else {
		error = make_notes(&jobfiles, ret);
		if (error == 0 && (jobfiles.cnt > jobfiles.used_cnt || jobfiles.set_cnt > 1))
			keep_chosen(&jobfiles, fps, cnt);
	}
	if (error == 0)
		ret->rank_source = oneset_assign_ranks(fps, *cnt);
	jobfiles_done(&jobfiles);
	return error;
}
