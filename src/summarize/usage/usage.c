/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/usage/usage_parts.h"

#include <errno.h>
#include <string.h>

/*
 * Launch delays by octave, 64 cells each: a cell is 1.6 % wide at most. A delay is below 2^40 ns.
 */
#define CELLS_SHIFT 6
#define OCTAVES 40
#define DELAY_CNT ((size_t)(OCTAVES + 1) << CELLS_SHIFT)

/* Clocks of host and device differ by as much within one trace. */
#define CLOCK_SLACK_NS 20000

/* The sweep's position, and until when each class has work. */
struct sweep {
	struct usage_look *look;
	int64_t now_ns;
	int64_t end_ns[CLASS_CNT];
};

static int64_t clamp_ns(int64_t value, int64_t most)
{
	return MIN(MAX(value, 0), most);
}

/* The call that launched an execution; NULL: unknown. */
static const struct event *launch_of(const struct pass *p, const struct crit_exec *exec)
{
	const struct event *e = &p->trace->events[exec->event];

	return e->parent != EVENT_NONE ? &p->trace->events[e->parent] : NULL;
}

struct fp_iteration_use *usage_iteration(struct usage_look *look, int64_t time_ns)
{
	const struct fingerprint *fp = look->fp;
	int64_t at_ns = time_ns - look->p->window.start_ns;
	size_t low = 0, high = fp->use_cnt;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (fp->iterations[mid].start_ns <= at_ns)
			low = mid + 1;
		else
			high = mid;
	}
	return low > 0 ? &fp->uses[low - 1] : NULL;
}

/* A gap until work that a call launches: the host had not launched it before the call's end. */
static int add_gap(struct sweep *s, int64_t start_ns, int64_t end_ns, const struct event *launch)
{
	struct fp_iteration_use *use = usage_iteration(s->look, start_ns);
	int64_t starved_ns = 0;

	if (launch != NULL)
		starved_ns = clamp_ns(event_end_ns(launch) - start_ns, end_ns - start_ns);
	s->look->fp->usage.starved_ns += starved_ns;
	if (use != NULL)
		use->starved_ns += starved_ns;
	return gaps_add(&s->look->gaps, start_ns, end_ns);
}

static void add_memory_alone(struct sweep *s, int64_t alone_ns)
{
	struct fp_iteration_use *use = usage_iteration(s->look, s->now_ns);

	s->look->fp->usage.memory_alone_ns += alone_ns;
	if (use != NULL)
		use->memory_alone_ns += alone_ns;
}

/* Accounts for the time until the next execution begins, or the window ends. */
static int sweep_until(struct sweep *s, int64_t until_ns, const struct event *launch)
{
	struct fp_usage *use = &s->look->fp->usage;
	int64_t length = until_ns - s->now_ns;
	int64_t compute = clamp_ns(s->end_ns[CLASS_COMPUTE] - s->now_ns, length);
	int64_t memory = clamp_ns(s->end_ns[CLASS_MEMORY] - s->now_ns, length);
	int64_t comm = clamp_ns(s->end_ns[CLASS_COMM] - s->now_ns, length);
	int64_t kernels = MAX(compute, comm), copies = MAX(compute, memory);
	int64_t busy = MAX(kernels, memory), from_ns = s->now_ns + busy;

	if (length <= 0)
		return 0;
	use->busy_ns += busy;
	use->compute_ns += compute;
	use->memory_ns += memory;
	use->comm_ns += comm;
	if (memory > kernels)
		add_memory_alone(s, memory - kernels);
	use->comm_alone_ns += MAX(comm - copies, 0);
	s->now_ns = until_ns;
	return busy < length ? add_gap(s, from_ns, until_ns, launch) : 0;
}

static size_t cell_of(uint64_t delay_ns)
{
	int octave =
		delay_ns >> CELLS_SHIFT == 0 ? 0 : 63 - __builtin_clzll(delay_ns) - CELLS_SHIFT;
	size_t cell = ((size_t)octave << CELLS_SHIFT) + (size_t)(delay_ns >> octave);

	return MIN(cell, DELAY_CNT - 1);
}

/* The middle of a cell, whose numbers begin at 0 and go on at 1 << CELLS_SHIFT in each octave. */
static int64_t delay_of(size_t cell)
{
	size_t octave = cell >> CELLS_SHIFT > 1 ? (cell >> CELLS_SHIFT) - 1 : 0;
	int64_t low = (int64_t)(cell - (octave << CELLS_SHIFT)) << octave;

	return low + ((INT64_C(1) << octave) >> 1);
}

static void count_kernel(struct usage_look *look, const struct event *e, const struct event *launch)
{
	struct fp_usage *use = &look->fp->usage;

	use->kernel_cnt++;
	use->short_cnt += e->dur_ns < USAGE_SHORT_NS;
	if (launch == NULL)
		return;
	use->launched_cnt++;
	/* A kernel that begins before its launch shows that the clocks differ. */
	use->blocking_cnt +=
		launch->start_ns <= e->start_ns && event_end_ns(e) <= event_end_ns(launch);
	look->delays[cell_of((uint64_t)MAX(e->start_ns - launch->start_ns, 0))]++;
}

