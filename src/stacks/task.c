/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/task.h"

#include "pyread/pylines.h"
#include "stacks/mixing.h"
#include "stacks/native/resolve.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

enum { STATUS_BYTES = 4096, KERNEL_BYTES = 4096, KERNEL_FRAMES = 32, READINGS = 3 };

static void read_channel(const struct task *task)
{
	char text[sizeof(task->thread->channel)];

	if (taskfiles_read_of(task->proc, task->thread->tid, "wchan", text, sizeof(text)) > 0 &&
	    strcmp(text, "0") != 0)
		(void)snprintf(task->thread->channel, sizeof(task->thread->channel), "%s", text);
}

void task_read_kernel(struct task *task, struct region *region)
{
	char text[KERNEL_BYTES], names[KERNEL_BYTES];

	read_channel(task);
	if (taskfiles_read_of(task->proc, task->thread->tid, "stack", text, sizeof(text)) > 0 &&
	    taskfiles_parse_kernel(text, names, sizeof(names), KERNEL_FRAMES) > 0)
		task->thread->kernel = region_text(region, names, strlen(names));
}

static void read_call(const struct task *task, struct taskfiles_syscall *ret)
{
	char text[256];

	*ret = (struct taskfiles_syscall){ .where = TASK_UNKNOWN };
	if (taskfiles_read_of(task->proc, task->thread->tid, "syscall", text, sizeof(text)) <= 0 ||
	    taskfiles_parse_syscall(text, ret) < 0)
		ret->where = TASK_UNKNOWN;
}

int task_open(struct task *task, int proc, uint32_t tid, struct stacks_thread *thread)
{
	char text[STATUS_BYTES];
	struct taskfiles_status status;
	int error;

	*task = (struct task){ .thread = thread, .proc = proc, .end = UNWIND_NO_MEMORY };
	thread->tid = tid;
	error = taskfiles_read_of(task->proc, task->thread->tid, "status", text, sizeof(text));
	if (error >= 0)
		error = taskfiles_parse_status(text, &status);
	if (error < 0)
		return error == -ESRCH ? -ENOENT : error;
	thread->own_tid = status.own_pid;
	thread->state = status.state;
	thread->switches = status.waited + status.preempted;
	thread->why_incomplete = "";
	thread->end = STACKS_NONE;
	(void)snprintf(thread->name, sizeof(thread->name), "%.15s", status.name);
	read_call(task, &task->call);
	return 0;
}

void task_done(struct task *task)
{
	vec_done(&task->pcs);
	vec_done(&task->codes);
	vec_done(&task->places);
}

/* Gives back what a stack did not need of an array: the next one takes the same pages. */
#define SHRINK(v)                                                                                \
	do {                                                                                     \
		void *_data = realloc((v)->data, MAX((v)->cnt, (size_t)1) * sizeof(*(v)->data)); \
                                                                                                 \
		if (_data != NULL) {                                                             \
			(v)->data = _data;                                                       \
			(v)->cap = MAX((v)->cnt, (size_t)1);                                     \
		}                                                                                \
	} while (0)

/* Native. */

static void walk(struct task *task, struct unwinder *unwinder, const struct registers *start,
		 struct stackcopy *stack)
{
	task->pcs.cnt = 0;
	if (vec_reserve(&task->pcs, STACKS_FRAMES_MAX) < 0)
		return;
	task->pcs.cnt = unwinder_walk(unwinder, start, stack, task->pcs.data, STACKS_FRAMES_MAX,
				      &task->end);
	SHRINK(&task->pcs);
}

void task_unwind_stopped(struct task *task, struct unwinder *unwinder, struct stop_thread *stopped)
{
	static const char *const WHY[] = {
		[STOP_PENDING] = "the thread was not stopped",
		[STOP_DONE] = NULL,
		[STOP_REFUSED] = "the thread may not be stopped: another process traces it",
		[STOP_LATE] = "the thread did not stop within the limit",
		[STOP_GONE] = "the thread ended",
	};

	task->refused = WHY[stopped->result];
	if (stopped->result == STOP_GONE)
		task->thread->state = 'X';
	if (stopped->result != STOP_DONE)
		return;
	task->thread->stopped = true;
	if (stopped->registers.known != 0)
		walk(task, unwinder, &stopped->registers, &stopped->stack);
}

/* Python. */

void task_walk_python(struct task *task, const struct pytarget *target)
{
	struct pywalk walk = { .source = target->source, .cap = STACKS_FRAMES_MAX };

	task->python_done = false;
	if (task->tstate == 0 || vec_reserve(&task->codes, STACKS_FRAMES_MAX) < 0 ||
	    vec_reserve(&task->places, STACKS_FRAMES_MAX) < 0)
		return;
	walk.codes = task->codes.data;
	walk.places = task->places.data;
	task->python_done = pywalk_frames(&walk, task->tstate);
	task->codes.cnt = task->places.cnt = task->python_done ? walk.depth : 0;
	task->python_cut = walk.truncated;
	SHRINK(&task->codes);
	SHRINK(&task->places);
}

/* Whether the stack is still as in before[cnt]. */
static bool same_stack(const struct task *task, const uintptr_t *before, size_t cnt)
{
	return task->python_done && task->codes.cnt == cnt &&
	       (cnt == 0 || memcmp(task->codes.data, before, cnt * sizeof(*before)) == 0);
}

