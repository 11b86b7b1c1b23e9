/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/stackfacts.h"

#include "base/str.h"
#include "base/text/pythoncode.h"
#include "hang/hangrules.h"
#include "model/place/stacknaming.h"

#include <errno.h>
#include <string.h>

/* LIVES_SWITCHES: a thread that waits for one thing has a few context switches in two seconds. */
enum { HOLDERS_MAX = 3, DEPTH_MAX = 64, LIVES_SWITCHES = 20 };

/* Parts of native names, as ELF files and as debuggers have them. */
static const char *const COLLECTIVES[] = {
	"4c10d",	 "c10d::",   "4gloo",	      "gloo::", "ncclGroupEnd",
	"ncclAllReduce", "MPI_Wait", "MPI_Allreduce", NULL,
};
static const char *const GPU_WAITS[] = {
	"cuStreamSynchronize",	"cudaStreamSynchronize",
	"cuEventSynchronize",	"cudaEventSynchronize",
	"cuCtxSynchronize",	"cudaDeviceSynchronize",
	"hipStreamSynchronize", "hipDeviceSynchronize",
	"hipEventSynchronize",	NULL,
};
static const char *const PYTHON_LOCKS[] = { "PyThread_acquire_lock", "_PyMutex_Lock", NULL };

static bool has_part(const char *name, const char *const *parts)
{
	for (; name != NULL && *parts != NULL; parts++)
		if (strstr(name, *parts) != NULL)
			return true;
	return false;
}

/* Whether a native frame has one of the names, of those inside the innermost Python frame or of all. */
static bool calls(const struct stacks_thread *thread, const char *const *parts, bool innermost)
{
	for (size_t i = 0; i < thread->frame_cnt; i++) {
		const struct stacks_frame *frame = &thread->frames[i];

		if (frame->kind == STACKS_PYTHON && innermost && thread->mixed)
			return false;
		if (frame->kind == STACKS_NATIVE && has_part(frame->function, parts))
			return true;
	}
	return false;
}

static const struct stacks_thread *training_thread(const struct stacks_process *process)
{
	for (size_t i = 0; process != NULL && i < process->thread_cnt; i++)
		if (process->threads[i].tid == process->pid)
			return &process->threads[i];
	return process != NULL && process->thread_cnt > 0 ? &process->threads[0] : NULL;
}

static const struct stacks_thread *thread_of(const struct stacks_process *process, uint32_t tid)
{
	for (size_t i = 0; i < process->thread_cnt; i++)
		if (process->threads[i].tid == tid || process->threads[i].own_tid == tid)
			return &process->threads[i];
	return NULL;
}

/* Whether two samples show it in the same functions; true of one sample. */
static bool stays(const struct stacks_process *process, const struct stacks_thread *thread)
{
	uint32_t python = 0;

	for (size_t i = 0; i < thread->frame_cnt; i++)
		python += thread->frames[i].kind == STACKS_PYTHON;
	return !process->twice || !thread->moved || (python > 0 && thread->common_cnt == python);
}

static void append_place(struct str *out, const struct stacks_thread *thread)
{
	const struct stacks_frame *frame = stacknaming_users(thread);

	if (frame == NULL)
		str_append(out, thread->role[0] != '\0' ? thread->role : "no known function");
	else
		stacknaming_append(out, frame);
}

/* --- locks --- */

static void say_owner(struct str *out, const struct stacks_process *process,
		      const struct stacks_thread *thread)
{
	const struct stacks_thread *owner = thread_of(process, thread->owner_tid);

	str_printf(out, "waits for a mutex that thread %u holds", thread->owner_tid);
	if (owner == thread) {
		str_append(out, ": the thread itself");
	} else if (owner != NULL) {
		str_append(out, ", which is in ");
		append_place(out, owner);
	}
}

