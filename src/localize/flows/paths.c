/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/flows/paths.h"

#include "base/stats.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>

/* An address and the host that has it; HOST_MANY: of containers or loopback, several have it. */
struct address {
	const char *text;
	uint32_t host;
};

#define HOST_MANY UINT32_MAX

typedef VEC(struct address) address_vec;

static int address_cmp(const void *a, const void *b)
{
	return strcmp(((const struct address *)a)->text, ((const struct address *)b)->text);
}

static int find_addresses(const struct job *job, address_vec *ret)
{
	size_t kept = 0;

	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fp_flows *flows = &job->workers[w].fp->flows;

		for (size_t i = 0; i < flows->cnt; i++) {
			if (vec_push(ret, (struct address){ flows->list[i].local,
							    job->workers[w].host }) < 0)
				return -ENOMEM;
		}
	}
	if (ret->cnt > 0)
		qsort(ret->data, ret->cnt, sizeof(*ret->data), address_cmp);
	for (size_t i = 0; i < ret->cnt; i++) {
		struct address *last = kept > 0 ? &ret->data[kept - 1] : NULL;

		if (last == NULL || strcmp(last->text, ret->data[i].text) != 0)
			ret->data[kept++] = ret->data[i];
		else if (last->host != ret->data[i].host)
			last->host = HOST_MANY;
	}
	ret->cnt = kept;
	return 0;
}

static uint32_t host_of(const address_vec *addresses, const char *text)
{
	const struct address key = { text, 0 };
	const struct address *found = addresses->cnt > 0
					      ? bsearch(&key, addresses->data, addresses->cnt,
							sizeof(*addresses->data), address_cmp)
					      : NULL;

	return found != NULL ? found->host : HOST_MANY;
}

/* 0: nothing was sent. */
static double rate_of(const struct fp_flow *flow)
{
	double sending_ns = (double)(flow->busy_ns - flow->limited_ns);

	return sending_ns > 0 ? (double)flow->tx_bytes / sending_ns : 0;
}

static double before_of(const struct past *past, size_t w, const struct fp_flow *flow)
{
	const struct fp_flows *then;

	if (past == NULL || past->known_cnt == 0 || !past->workers[w].known)
		return 0;
	then = &past->then.workers[past->workers[w].then].fp->flows;
	for (size_t i = 0; i < then->cnt; i++) {
		const struct fp_flow *f = &then->list[i];

		if (strcmp(f->remote, flow->remote) == 0 && strcmp(f->local, flow->local) == 0 &&
		    f->tx_bytes >= FLOW_LEAST_BYTES)
			return rate_of(f);
	}
	return 0;
}

/* Per iteration; what nothing overlaps. */
static double comm_ns(const struct job_worker *worker)
{
	return (double)worker->fp->class_ns[CLASS_COMM] / worker->iterations;
}

/* What an end of a path adds to the time with data on the way, per iteration. */
struct end {
	double comm_ns;	 /* the least communication of its workers */
	double delay_ns; /* the most that one of them waited for a CPU */
	double pressure; /* share of the window in which a task of the host did */
};

/* By host; the caller frees it. NULL: no memory. */
static struct end *find_ends(const struct job *job)
{
	struct end *ret = calloc(job->worker_cnt + 1, sizeof(*ret));

	if (ret == NULL)
		return NULL;
	for (size_t w = 0; w < job->worker_cnt; w++)
		ret[job->workers[w].host].comm_ns = (double)INFINITY;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct job_worker *worker = &job->workers[w];
		const struct fp_host *stats = &worker->fp->host_stats;
		struct end *end = &ret[worker->host];

		end->comm_ns = fmin(end->comm_ns, comm_ns(worker));
		end->delay_ns =
			fmax(end->delay_ns, stats->run_delay_frac * (double)worker->fp->window_ns /
						    worker->iterations);
		end->pressure = fmax(end->pressure, stats->psi_cpu_frac);
	}
	return ret;
}

/*
 * Not the path's is the time in which an end waits for a CPU, and with it the kernel's work for the
 * network; nor that of a receiver that comes late to a collective: data is in its buffers meanwhile,
 * whose last part is acknowledged up to 40 ms later than by one that reads. Where that is nearly all,
 * the rate is unknown: 0.
 */
static void leave_out_ends(const struct end *ends, const struct job_worker *worker,
			   struct path *path)
{
	const struct end *from = &ends[path->from], *to = &ends[path->to];
	double late_ns = fmax(0, comm_ns(worker) - to->comm_ns);
	double busy_ns = fmax(0, path->busy_ns - late_ns - fmax(from->delay_ns, to->delay_ns));

	if (busy_ns < FLOW_OWN * path->busy_ns ||
	    fmax(from->pressure, to->pressure) > HOST_CROWDED_FRAC)
		path->rate = 0;
	else
		path->rate *= path->busy_ns / busy_ns;
	path->busy_ns = busy_ns;
}

