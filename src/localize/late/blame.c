/* SPDX-License-Identifier: Apache-2.0 */
#include "localize/late/blame.h"

#include "base/stats.h"
#include "model/thresholds.h"

#include <errno.h>
#include <math.h>
#include <string.h>
#include <xxhash.h>

#define MAX_OTHERS 33 /* peers asked what they did meanwhile */

/* One member's part in the instance at hand. */
struct arrival {
	uint32_t member;
	const struct fp_collective *c;
	double late_ns; /* behind the typical member; 0 for the others */
};

struct judge {
	const struct job *job;
	struct blame *blame;
	const struct shift_group *group;
	uint32_t group_idx;
	struct arrival *arrivals; /* of the instance, by duration: the last arriver first */
	size_t arrival_cnt;
	bool by_host;		 /* ask the launching threads, not the critical paths */
	double *batch_late_ns;	 /* by member: lateness already counted in this batch */
	double *owed_ns;	 /* by member: of it, what no other member has waited for yet */
	int64_t *last_iteration; /* by worker: the last iteration counted as late */
	struct idmap why_of;	 /* (worker, function) -> index in blame->why */
	struct idmap wait_of;	 /* (from, to) -> index in blame->waits */
};

void blame_done(struct blame *blame)
{
	vec_done(&blame->why);
	vec_done(&blame->waits);
	vec_done(&blame->losses);
	vec_done(&blame->groups);
}

static int arrival_cmp(const void *a, const void *b)
{
	const struct arrival *x = a, *y = b;

	if (x->c->dur_ns != y->c->dur_ns)
		return x->c->dur_ns < y->c->dur_ns ? -1 : 1;
	return (x->member > y->member) - (x->member < y->member);
}

static uint32_t worker_of(const struct judge *j, const struct arrival *a)
{
	return j->group->members[a->member].worker;
}

/*
 * What a member did before its record began is not known: its recorder may have been starting. Only its
 * first collective is that near to the beginning.
 */
static double recorded_ns(const struct judge *j, const struct arrival *a)
{
	const struct fingerprint *fp = j->job->workers[worker_of(j, a)].fp;

	return a->c == &fp->collectives[0] ? (double)MAX(a->c->lead_ns, a->c->host_ns)
					   : (double)INFINITY;
}

static void gather(struct judge *j, int64_t instance)
{
	size_t middle;
	double typical;

	j->arrival_cnt = 0;
	for (uint32_t m = 0; m < j->group->member_cnt; m++) {
		const struct fp_collective *c = shift_borrow(&j->group->members[m], instance);

		if (c != NULL)
			j->arrivals[j->arrival_cnt++] = (struct arrival){ .member = m, .c = c };
	}
	if (j->arrival_cnt < 2)
		return;
	qsort(j->arrivals, j->arrival_cnt, sizeof(*j->arrivals), arrival_cmp);
	/* The upper middle: for two members the other one, for many the median. */
	middle = j->arrival_cnt / 2;
	typical = (double)j->arrivals[middle].c->dur_ns;
	for (size_t i = 0; i < j->arrival_cnt; i++)
		j->arrivals[i].late_ns = fmin(fmax(0, typical - (double)j->arrivals[i].c->dur_ns),
					      recorded_ns(j, &j->arrivals[i]));
}

static int add_why(struct judge *j, uint32_t worker, uint32_t function, double ns)
{
	uint64_t key = (uint64_t)worker << 32 | function;
	uint32_t idx = idmap_get(&j->why_of, key);

	if (idx == IDMAP_NONE) {
		idx = (uint32_t)j->blame->why.cnt;
		if (vec_push(&j->blame->why, (struct blame_why){ worker, function, 0 }) < 0 ||
		    idmap_set(&j->why_of, key, idx) < 0)
			return -ENOMEM;
	}
	j->blame->why.data[idx].ns += ns;
	return 0;
}

static int add_wait(struct judge *j, uint32_t from, uint32_t to, double ns)
{
	uint64_t key = (uint64_t)from << 32 | to;
	uint32_t idx = idmap_get(&j->wait_of, key);

	if (idx == IDMAP_NONE) {
		idx = (uint32_t)j->blame->waits.cnt;
		if (vec_push(&j->blame->waits, (struct blame_wait){ .from = from, .to = to }) < 0 ||
		    idmap_set(&j->wait_of, key, idx) < 0)
			return -ENOMEM;
	}
	j->blame->waits.data[idx].ns += ns;
	j->blame->waits.data[idx].cnt++;
	return 0;
}