static void say_gil(struct str *out, const struct stacks_process *process)
{
	str_append(out, "waits for the interpreter lock (GIL)");
	for (size_t i = 0; i < process->thread_cnt; i++) {
		const struct stacks_thread *thread = &process->threads[i];

		if (thread->gil != STACKS_GIL_HOLDS)
			continue;
		str_printf(out, ", which thread %u holds in ", thread->tid);
		append_place(out, thread);
		return;
	}
}

/* Python's locks do not record an owner: threads that run the user's code can have it. */
static void say_python_lock(struct str *out, const struct stacks_process *process,
			    const struct stacks_thread *waiter)
{
	size_t cnt = 0;

	str_append(out, "waits for a lock of Python");
	for (size_t i = 0; i < process->thread_cnt && cnt < HOLDERS_MAX; i++) {
		const struct stacks_thread *thread = &process->threads[i];
		const struct stacks_frame *frame =
			thread != waiter ? stacknaming_own(thread) : NULL;

		if (frame == NULL)
			continue;
		str_append(out, cnt++ == 0 ? "; other threads that can hold it: " : ", ");
		str_printf(out, "%u in ", thread->tid);
		stacknaming_append(out, frame);
	}
	if (cnt == 0)
		str_append(out,
			   "; no other thread runs code of the user: it holds the lock itself, or "
			   "the holder has ended");
}

/* Whether its innermost Python function takes a lock itself, not in a queue or an event. */
static bool takes_python_lock(const struct stacks_thread *thread)
{
	const struct stacks_frame *frame = stacknaming_innermost(thread);
	struct str name = { 0 };
	bool users;

	if (frame == NULL || !calls(thread, PYTHON_LOCKS, true))
		return false;
	stacknaming_append(&name, frame);
	users = str_error(&name) == 0 && pythoncode_is_users(str_borrow(&name));
	str_done(&name);
	return users;
}

static bool find_lock(struct str *says, const struct stacks_process *process,
		      const struct stacks_thread *thread)
{
	if (!stays(process, thread))
		return false;
	if (thread->owner_tid != 0)
		say_owner(says, process, thread);
	else if (thread->gil == STACKS_GIL_WAITS && process->twice)
		say_gil(says, process);
	else if (takes_python_lock(thread))
		say_python_lock(says, process, thread);
	else
		return false;
	return true;
}

/* --- loops --- */

static bool runs(char state)
{
	return state == 'R';
}

static bool find_loop(struct str *says, const struct stacks_process *process,
		      const struct stacks_thread *thread)
{
	if (!process->twice || !runs(thread->state) || !runs(thread->state_before) ||
	    thread->common_cnt == 0 || thread->call[0] != '\0')
		return false;
	str_append(says, "ran in both of two samples");
	if (!stays(process, thread)) {
		const struct stacks_frame *frame = stacknaming_common(thread);

		str_append(says, ", each time below ");
		if (frame != NULL)
			stacknaming_append(says, frame);
	}
	return true;
}

/* --- the loader's workers --- */

/* "f > <system call recvfrom> (descriptor 5: ...)" of a worker that works; "": it has nothing to do. */
static void say_child(struct str *out, const struct stacks_process *child)
{
	const struct stacks_thread *thread = training_thread(child);
	const struct stacks_frame *frame = thread != NULL ? stacknaming_of_loader(thread) : NULL;

	if (frame == NULL)
		return;
	stacknaming_append(out, frame);
	if (thread->call[0] != '\0')
		str_printf(out, " > <system call %s>", thread->call);
	if (thread->waits[0] != '\0')
		str_printf(out, " (%s)", thread->waits);
}

static void find_child(struct str *out, const struct hang_record *record)
{
	for (size_t i = 0; i < record->child_cnt && out->len == 0; i++)
		say_child(out, record->children[i]);
}

/* --- what it waits for --- */

