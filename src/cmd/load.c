/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/load.h"

#include "base/clock.h"
#include "cmd/load_hosts.h"
#include "format/sidecar/sidecar.h"
#include "read/reader.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct load_options load_defaults(void)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	return (struct load_options){
		.window = { .last_step = -1, .skip_warmup = true },
		.job_cnt = (unsigned int)MIN(MAX(cpus, 1L), (long)LOAD_JOBS_MAX),
		.progress = isatty(STDERR_FILENO) != 0,
	};
}

int load_summarize(const struct trace *trace, const struct sidecar *sidecar,
		   const struct summarize_options *options, struct fingerprint *ret,
		   struct err *err)
{
	struct summarize_options all = *options;
	struct load_hosts hosts = { 0 };
	struct sidecar_info info;
	int error = 0;

	if (sidecar != NULL) {
		sidecar_summarize(sidecar, &info);
		all.sidecar = &info;
	}
	if (sidecar != NULL && options->hosts.cnt == 0) {
		error = load_hosts_of_sidecar(sidecar, &hosts);
		all.hosts = load_hosts_view(&hosts, sidecar->header.host);
	}
	error = error < 0 ? err_set(err, ENOMEM, "sidecar: out of memory")
			  : summarize(trace, &all, ret, err);
	load_hosts_done(&hosts);
	return error;
}

/* The path of "PATH.sidecar" if it exists, else NULL. */
static char *sidecar_beside(const char *path)
{
	char *beside = NULL;

	if (asprintf(&beside, "%s" SIDECAR_SUFFIX, path) < 0)
		return NULL;
	if (access(beside, F_OK) != 0) {
		free(beside);
		return NULL;
	}
	return beside;
}

static int summarize_file(const char *path, const char *sidecar_path,
			  const struct summarize_options *options, struct fingerprint *ret,
			  struct err *err)
{
	_cleanup_free_ char *beside = sidecar_path == NULL ? sidecar_beside(path) : NULL;
	struct sidecar read = { 0 }, *sidecar = NULL;
	struct trace trace;
	int error = 0;

	if (sidecar_path != NULL || beside != NULL) {
		error = sidecar_read(sidecar_path != NULL ? sidecar_path : beside, &read, err);
		sidecar = &read;
	}
	if (error == 0)
		error = reader_read(path, sidecar, &trace, err);
	if (error == 0) {
		error = load_summarize(&trace, sidecar, options, ret, err);
		trace_done(&trace);
	}
	sidecar_done(&read);
	return error;
}

int load_one(const char *path, const char *sidecar, const struct summarize_options *options,
	     struct fingerprint *ret, struct err *err)
{
	if (reader_of(path)->content == CONTENT_FINGERPRINT)
		return fingerprint_read(path, ret, err);
	return summarize_file(path, sidecar, options, ret, err);
}

/* Shared by the threads; each picks the next path under the lock. */
struct pool {
	pthread_mutex_t lock;
	const path_list *paths;
	const struct load_options *options;
	struct summarize_options summarize;
	struct load_result *ret;  /* its shares, by thread */
	struct fingerprint **fps; /* by path; NULL: failed */
	struct err *errs;	  /* by path */
	int *errors;		  /* by path */
	size_t next, done;	  /* under lock */
	int64_t start_ns;
};

static void show_progress(const struct pool *pool, const char *path)
{
	if (!pool->options->progress || clock_mono_ns() - pool->start_ns < NSEC_PER_SEC)
		return;
	fprintf(stderr, "\r\033[Kread %zu of %zu: %s", pool->done, pool->paths->cnt, path);
}

struct load_lane {
	struct pool *pool;
	struct fpshare *share; /* of this thread */
};

static int load_shared(const char *path, const struct load_lane *lane, struct fingerprint *ret,
		       struct err *err)
{
	if (reader_of(path)->content == CONTENT_FINGERPRINT)
		return fingerprint_read_sharing(path, lane->share, ret, err);
	return load_one(path, NULL, &lane->pool->summarize, ret, err);
}

static int load_new(const char *path, const struct load_lane *lane, struct fingerprint **ret,
		    struct err *err)
{
	struct fingerprint *fp = malloc(sizeof(*fp));
	int error = fp != NULL ? load_shared(path, lane, fp, err)
			       : err_set(err, ENOMEM, "%s: out of memory", path);

	if (error == 0)
		*ret = fp;
	else
		free(fp);
	return error;
}

static void *pool_work(void *arg)
{
	const struct load_lane *lane = arg;
	struct pool *pool = lane->pool;

	for (;;) {
		size_t i;

		(void)pthread_mutex_lock(&pool->lock);
		i = pool->next < pool->paths->cnt ? pool->next++ : SIZE_MAX;
		if (i != SIZE_MAX)
			show_progress(pool, pool->paths->data[i]);
		(void)pthread_mutex_unlock(&pool->lock);
		if (i == SIZE_MAX)
			return NULL;
		pool->errors[i] =
			load_new(pool->paths->data[i], lane, &pool->fps[i], &pool->errs[i]);
		(void)pthread_mutex_lock(&pool->lock);
		pool->done++;
		(void)pthread_mutex_unlock(&pool->lock);
	}
}