/*
 * What led to a member's part: on its critical path, or, where the late one
 * waited for its launch, on the launching thread. Both sides are asked the same.
 */
static const struct fp_share *lead_of(const struct judge *j, const struct arrival *a,
				      uint32_t *ret_cnt)
{
	const struct fp_share *shares = j->job->workers[worker_of(j, a)].fp->shares;

	*ret_cnt = j->by_host ? a->c->host_cnt : a->c->lead_cnt;
	return shares + (j->by_host ? a->c->host_first : a->c->lead_first);
}

static uint32_t share_function(const struct judge *j, const struct arrival *a,
			       const struct fp_share *s)
{
	const struct job_worker *w = &j->job->workers[worker_of(j, a)];

	return s->function == FRAME_NONE ? FRAME_NONE : w->function_of[s->function];
}

/* Time a member spent in a function of the job before its part of the instance. */
static double lead_in(const struct judge *j, const struct arrival *a, uint32_t function)
{
	uint32_t cnt;
	const struct fp_share *shares = lead_of(j, a, &cnt);

	for (uint32_t i = 0; i < cnt; i++) {
		if (share_function(j, a, &shares[i]) == function)
			return (double)shares[i].ns;
	}
	return 0;
}

/* What the others typically spent in it (the first arrival is the late one). */
static double typical_lead(const struct judge *j, uint32_t function)
{
	double values[MAX_OTHERS];
	size_t others = j->arrival_cnt - 1, cnt = MIN(others, (size_t)MAX_OTHERS);

	for (size_t i = 0; i < cnt; i++)
		values[i] = lead_in(j, &j->arrivals[1 + i * others / cnt], function);
	(void)stats_median(values, cnt); /* leaves them sorted */
	return values[cnt / 2];
}

/* The late one waited for another worker itself: that much of its lateness is not its own. */
static void excuse(struct judge *j, const struct arrival *late, double ns)
{
	uint32_t worker = worker_of(j, late);
	struct blame_worker *bw = &j->blame->workers[worker];
	int64_t iteration = job_iteration_at(&j->job->workers[worker], late->c->start_ns);

	bw->explained_by_comm_ns += ns;
	if (iteration >= 0)
		bw->iteration_lost_ns[iteration] -= ns;
}

/* What the late worker did longer than the others. extra: by share, set. Returns the sum. */
static double find_extra(struct judge *j, const struct arrival *late, double *extra,
			 double *ret_waits)
{
	uint32_t cnt;
	const struct fp_share *shares = lead_of(j, late, &cnt);
	double sum = 0;

	*ret_waits = 0;
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t f = share_function(j, late, &shares[i]);

		extra[i] = fmax(0, (double)shares[i].ns - typical_lead(j, f));
		sum += extra[i];
		*ret_waits += job_waits_for_device(j->job, f) ? extra[i] : 0;
	}
	return sum;
}

/*
 * Divides lateness among what the late worker did more than the others. A thread that waited for
 * its device was late for what the device did.
 */
static int explain(struct judge *j, const struct arrival *late, double lost_ns)
{
	uint32_t most = MAX(late->c->host_cnt, late->c->lead_cnt), cnt;
	_cleanup_free_ double *extra = calloc(most + 1, sizeof(*extra));
	const struct fp_share *shares;
	double sum, waits;

	if (extra == NULL)
		return -ENOMEM;
	j->by_host = late->c->host_gated;
	sum = find_extra(j, late, extra, &waits);
	if (j->by_host && waits >= LEDGER_MOST * sum) {
		j->by_host = false;
		sum = find_extra(j, late, extra, &waits);
	}
	shares = lead_of(j, late, &cnt);
	for (uint32_t i = 0; i < cnt; i++) {
		uint32_t f = share_function(j, late, &shares[i]);
		double ns = extra[i] * (sum > lost_ns ? lost_ns / sum : 1);

		/* It waited in another group's collective itself: the cause is there. */
		if (f != FRAME_NONE && j->job->functions.data[f].class == CLASS_COMM)
			excuse(j, late, ns);
		else if (ns > 0 && add_why(j, worker_of(j, late), f, ns) < 0)
			return -ENOMEM;
	}
	if (sum < lost_ns)
		return add_why(j, worker_of(j, late), FRAME_NONE, lost_ns - sum);
	return 0;
}

/*
 * How much longer the typical other member was blocked than the late one (the first arrival).
 * A worker with other work while its collective waits loses nothing yet. INFINITY: not known.
 */