/* What all paths need. */
struct known {
	const struct job *job;
	const struct past *past;
	address_vec addresses;
	struct end *ends;
};

static int add_worker(const struct known *known, size_t w, struct paths *ret)
{
	const struct job_worker *worker = &known->job->workers[w];
	const struct fp_flows *flows = &worker->fp->flows;

	for (size_t i = 0; i < flows->cnt; i++) {
		const struct fp_flow *flow = &flows->list[i];
		struct path path = { .worker = (uint32_t)w,
				     .from = worker->host,
				     .to = host_of(&known->addresses, flow->remote),
				     .flow = flow,
				     .rate = rate_of(flow),
				     .before = before_of(known->past, w, flow) };

		if (path.to == HOST_MANY || path.to == path.from || path.rate <= 0 ||
		    flow->tx_bytes < FLOW_LEAST_BYTES)
			continue;
		path.busy_ns = (double)(flow->busy_ns - flow->limited_ns) /
			       MAX(flow->socket_cnt, 1u) / worker->iterations;
		leave_out_ends(known->ends, worker, &path);
		if (path.rate > 0 && vec_push(&ret->list, path) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* Messages and barriers are short: their rate is that of a round trip, not of a path. */
static void keep_large(struct paths *paths)
{
	uint64_t most = 0;
	size_t kept = 0;

	vec_foreach(path, &paths->list)
		most = MAX(most, path->flow->tx_bytes);
	for (size_t i = 0; i < paths->list.cnt; i++) {
		struct path path = paths->list.data[i];

		if ((double)path.flow->tx_bytes >= FLOW_MUCH * (double)most)
			paths->list.data[kept++] = path;
	}
	paths->list.cnt = kept;
}

/* What paths carry that nothing slows down; 0: too few to tell. */
static double usual_rate(const struct paths *paths, double *scratch)
{
	vec_foreach(path, &paths->list)
		scratch[path - paths->list.data] = path->rate;
	return paths->list.cnt < FLOW_MIN_PATHS
		       ? 0
		       : stats_quantile(scratch, paths->list.cnt, FLOW_FREE);
}

static void judge(const struct job *job, struct path *path, double usual)
{
	/* What waits for a slow path communicates as long as the path is used. */
	if (path->rate > FLOW_SLOWER * usual ||
	    path->busy_ns < FLOW_USED * comm_ns(&job->workers[path->worker]))
		return;
	path->usual = usual;
	path->lost_ns = fmin(path->busy_ns, job->iteration_ns) * (1 - path->rate / usual);
}

static size_t count_slow(const struct paths *paths)
{
	size_t cnt = 0;

	vec_foreach(path, &paths->list)
		cnt += path->lost_ns > 0;
	return cnt;
}

/*
 * Beside its own past each path is judged by itself. Else a few paths that are slower than most are
 * slow; where many are, paths differ by design: some are inside a rack.
 */
static void judge_all(const struct job *job, struct paths *paths, double usual)
{
	vec_foreach(path, &paths->list) {
		if (path->before > 0)
			judge(job, path, path->before);
	}
	paths->by_past = count_slow(paths) > 0;
	if (paths->by_past || usual <= 0)
		return;
	vec_foreach(path, &paths->list)
		judge(job, path, usual);
	if (2 * count_slow(paths) <= paths->list.cnt)
		return;
	vec_foreach(path, &paths->list)
		path->lost_ns = 0;
}

static int count_hosts(const struct job *job, struct paths *paths)
{
	_cleanup_free_ bool *seen = calloc(job->worker_cnt + 1, sizeof(*seen));

	if (seen == NULL)
		return -ENOMEM;
	vec_foreach(path, &paths->list) {
		paths->host_cnt += !seen[path->from];
		seen[path->from] = true;
		paths->host_cnt += !seen[path->to];
		seen[path->to] = true;
	}
	return 0;
}

int paths_find(const struct job *job, const struct past *past, struct paths *ret)
{
	_cleanup_free_ double *scratch = NULL;
	struct known known = { .job = job, .past = past, .ends = find_ends(job) };
	int error = known.ends != NULL ? find_addresses(job, &known.addresses) : -ENOMEM;

	*ret = (struct paths){ .by_past = false };
	for (size_t w = 0; w < job->worker_cnt && error == 0; w++)
		error = add_worker(&known, w, ret);
	vec_done(&known.addresses);
	free(known.ends);
	keep_large(ret);
	scratch = calloc(ret->list.cnt + 1, sizeof(*scratch));
	if (error < 0 || scratch == NULL)
		return -ENOMEM;
	judge_all(job, ret, usual_rate(ret, scratch));
	return count_hosts(job, ret);
}

void paths_done(struct paths *paths)
{
	vec_done(&paths->list);
}