static void pool_run(struct pool *pool)
{
	pthread_t threads[LOAD_JOBS_MAX];
	struct load_lane lanes[LOAD_JOBS_MAX];
	size_t want = pool->ret->share_cnt, started = 0;

	for (size_t i = 0; i < want; i++)
		lanes[i] = (struct load_lane){ pool, &pool->ret->shares[i] };
	/* The calling thread works too, so that all is done even if no thread can be created. */
	while (started + 1 < want &&
	       pthread_create(&threads[started], NULL, pool_work, &lanes[started + 1]) == 0)
		started++;
	(void)pool_work(&lanes[0]);
	for (size_t i = 0; i < started; i++)
		(void)pthread_join(threads[i], NULL);
	if (pool->options->progress && clock_mono_ns() - pool->start_ns >= NSEC_PER_SEC)
		fputs("\r\033[K", stderr);
}

static int take_results(struct pool *pool, struct load_result *out)
{
	int error = 0;

	for (size_t i = 0; i < pool->paths->cnt; i++) {
		if (pool->errors[i] == 0) {
			out->fps[out->cnt++] = pool->fps[i];
		} else if (error == 0) {
			struct load_failure f = { strdup(pool->paths->data[i]), pool->errs[i] };

			error = f.source != NULL ? vec_push(&out->failures, f) : -ENOMEM;
		}
	}
	return error;
}

/* One for each thread. Returns 0 or -ENOMEM. */
static int make_shares(struct load_result *ret, size_t cnt)
{
	int error = 0;

	ret->shares = calloc(cnt, sizeof(*ret->shares));
	if (ret->shares == NULL)
		return -ENOMEM;
	for (; ret->share_cnt < cnt && error == 0; ret->share_cnt += error == 0)
		error = fpshare_init(&ret->shares[ret->share_cnt]);
	return error;
}

/* Reads all files once. */
static int load_once(const path_list *paths, const struct load_options *options,
		     struct load_result *ret)
{
	struct pool pool = {
		.paths = paths, .options = options, .ret = ret, .start_ns = clock_mono_ns()
	};
	struct load_hosts hosts;
	int error = load_hosts_of_traces(paths, &hosts);

	pool.summarize.window = options->window;
	pool.summarize.hosts = load_hosts_view(&hosts, NULL);
	*ret = (struct load_result){ .fps = calloc(paths->cnt + 1, sizeof(struct fingerprint *)) };
	pool.fps = calloc(paths->cnt + 1, sizeof(*pool.fps));
	pool.errs = calloc(paths->cnt + 1, sizeof(*pool.errs));
	pool.errors = calloc(paths->cnt + 1, sizeof(*pool.errors));
	if (error == 0)
		error = make_shares(
			ret, MIN(MAX((size_t)options->job_cnt, (size_t)1), (size_t)LOAD_JOBS_MAX));
	if (error == 0 && ret->fps != NULL && pool.fps != NULL && pool.errs != NULL &&
	    pool.errors != NULL && pthread_mutex_init(&pool.lock, NULL) == 0) {
		pool_run(&pool);
		error = take_results(&pool, ret);
		(void)pthread_mutex_destroy(&pool.lock);
	} else {
		error = -ENOMEM;
	}
	load_hosts_done(&hosts);
	free(pool.fps);
	free(pool.errs);
	free(pool.errors);
	return error;
}

static bool has_step(const struct fingerprint *fp, int64_t number)
{
	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		if (fp->iterations[i].number == number)
			return true;
	}
	return false;
}

/* Whether a step is left out of one file as warm-up, and is in another. */
static bool disagree_on_warmup(const struct load_result *loaded)
{
	int64_t left_out = -1;

	for (size_t i = 0; i < loaded->cnt && left_out < 0; i++) {
		if (loaded->fps[i]->warmup_ns > 0 && loaded->fps[i]->iteration_cnt > 0)
			left_out = loaded->fps[i]->iterations[0].number - 1;
	}
	for (size_t i = 0; i < loaded->cnt && left_out >= 0; i++) {
		if (has_step(loaded->fps[i], left_out))
			return true;
	}
	return false;
}

int load_paths(const path_list *paths, const struct load_options *options, struct load_result *ret)
{
	struct load_options all_steps = *options;
	int error = load_once(paths, options, ret);

	if (error < 0 || !disagree_on_warmup(ret))
		return error;
	load_done(ret);
	all_steps.window.skip_warmup = false;
	return load_once(paths, &all_steps, ret);
}

void load_done(struct load_result *result)
{
	for (size_t i = 0; i < result->cnt; i++) {
		fingerprint_done(result->fps[i]);
		free(result->fps[i]);
	}
	free(result->fps);
	for (size_t i = 0; i < result->share_cnt; i++)
		fpshare_done(&result->shares[i]);
	free(result->shares);
	vec_foreach(f, &result->failures)
		free(f->source);
	vec_done(&result->failures);
	*result = (struct load_result){ 0 };
}