static double stood_still_ns(const struct judge *j)
{
	double values[MAX_OTHERS], late = (double)j->arrivals[0].c->critical_ns;
	size_t others = j->arrival_cnt - 1, cnt = MIN(others, (size_t)MAX_OTHERS);
	bool known = late > 0;

	for (size_t i = 0; i < cnt; i++) {
		size_t at = 1 + i * others / cnt;
		double critical = (double)j->arrivals[at].c->critical_ns;

		known |= critical > 0;
		values[i] = critical - late;
	}
	(void)stats_median(values, cnt); /* leaves them sorted */
	return known ? fmax(0, values[cnt / 2]) : (double)INFINITY;
}

/*
 * Asynchronous collectives of one group are late one after the other for the same reason: what
 * that costs is how long others stood still, in all of them.
 */
static int count_cost(struct judge *j, double lost_ns, double noise_ns)
{
	const struct arrival *late = &j->arrivals[0];
	uint32_t worker = worker_of(j, late);
	int64_t iteration = job_iteration_at(&j->job->workers[worker], late->c->start_ns);
	double *owed = &j->owed_ns[late->member], cost;
	struct blame_loss loss = { worker, j->group_idx, (uint32_t)iteration, 0 };

	*owed += fmax(0, lost_ns);
	cost = fmin(*owed, stood_still_ns(j));
	*owed -= cost;
	loss.ns = cost;
	return cost >= noise_ns && iteration >= 0 ? vec_push(&j->blame->losses, loss) : 0;
}

static void count_iteration(struct judge *j, uint32_t worker, const struct fp_collective *c,
			    double lost_ns)
{
	int64_t iteration = job_iteration_at(&j->job->workers[worker], c->start_ns);

	if (iteration >= 0)
		j->blame->workers[worker].iteration_lost_ns[iteration] += lost_ns;
	if (iteration != j->last_iteration[worker]) {
		j->last_iteration[worker] = iteration;
		j->blame->workers[worker].late_iterations++;
	}
}

/* Time before a member's part in which its device had nothing to compute. */
static double stood_before_ns(const struct judge *j, const struct arrival *a)
{
	const struct job_worker *worker = &j->job->workers[worker_of(j, a)];
	const struct fp_share *shares = worker->fp->shares + a->c->lead_first;
	double sum = 0;

	for (uint32_t i = 0; i < a->c->lead_cnt; i++) {
		uint32_t f = shares[i].function != FRAME_NONE
				     ? worker->function_of[shares[i].function]
				     : FRAME_NONE;

		if (f == FRAME_NONE || (j->job->functions.data[f].class != CLASS_COMPUTE &&
					j->job->functions.data[f].class != CLASS_COMM))
			sum += (double)shares[i].ns;
	}
	return sum;
}

/*
 * A member that is late in a collective is as far behind in the next one, if that was queued on the
 * others: its device still computes what theirs have done meanwhile. Where it stood still, or its
 * launching thread came late, that is new. In a group that is a guess others' collectives are
 * between the two.
 */
static bool is_of_batch(const struct judge *j, int64_t instance)
{
	const struct arrival *late = &j->arrivals[0];

	if (shift_overlaps(j->group, instance))
		return true;
	return late->c->group_known && !late->c->host_gated &&
	       shift_is_queued(j->group, instance) && 2 * stood_before_ns(j, late) < late->late_ns;
}

static int judge_instance(struct judge *j, int64_t instance)
{
	const struct arrival *late = &j->arrivals[0];
	double noise = fmax(BLAME_NOISE_NS, BLAME_NOISE_FRAC * j->job->iteration_ns), lost;
	struct blame_worker *bw;

	gather(j, instance);
	if (j->arrival_cnt < 2)
		return 0;
	j->blame->matched_cnt++;
	/* Of a batch that overlaps lateness is counted once, where it grows. */
	if (!is_of_batch(j, instance)) {
		for (size_t m = 0; m < j->group->member_cnt; m++)
			j->batch_late_ns[m] = j->owed_ns[m] = 0;
	}
	for (size_t i = 0; i < j->arrival_cnt; i++) {
		bw = &j->blame->workers[worker_of(j, &j->arrivals[i])];
		bw->matched = true;
		bw->matched_cnt++;
	}
	bw = &j->blame->workers[worker_of(j, late)];
	lost = late->late_ns - j->batch_late_ns[late->member];
	for (size_t i = 0; i < j->arrival_cnt; i++) {
		const struct arrival *a = &j->arrivals[i];

		j->batch_late_ns[a->member] = fmax(j->batch_late_ns[a->member], a->late_ns);
	}
	if (count_cost(j, lost, noise) < 0)
		return -ENOMEM;
	if (lost < noise)
		return 0;
	bw->lost_ns += lost;
	bw->last_cnt++;
	j->blame->lost_ns += lost;
	count_iteration(j, worker_of(j, late), late->c, lost);
	for (size_t i = 1; i < j->arrival_cnt; i++) {
		double wait = (double)(j->arrivals[i].c->dur_ns - late->c->dur_ns);

		if (wait >= noise && add_wait(j, worker_of(j, late), worker_of(j, &j->arrivals[i]),
					      fmin(wait, lost)) < 0)
			return -ENOMEM;
	}
	return explain(j, late, lost);
}