static int sweep_all(struct usage_look *look)
{
	const struct pass *p = look->p;
	struct sweep s = { .look = look, .now_ns = p->window.start_ns };

	vec_foreach(exec, &p->execs) {
		const struct event *e = &p->trace->events[exec->event];
		const struct event *launch = launch_of(p, exec);
		int error;

		if (!is_device_exec(e))
			continue;
		error = sweep_until(&s, exec->start_ns, launch);
		if (error < 0)
			return error;
		s.end_ns[exec->class] = MAX(s.end_ns[exec->class], exec->end_ns);
		if (e->kind == KIND_KERNEL)
			count_kernel(look, e, launch);
	}
	return sweep_until(&s, p->window.end_ns, NULL);
}

static int64_t median_delay(const struct usage_look *look)
{
	uint64_t seen = 0, cnt = look->fp->usage.launched_cnt;

	for (size_t cell = 0; cell < DELAY_CNT && cnt > 0; cell++) {
		seen += look->delays[cell];
		if (2 * seen >= cnt)
			return delay_of(cell);
	}
	return -1;
}

void usage_charge_call(struct usage_look *look, const struct event *call, bool launches)
{
	struct fp_iteration_use *use = usage_iteration(look, call->start_ns), none = { 0 };
	int64_t end_ns = event_end_ns(call);
	struct gap *gap = gaps_last(&look->gaps, add_saturated(end_ns, CLOCK_SLACK_NS));
	int64_t waited_ns;

	/* It waited only if the device worked when it began, and was done when it ended. */
	if (gap == NULL || gap->charged || gap->start_ns <= call->start_ns || gap->end_ns < end_ns)
		return;
	gap->charged = true;
	waited_ns = MIN(end_ns, gap->start_ns) - call->start_ns;
	waited_ns -= gaps_within(&look->gaps, call->start_ns, MIN(end_ns, gap->start_ns));
	waited_ns = MIN(waited_ns, gap->end_ns - gap->start_ns);
	use = use != NULL ? use : &none;
	if (launches) {
		look->fp->usage.launch_loss_ns += waited_ns;
		use->launch_loss_ns += waited_ns;
	} else {
		look->fp->usage.sync_loss_ns += waited_ns;
		look->fp->usage.sync_cnt++;
		use->sync_loss_ns += waited_ns;
	}
}

/* Charges the launches and copies that the host waited for. */
static void charge_launches(struct usage_look *look)
{
	const struct pass *p = look->p;

	vec_foreach(exec, &p->execs) {
		const struct event *e = &p->trace->events[exec->event];
		const struct event *launch = launch_of(p, exec);

		if (launch == NULL || !is_device_exec(e) || launch->start_ns > e->start_ns ||
		    event_end_ns(e) > event_end_ns(launch))
			continue;
		usage_charge_call(look, launch, e->kind == KIND_KERNEL);
	}
}

static int make_iterations(struct fingerprint *fp)
{
	fp->uses = arena_calloc(&fp->arena, fp->iteration_cnt + 1, sizeof(*fp->uses));
	if (fp->uses == NULL)
		return -ENOMEM;
	fp->use_cnt = fp->iteration_cnt;
	return 0;
}

static void set_busy(struct usage_look *look)
{
	struct fingerprint *fp = look->fp;
	int64_t start_ns = look->p->window.start_ns;

	for (size_t i = 0; i < fp->iteration_cnt; i++) {
		int64_t from_ns = start_ns + fp->iterations[i].start_ns;
		int64_t until_ns = from_ns + fp->iterations[i].dur_ns;

		fp->uses[i].busy_ns =
			until_ns - from_ns - gaps_within(&look->gaps, from_ns, until_ns);
	}
}

static int look_at_device(struct usage_look *look)
{
	int error = make_iterations(look->fp);

	if (error == 0)
		error = sweep_all(look);
	if (error < 0)
		return error;
	look->fp->usage.known = true;
	look->fp->usage.launch_delay_ns = median_delay(look);
	set_busy(look);
	charge_launches(look);
	return totals_add(look);
}

int usage_add(struct pass *p, struct fingerprint *fp)
{
	_cleanup_free_ uint64_t *delays = NULL;
	struct usage_look look = { .p = p, .fp = fp };
	int error;

	fp->usage.launch_delay_ns = -1;
	if (!p->trace->meta.has_device)
		return 0;
	delays = calloc(DELAY_CNT, sizeof(*delays));
	if (delays == NULL)
		return -ENOMEM;
	look.delays = delays;
	error = look_at_device(&look);
	vec_done(&look.gaps);
	return error;
}
