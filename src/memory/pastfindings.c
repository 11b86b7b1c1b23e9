/* SPDX-License-Identifier: Apache-2.0 */
#include "memory/pastfindings.h"

#include "base/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_finding(struct pastfinding *finding)
{
	free(finding->cause);
	free(finding->title);
	free(finding->function_key);
}

static int take(void *arg, const struct store_named_finding *finding)
{
	struct pastfindings *past = arg;
	struct pastfinding copy = {
		.cause = strdup(finding->cause),
		.title = strdup(finding->title),
		.function_key = strdup(finding->function_key),
		.number = finding->number,
		.made_ns = finding->made_ns,
		.gain_ms = finding->gain_ms,
		.iteration_ms = finding->iteration_ms,
	};

	(void)snprintf(copy.job, sizeof(copy.job), "%s", finding->job);
	if (copy.cause != NULL && copy.title != NULL && copy.function_key != NULL &&
	    vec_push(&past->all, copy) == 0)
		return 0;
	free_finding(&copy);
	return -ENOMEM;
}

int pastfindings_read(struct store *store, const char *name, int64_t before_ns,
		      struct pastfindings *ret, struct err *err)
{
	int r = store_list_named_findings(store, name, before_ns, PASTFINDINGS_MAX, take, ret, err);

	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}

void pastfindings_done(struct pastfindings *past)
{
	vec_foreach(finding, &past->all)
		free_finding(finding);
	vec_done(&past->all);
}

/* One function is one place, of which windows may show another cause each. */
static bool is_same(const struct pastfinding *finding, const char *cause, const char *function_key)
{
	if (function_key == NULL || function_key[0] == '\0')
		return finding->function_key[0] == '\0' && strcmp(finding->cause, cause) == 0;
	return strcmp(finding->function_key, function_key) == 0;
}

/* Whether an earlier one in the list is the same and of the same job. */
static bool is_counted(const struct pastfindings *past, size_t idx)
{
	const struct pastfinding *own = &past->all.data[idx];

	for (size_t i = 0; i < idx; i++) {
		const struct pastfinding *other = &past->all.data[i];

		if (strcmp(other->job, own->job) == 0 &&
		    is_same(other, own->cause, own->function_key))
			return true;
	}
	return false;
}

static const struct earlier_run *find_healthy_since(const struct earlier *earlier, int64_t since_ns)
{
	vec_foreach(run, &earlier->runs) {
		if (run->started_ns > since_ns && run->healthy)
			return run;
	}
	return NULL;
}

void pastfindings_find(const struct pastfindings *past, const struct earlier *earlier,
		       const char *cause, const char *function_key, struct pastfinding_seen *ret)
{
	*ret = (struct pastfinding_seen){ .job_cnt = 0 };
	for (size_t i = 0; i < past->all.cnt; i++) {
		const struct pastfinding *finding = &past->all.data[i];

		if (!is_same(finding, cause, function_key))
			continue;
		if (ret->last == NULL)
			ret->last = finding;
		ret->job_cnt += !is_counted(past, i);
	}
	if (ret->last != NULL)
		ret->without = find_healthy_since(earlier, ret->last->made_ns);
}

/* The latest run that says anything of findings. */
static const struct earlier_run *find_judged(const struct earlier *earlier)
{
	vec_foreach(run, &earlier->runs) {
		if (run->why != EARLIER_RUNNING && (run->healthy || run->abnormal))
			return run;
	}
	return NULL;
}

const struct pastfinding *pastfindings_next_gone(const struct pastfindings *past,
						 const struct earlier *earlier, size_t from,
						 size_t *ret_next)
{
	const struct earlier_run *judged = find_judged(earlier);

	if (judged == NULL || judged->healthy)
		return NULL;
	for (size_t i = from; i < past->all.cnt; i++) {
		if (strcmp(past->all.data[i].job, judged->key) != 0 || is_counted(past, i))
			continue;
		*ret_next = i + 1;
		return &past->all.data[i];
	}
	return NULL;
}

enum pastfinding_back pastfindings_back(const struct pastfinding *finding,
					const struct earlier *earlier, uint32_t workers,
					const struct runpace_sum *pace, double *ret_ms)
{
	double after_ms = (double)pace->median_ns / NSEC_PER_MSEC;

	vec_foreach(run, &earlier->runs) {
		if (strcmp(run->key, finding->job) != 0)
			continue;
		/* A run that was too short, or sick as this one was, can still be told from this one. */
		if (run->why == EARLIER_COMMAND || run->why == EARLIER_MACHINE ||
		    run->why == EARLIER_RUNNING || run->workers != workers || !pace->known)
			return PASTFINDING_INCOMPARABLE;
		*ret_ms = finding->iteration_ms - after_ms;
		return *ret_ms > PASTFINDINGS_NOISE_FRAC * finding->iteration_ms
			       ? PASTFINDING_BACK
			       : PASTFINDING_NOT_BACK;
	}
	return PASTFINDING_INCOMPARABLE;
}
