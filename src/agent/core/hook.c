/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/hook.h"

#include "agent/core/agent.h"
#include "base/clock.h"
#include "format/shared/recorder.h"

#include <sys/syscall.h>
#include <unistd.h>

#define GC_FLOOR_NS 100000
#define ID_SLOTS 4096u /* power of two */
#define STEP_DEPTH 16u /* steps inside a step: sharding wrappers */
#define NESTED_MAX 16u /* this many unfinished steps: an exception left the outermost */

static __thread uint32_t loader_depth __attribute__((tls_model("initial-exec")));
static __thread uint32_t backward_depth __attribute__((tls_model("initial-exec")));
/* Its address identifies the thread. */
static __thread char self __attribute__((tls_model("initial-exec")));

static struct hook {
	hook_act *act;
	const char *thread; /* the training thread; NULL until the first mark */
	bool thread_sure;   /* final: no other thread replaces it */
	bool optimizers;    /* the process steps optimizers of torch */
	bool loader_seen;   /* a loader was seen since the last step: expect the next one */
	int pending;	    /* action that waits for the loader */
	const void *steps[STEP_DEPTH]; /* under way, outermost first */
	size_t step_cnt, nested;
	const void *scaled; /* the optimizer whose step its gradient scaler has begun */
	int64_t loader_begin_ns, gc_begin_ns;
	struct {
		const void *thing;
		uint16_t id;
	} ids[ID_SLOTS];
	uint32_t id_cnt;
	uint16_t next_id;
} hook;

void hook_attach(hook_act *act)
{
	hook = (struct hook){ .act = act };
}

/*
 * The thread of the first mark if that is the main thread, else the thread that steps: a
 * prefetching thread is replaced by the one that runs the optimizer. Steps in autograd threads
 * don't replace a main thread that loads.
 */
static bool is_training_thread(bool steps)
{
	if (hook.thread == &self) {
		hook.thread_sure = hook.thread_sure || steps;
		return true;
	}
	if (hook.thread != NULL && (!steps || hook.thread_sure))
		return false;
	hook.thread = &self;
	hook.thread_sure = steps || syscall(SYS_gettid) == getpid();
	pt_agent_training_thread();
	return true;
}

/*
 * 1, 2, ... in order of appearance. A new object at a freed object's address gets the same number.
 */
static uint32_t small_id(const void *thing)
{
	uint32_t at = (uint32_t)((uintptr_t)thing >> 4) * 0x9e3779b1u >> 20;

	for (;; at++) {
		at &= ID_SLOTS - 1;
		if (hook.ids[at].thing == thing)
			return hook.ids[at].id;
		if (hook.ids[at].thing == NULL)
			break;
	}
	if (hook.id_cnt >= ID_SLOTS / 2) {
		for (size_t i = 0; i < ID_SLOTS; i++)
			hook.ids[i].thing = NULL;
		hook.id_cnt = 0;
	}
	hook.id_cnt++;
	hook.next_id = (uint16_t)(hook.next_id == UINT16_MAX ? 1 : hook.next_id + 1);
	hook.ids[at].thing = thing;
	hook.ids[at].id = hook.next_id;
	return hook.next_id;
}

static void run_pending(void)
{
	int action = hook.pending;

	hook.pending = AGENT_NONE;
	if (action != AGENT_NONE)
		hook.act(action);
}

/*
 * Begin, end and bounds are placed where the iteration begins: torch.profiler's ranges must not
 * cross the optimizer's own, inside which its hooks run. That place is the next request to the
 * loader on this thread; a loop without a loader acts here.
 */
static void mark(uint32_t kind, int64_t value, uint32_t detail)
{
	int action = pt_agent_mark(kind, value, detail);

	if (action == AGENT_NONE)
		return;
	if ((kind == MARK_OPTIMIZER || kind == MARK_BACKWARD) && hook.loader_seen) {
		run_pending();
		hook.pending = action;
	} else {
		hook.act(action);
	}
}