void task_walk_python_twice(struct task *task, const struct pytarget *target)
{
	_cleanup_free_ uintptr_t *before = malloc(STACKS_FRAMES_MAX * sizeof(*before));
	size_t cnt;

	task_walk_python(task, target);
	for (int i = 0; i < READINGS && before != NULL && task->tstate != 0; i++) {
		cnt = task->python_done ? task->codes.cnt : 0;
		if (cnt > 0)
			memcpy(before, task->codes.data, cnt * sizeof(*before));
		task_walk_python(task, target);
		if (same_stack(task, before, cnt))
			return;
	}
}

/* Both, without a stop. */

static bool same_call(const struct taskfiles_syscall *a, const struct taskfiles_syscall *b)
{
	return a->where == b->where && a->number == b->number && a->sp == b->sp && a->pc == b->pc &&
	       memcmp(a->args, b->args, sizeof(a->args)) == 0;
}

void task_read_blocked(struct task *task, struct unwinder *unwinder, const struct pytarget *python)
{
	const struct taskfiles_syscall *call = &task->call;
	const struct module_area *area = modules_area(unwinder->modules, (uintptr_t)call->sp);
	const pid_t tid = (pid_t)task->thread->tid;
	struct registers registers = { .known = 0 };
	struct taskfiles_syscall after;
	struct stackcopy stack;

	task->wants_stop = true;
	if ((call->where != TASK_SYSCALL && call->where != TASK_BLOCKED) || area == NULL)
		return;
	registers_set(&registers, REGISTER_SP, call->sp);
	registers_set(&registers, REGISTER_PC, call->pc);
	if (stackcopy_take(&stack, tid, (uintptr_t)call->sp, area->end, STACKCOPY_FIRST) == 0) {
		stack.live = tid;
		walk(task, unwinder, &registers, &stack);
	}
	stackcopy_done(&stack);
	if (python->present)
		task_walk_python(task, python);
	read_call(task, &after);
	if (same_call(call, &after)) {
		task->wants_stop = unwind_wants_stop(task->end) || task->pcs.cnt == 0;
		return;
	}
	/* It went on meanwhile: what was read is of two moments. */
	task->pcs.cnt = 0;
	task->python_done = false;
}

/* Joining. */

static void name_python(struct pytarget *target, struct region *region, const struct task *task,
			size_t index, struct mixing_python *ret)
{
	const struct pytarget_code *code = pytarget_code(target, region, task->codes.data[index]);

	*ret = (struct mixing_python){
		.frame = { .kind = STACKS_PYTHON },
		.entry = task->places.data[index].entry,
	};
	if (code == NULL)
		return;
	ret->frame.function = code->function;
	ret->frame.file = code->file;
	ret->frame.line = code->table == NULL
				  ? code->first_line
				  : pylines_find(target->minor, code->first_line, code->table,
						 code->table_len, task->places.data[index].instr);
}

static void tell_end(struct task *task)
{
	static const char *const WHY[] = {
		[UNWIND_COMPLETE] = "",
		[UNWIND_CUT] = "deeper than 1024 frames",
		[UNWIND_NO_CODE] = "the caller's address is outside all code",
		[UNWIND_NO_RULES] = "code without unwind information",
		[UNWIND_NO_REGISTER] = "a register of the blocked thread is not known",
		[UNWIND_NO_MEMORY] = "deeper than the 256 KB of stack that are read",
		[UNWIND_LOOP] = "the stack leads back into itself",
	};
	struct stacks_thread *thread = task->thread;

	thread->why_incomplete = WHY[task->end];
	if (task->end != UNWIND_COMPLETE && task->refused != NULL)
		thread->why_incomplete = task->refused;
	if (thread->frame_cnt == 0)
		thread->end = STACKS_NONE;
	else if (task->end == UNWIND_COMPLETE && !task->python_cut)
		thread->end = STACKS_WHOLE;
	else
		thread->end = task->end == UNWIND_CUT ? STACKS_CUT : STACKS_BROKEN;
}

int task_join(struct task *task, struct pytarget *target, const struct resolver *resolver,
	      struct region *region)
{
	const size_t native_cnt = task->pcs.cnt, python_cnt = task->codes.cnt;
	_cleanup_free_ const struct stacks_frame **native = calloc(native_cnt + 1, sizeof(*native));
	_cleanup_free_ struct mixing_python *python = calloc(python_cnt + 1, sizeof(*python));
	struct stacks_frame *frames =
		region_alloc(region, (native_cnt + python_cnt) * sizeof(*frames));

	if (native == NULL || python == NULL || frames == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < native_cnt; i++)
		native[i] = resolver_frame(resolver, task->pcs.data[i]);
	for (size_t i = 0; i < python_cnt; i++)
		name_python(target, region, task, i, &python[i]);
	task->thread->frame_cnt = mixing_join(native, native_cnt, task->end == UNWIND_COMPLETE,
					      python, python_cnt, frames, &task->thread->mixed);
	task->thread->frames = frames;
	task->thread->runs_python = task->tstate != 0 && python_cnt > 0;
	tell_end(task);
	return 0;
}