/* A dump of a debugger has no states: the innermost function shows that a thread sleeps. */
static bool sleeps(const struct stacks_thread *thread)
{
	static const char *const calls_of_libc[] = { "futex", "poll",	   "_wait", "select",
						     "read",  "nanosleep", "recv",  NULL };

	if (thread->state != '\0')
		return thread->state != 'R';
	return thread->frame_cnt > 0 && thread->frames[0].kind == STACKS_NATIVE &&
	       has_part(thread->frames[0].function, calls_of_libc);
}

static int find_leaf(const struct stacks_thread *thread, struct arena *arena, const char **ret)
{
	*ret = "";
	if (thread->call[0] != '\0')
		*ret = arena_printf(arena, "<system call %s>", thread->call);
	else if (calls(thread, GPU_WAITS, false))
		*ret = "<wait for its GPU>"; /* which may spin */
	else if (sleeps(thread))
		*ret = "<sleeping>";
	return *ret != NULL ? 0 : -ENOMEM;
}

/* --- all of it --- */

static uint32_t find_facts(struct str *says, const struct stacks_process *process,
			   const struct stacks_thread *thread)
{
	uint32_t facts = 0;

	if (process->tracer != 0 && (process->state == 't' || thread->state == 't')) {
		str_printf(says, "held by process %u", process->tracer);
		return HANG_TRACED;
	}
	if (thread->state == 'T')
		return HANG_STOPPED;
	if (thread->state == 'D')
		facts |= HANG_IN_KERNEL;
	if (calls(thread, GPU_WAITS, false)) {
		str_append(says, "waits for its GPU");
		return facts | HANG_GPU;
	}
	if (find_lock(says, process, thread))
		return facts | HANG_LOCK;
	if (find_loop(says, process, thread))
		return facts | HANG_LOOP | (stays(process, thread) ? 0 : HANG_MOVES);
	if (process->twice && (!stays(process, thread) || thread->switched >= LIVES_SWITCHES))
		facts |= HANG_MOVES;
	if (thread->waits[0] != '\0')
		str_printf(says, "waits in %s: %s", thread->call, thread->waits);
	if (thread->kernel != NULL && thread->state == 'D')
		str_printf(says, "%sin the kernel's %.*s", says->len > 0 ? ", " : "",
			   (int)strcspn(thread->kernel, "\n"), thread->kernel);
	else if (thread->channel[0] != '\0' && thread->state == 'D')
		str_printf(says, "%sin the kernel's %s", says->len > 0 ? ", " : "",
			   thread->channel);
	return facts;
}

static int keep(struct arena *arena, struct str *text, const char **ret)
{
	const char *copy = str_error(text) == 0 ? arena_strdup(arena, str_borrow(text)) : NULL;

	str_done(text);
	if (copy == NULL)
		return -ENOMEM;
	*ret = copy;
	return 0;
}

int stackfacts_find(const struct hang_record *record, struct arena *arena, struct stackfacts *ret)
{
	const struct stacks_thread *thread = training_thread(record->stacks);
	struct str says = { 0 }, child = { 0 }, stack = { 0 };
	int error;

	*ret = (struct stackfacts){ .facts = record->shown,
				    .in_collective = record->in_collective,
				    .stack = "",
				    .leaf = "",
				    .says = record->says,
				    .child = record->child };
	if (thread == NULL)
		return 0;
	ret->facts = find_facts(&says, record->stacks, thread);
	ret->in_collective = calls(thread, COLLECTIVES, true);
	if (ret->in_collective)
		ret->facts &= ~(uint32_t)(HANG_LOOP | HANG_MOVES);
	find_child(&child, record);
	stacknaming_stack(&stack, thread, DEPTH_MAX);
	error = find_leaf(thread, arena, &ret->leaf);
	if (keep(arena, &says, &ret->says) < 0)
		error = -ENOMEM;
	if (keep(arena, &child, &ret->child) < 0 || keep(arena, &stack, &ret->stack) < 0)
		error = -ENOMEM;
	return error;
}