void hook_loader_begins(const void *dataset)
{
	if (loader_depth++ > 0 || !pt_agent_enabled() || !is_training_thread(false))
		return; /* a loader that iterates another one counts once */
	hook.step_cnt = 0;
	run_pending();
	hook.loader_seen = true;
	mark(MARK_DATALOADER, 0, small_id(dataset));
	hook.loader_begin_ns = clock_mono_ns();
}

void hook_loader_ends(const void *dataset)
{
	if (loader_depth == 0 || --loader_depth > 0 || hook.thread != &self ||
	    hook.loader_begin_ns == 0)
		return;
	mark(MARK_DATALOADER_END, clock_mono_ns() - hook.loader_begin_ns, small_id(dataset));
	hook.loader_begin_ns = 0;
}

static size_t find_step(const void *optimizer)
{
	size_t i = 0;

	while (i < hook.step_cnt && hook.steps[i] != optimizer)
		i++;
	return i;
}

/* True once: the step that a gradient scaler has begun goes on in the optimizer itself. */
static bool is_scaled_step(const void *optimizer)
{
	bool scaled = hook.scaled == optimizer;

	hook.scaled = NULL;
	return scaled && find_step(optimizer) < hook.step_cnt;
}

static void begin_step(const void *optimizer)
{
	if (find_step(optimizer) < hook.step_cnt || hook.step_cnt == STEP_DEPTH)
		hook.step_cnt = 0; /* an exception left its last step */
	hook.steps[hook.step_cnt++] = optimizer;
	if (hook.step_cnt == 1)
		mark(MARK_OPTIMIZER_BEGIN, 0, small_id(optimizer));
}

void hook_optimizer_begins(const void *optimizer)
{
	if (!pt_agent_enabled() || !is_training_thread(true) || is_scaled_step(optimizer))
		return;
	hook.optimizers = true;
	begin_step(optimizer);
}

void hook_optimizer_ends(const void *optimizer)
{
	size_t at = find_step(optimizer);

	if (hook.thread != &self || at == hook.step_cnt)
		return;
	hook.step_cnt = at;
	if (at > 0 && ++hook.nested < NESTED_MAX)
		return; /* inside another optimizer's step */
	hook.step_cnt = hook.nested = 0;
	mark(MARK_OPTIMIZER, 0, small_id(optimizer));
	hook.loader_seen = false;
}

/* A prefetching thread may call compiled functions, too: it does not replace the main thread. */
static bool dispatches(void)
{
	return is_training_thread(hook.thread != &self && syscall(SYS_gettid) == getpid());
}

void hook_dispatch_begins(const void *function)
{
	if (!hook.optimizers && pt_agent_enabled() && dispatches())
		begin_step(function);
}

void hook_dispatch_ends(const void *function)
{
	if (!hook.optimizers)
		hook_optimizer_ends(function);
}

void hook_dispatch_fails(const void *function)
{
	if (!hook.optimizers && hook.thread == &self)
		hook.step_cnt = find_step(function);
}

void hook_scaler_begins(const void *optimizer)
{
	hook.scaled = NULL;
	hook_optimizer_begins(optimizer);
	hook.scaled = optimizer;
}

void hook_backward_begins(void)
{
	backward_depth++;
}

/* A backward pass may run another one: recomputed activations. */
void hook_backward_ends(void)
{
	if (backward_depth == 0 || --backward_depth > 0 || !pt_agent_enabled() ||
	    !is_training_thread(false))
		return;
	mark(MARK_BACKWARD, 0, 0);
}

void hook_iteration(void)
{
	if (pt_agent_enabled() && is_training_thread(true))
		mark(MARK_ITERATION, 0, 0);
}

void hook_gc_begins(void)
{
	hook.gc_begin_ns = clock_mono_ns();
}

/* From any thread: the agent drops colliding marks. */
void hook_gc_ends(uint32_t generation)
{
	int64_t took_ns = clock_mono_ns() - hook.gc_begin_ns;

	if (hook.gc_begin_ns != 0 && took_ns >= GC_FLOOR_NS)
		(void)pt_agent_mark(MARK_GC, took_ns, generation);
}