static int judge_group(struct judge *j, const struct shift_group *group)
{
	int error = 0;

	j->group = group;
	j->arrivals = calloc(group->member_cnt, sizeof(*j->arrivals));
	j->batch_late_ns = calloc(group->member_cnt, sizeof(*j->batch_late_ns));
	j->owed_ns = calloc(group->member_cnt, sizeof(*j->owed_ns));
	if (j->arrivals == NULL || j->batch_late_ns == NULL || j->owed_ns == NULL)
		error = -ENOMEM;
	for (int64_t k = group->first; k <= group->last && error == 0; k++)
		error = judge_instance(j, k);
	free(j->arrivals);
	free(j->batch_late_ns);
	free(j->owed_ns);
	return error;
}

static int why_cmp(const void *a, const void *b)
{
	const struct blame_why *x = a, *y = b;

	if (x->worker != y->worker)
		return x->worker < y->worker ? -1 : 1;
	return (x->function > y->function) - (x->function < y->function);
}

static int wait_cmp(const void *a, const void *b)
{
	const struct blame_wait *x = a, *y = b;

	if (x->ns < y->ns || x->ns > y->ns)
		return x->ns < y->ns ? 1 : -1;
	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return (x->to > y->to) - (x->to < y->to);
}

double blame_why_ns(const struct blame *blame, uint32_t worker, uint32_t function)
{
	struct blame_why key = { .worker = worker, .function = function };
	const struct blame_why *found = NULL;

	if (blame->why.cnt > 0)
		found = bsearch(&key, blame->why.data, blame->why.cnt, sizeof(key), why_cmp);
	return found != NULL ? found->ns : 0;
}

uint64_t blame_fewest_met(const struct job *job, const struct blame *blame)
{
	uint64_t fewest = UINT64_MAX;

	for (size_t w = 0; w < job->worker_cnt; w++)
		fewest = MIN(fewest, blame->workers[w].matched_cnt);
	return fewest;
}

void blame_sum_waits(const struct blame *blame, const double *weight_of, double *ret_ns)
{
	vec_foreach(wait, &blame->waits)
		ret_ns[wait->to] += wait->ns * weight_of[wait->from];
}

/* Raises of[] to the sums of one group's losses by those workers. Returns where it ends. */
static size_t raise_to_group(const struct blame *blame, const bool *who, size_t first, double *sums,
			     size_t iteration_cnt, double *of)
{
	uint32_t group = blame->losses.data[first].group;

	for (size_t i = 0; i < iteration_cnt; i++)
		sums[i] = 0;
	for (; first < blame->losses.cnt && blame->losses.data[first].group == group; first++) {
		const struct blame_loss *loss = &blame->losses.data[first];

		sums[loss->iteration] += who[loss->worker] ? loss->ns : 0;
	}
	for (size_t i = 0; i < iteration_cnt; i++)
		of[i] = fmax(of[i], sums[i]);
	return first;
}

int blame_cost(const struct job *job, const struct blame *blame, const uint32_t *workers,
	       size_t cnt, double *ret_ns)
{
	_cleanup_free_ bool *who = calloc(job->worker_cnt + 1, sizeof(*who));
	_cleanup_free_ double *of = NULL, *sums = NULL;
	size_t iteration_cnt = 0;
	double sum = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		iteration_cnt = MAX(iteration_cnt, job->workers[w].fp->iteration_cnt);
	of = calloc(iteration_cnt + 1, sizeof(*of));
	sums = calloc(iteration_cnt + 1, sizeof(*sums));
	if (who == NULL || of == NULL || sums == NULL)
		return -ENOMEM;
	for (size_t k = 0; k < cnt; k++)
		who[workers[k]] = true;
	for (size_t i = 0; i < blame->losses.cnt;)
		i = raise_to_group(blame, who, i, sums, iteration_cnt, of);
	for (size_t i = 0; i < iteration_cnt; i++)
		sum += of[i];
	*ret_ns = iteration_cnt > 0 ? sum / (double)iteration_cnt : HUGE_VAL;
	return 0;
}

/*
 * PerfTracker's recorders of one host have one clock. Of other traces the name of the host may be
 * that of many, and the start of the window another event's.
 */
static uint64_t clock_of(const struct fingerprint *fp)
{
	return strcmp(fp->source, "agent") == 0 && fp->host[0] != '\0'
		       ? XXH3_64bits(fp->host, strlen(fp->host))
		       : 0;
}

static int match(const struct job *job, struct arena *arena, struct blame *ret)
{
	_cleanup_free_ struct shift_worker *workers = calloc(job->worker_cnt + 1, sizeof(*workers));

	if (workers == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		const struct fingerprint *fp = job->workers[w].fp;

		workers[w] = (struct shift_worker){ fp->collectives, fp->collective_cnt,
						    clock_of(fp), fp->window_start_wall_ns };
	}
	return shifts_find(workers, job->worker_cnt, arena, &ret->groups, &ret->unmatched_cnt);
}

/* What is asked of every worker must not take a look at all of the others. */
static int find_worst(const struct job *job, struct arena *arena, struct blame *ret)
{
	size_t cnt = 0;

	for (size_t w = 0; w < job->worker_cnt; w++)
		cnt = MAX(cnt, (size_t)job->workers[w].fp->iteration_cnt);
	ret->worst = arena_calloc(arena, cnt + 1, sizeof(*ret->worst));
	if (ret->worst == NULL)
		return -ENOMEM;
	for (uint32_t w = 0; w < job->worker_cnt; w++) {
		for (size_t i = 0; i < job->workers[w].fp->iteration_cnt; i++) {
			double ns = ret->workers[w].iteration_lost_ns[i];
			struct blame_worst *worst = &ret->worst[i];

			if (ns > worst->most_ns)
				*worst = (struct blame_worst){ ns, worst->most_ns, w };
			else
				worst->second_ns = fmax(worst->second_ns, ns);
		}
	}
	return 0;
}

static int index_waits(const struct job *job, struct arena *arena, struct blame *ret)
{
	size_t *first = arena_calloc(arena, job->worker_cnt + 2, sizeof(*first));

	ret->wait_idx = arena_calloc(arena, ret->waits.cnt + 1, sizeof(*ret->wait_idx));
	if (first == NULL || ret->wait_idx == NULL)
		return -ENOMEM;
	/* Shifted by one: after the filling, first[w] is where those of w begin. */
	vec_foreach(wait, &ret->waits)
		first[wait->from + 1]++;
	for (size_t w = 1; w <= job->worker_cnt + 1; w++)
		first[w] += first[w - 1];
	for (size_t i = ret->waits.cnt; i-- > 0;)
		ret->wait_idx[--first[ret->waits.data[i].from + 1]] = (uint32_t)i;
	ret->wait_first = first + 1;
	return 0;
}

int blame_find(const struct job *job, struct arena *arena, struct blame *ret)
{
	struct judge j = { .job = job, .blame = ret };
	int error;

	*ret = (struct blame){ 0 };
	ret->workers = arena_calloc(arena, job->worker_cnt + 1, sizeof(*ret->workers));
	j.last_iteration = arena_calloc(arena, job->worker_cnt + 1, sizeof(int64_t));
	if (ret->workers == NULL || j.last_iteration == NULL)
		return -ENOMEM;
	for (size_t w = 0; w < job->worker_cnt; w++) {
		j.last_iteration[w] = -2;
		ret->workers[w].iteration_lost_ns =
			arena_calloc(arena, job->workers[w].fp->iteration_cnt + 1, sizeof(double));
		if (ret->workers[w].iteration_lost_ns == NULL)
			return -ENOMEM;
	}
	error = match(job, arena, ret);
	for (size_t g = 0; g < ret->groups.cnt && error == 0; g++)
		error = judge_group(&j, &ret->groups.data[j.group_idx = (uint32_t)g]);
	if (ret->why.cnt > 0)
		qsort(ret->why.data, ret->why.cnt, sizeof(*ret->why.data), why_cmp);
	if (ret->waits.cnt > 0)
		qsort(ret->waits.data, ret->waits.cnt, sizeof(*ret->waits.data), wait_cmp);
	if (error == 0)
		error = index_waits(job, arena, ret);
	if (error == 0)
		error = find_worst(job, arena, ret);
	idmap_done(&j.why_of);
	idmap_done(&j.wait_of);
	return error;
}
