/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stacktext.h"

#include "base/text/clean.h"

#include <errno.h>
#include <string.h>

enum { COMMAND_CELLS = 100, TIDS_SHOWN = 8 };

void stacktext_headline(struct str *out, const struct stacks_process *process)
{
	str_printf(out, "process %u", process->pid);
	if (process->own_pid != 0 && process->own_pid != process->pid)
		str_printf(out, " (%u in its container)", process->own_pid);
	if (process->rank >= 0)
		str_printf(out, ", rank %d", process->rank);
	if (process->state != '\0')
		str_printf(out, ", %s", stackstate_word(process->state));
	if (process->tracer != 0)
		str_printf(out, ", traced by process %u", process->tracer);
	if (process->thread_cnt > 0)
		str_printf(out, ", %zu thread%s", process->thread_cnt,
			   plural((double)process->thread_cnt));
	if (process->python[0] != '\0')
		str_printf(out, ", Python %s", process->python);
	str_append(out, ": ");
	if (process->command[0] != '\0')
		clean_append_short(out, process->command, COMMAND_CELLS);
	else
		str_printf(out, "[%s]", process->name);
}

static bool same_frame(const struct stacks_frame *a, const struct stacks_frame *b)
{
	return a->kind == b->kind && a->line == b->line && a->offset == b->offset &&
	       a->function == b->function && a->file == b->file;
}

/* Of one process: texts are compared by their addresses, which resolver and names share. */
static bool same_thread(const struct stacks_thread *a, const struct stacks_thread *b)
{
	if (a->state != b->state || a->gil != b->gil || a->owner_tid != b->owner_tid ||
	    a->end != b->end || a->frame_cnt != b->frame_cnt || strcmp(a->role, b->role) != 0 ||
	    strcmp(a->name, b->name) != 0 || strcmp(a->call, b->call) != 0 ||
	    strcmp(a->waits, b->waits) != 0)
		return false;
	for (size_t i = 0; i < a->frame_cnt; i++)
		if (!same_frame(&a->frames[i], &b->frames[i]))
			return false;
	return true;
}

static void append_tids(struct str *out, const struct stacks_process *process, size_t first,
			const bool *of_group, size_t cnt)
{
	size_t shown = 0;

	str_printf(out, "  thread%s", plural((double)cnt));
	for (size_t i = first; i < process->thread_cnt && shown < TIDS_SHOWN; i++)
		if (i == first || of_group[i])
			str_printf(out, "%s %u", shown++ > 0 ? "," : "", process->threads[i].tid);
	if (cnt > shown)
		str_printf(out, ", ... (%zu in all)", cnt);
}

static void append_frames(struct str *out, const struct stacks_thread *thread,
			  const struct stackview *view, struct stacknames *names)
{
	_cleanup_free_ uint32_t *shown = calloc(thread->frame_cnt + 1, sizeof(*shown));
	size_t cnt, again;

	if (shown == NULL) {
		out->error = -ENOMEM;
		return;
	}
	cnt = stackview_pick(view, thread, shown);
	for (size_t i = 0; i < cnt; i += again) {
		const struct stacks_frame *frame = &thread->frames[shown[i]];

		for (again = 1;
		     i + again < cnt && same_frame(frame, &thread->frames[shown[i + again]]);
		     again++)
			;
		str_printf(out, "    %3zu  ", i);
		stackframe_append(out, names, frame);
		if (again > 1)
			str_printf(out, "  [%zu times]", again);
		str_append(out, "\n");
	}
	if (cnt == 0 && thread->frame_cnt > 0)
		str_append(out, "         (no frames of this kind)\n");
}

/* The kernel's part, of threads for which it matters: one line. */
static void append_kernel(struct str *out, const struct stacks_thread *thread, bool all)
{
	if (thread->kernel == NULL || (thread->state != 'D' && !all))
		return;
	str_append(out, "      kernel: ");
	for (const char *p = thread->kernel; *p != '\0'; p++) {
		if (*p != '\n')
			str_append_char(out, *p);
		else if (p[1] != '\0')
			str_append(out, " < ");
	}
	str_append(out, "\n");
}

static void append_thread(struct str *out, const struct stacks_process *process, size_t index,
			  const bool *of_group, size_t cnt)
{
	const struct stacks_thread *thread = &process->threads[index];

	append_tids(out, process, index, of_group, cnt);
	str_printf(out, " %s", thread->role);
	if (strcmp(thread->name, thread->role) != 0) {
		str_append(out, " \"");
		clean_append(out, thread->name);
		str_append(out, "\"");
	}
	str_append(out, ": ");
	stackstate_append(out, thread);
	if (process->twice)
		str_append(out, thread->moved ? ", moved" : ", did not move");
	str_append(out, "\n");
}

static void append_remarks(struct str *out, const struct stacks_thread *thread)
{
	if (thread->end == STACKS_BROKEN || thread->end == STACKS_CUT)
		str_printf(out, "         (outer native frames are missing: %s)\n",
			   thread->why_incomplete);
	else if (thread->end == STACKS_NONE && thread->frame_cnt == 0)
		str_printf(out, "         (no frames: %s)\n", thread->why_incomplete);
	if (!thread->mixed && thread->runs_python)
		str_append(out,
			   "         (the Python frames could not be placed between the native "
			   "ones)\n");
}

static void append_threads(struct str *out, const struct stacks_process *process,
			   const struct stackview *view, struct stacknames *names)
{
	_cleanup_free_ bool *done = calloc(process->thread_cnt + 1, sizeof(*done));
	_cleanup_free_ bool *same = calloc(process->thread_cnt + 1, sizeof(*same));

	for (size_t i = 0; done != NULL && same != NULL && i < process->thread_cnt; i++) {
		size_t cnt = 1;

		if (done[i])
			continue;
		memset(same, 0, process->thread_cnt * sizeof(*same));
		for (size_t j = i + 1; j < process->thread_cnt; j++)
			if (!done[j] && same_thread(&process->threads[i], &process->threads[j])) {
				same[j] = done[j] = true;
				cnt++;
			}
		str_append(out, "\n");
		append_thread(out, process, i, same, cnt);
		append_kernel(out, &process->threads[i], view->all);
		append_frames(out, &process->threads[i], view, names);
		append_remarks(out, &process->threads[i]);
	}
}

static void append_children(struct str *out, const struct stacks_process *process)
{
	if (process->child_cnt > 0)
		str_append(out, "\n");
	for (size_t i = 0; i < process->child_cnt; i++) {
		const struct stacks_child *child = &process->children[i];

		str_printf(out, "  child %u, %s: ", child->pid, stackstate_word(child->state));
		clean_append_short(out, child->command, COMMAND_CELLS);
		str_append(out, "\n");
	}
	if (process->children_dropped > 0)
		str_printf(out, "  %zu more children\n", process->children_dropped);
}

void stacktext_process(struct str *out, const struct stacks_process *process,
		       const struct stackview *view, struct stacknames *names)
{
	if (process->state == '\0')
		return;
	stacktext_headline(out, process);
	str_append(out, "\n");
	if (process->python_why[0] != '\0')
		str_printf(out, "  Python frames are missing: %s\n", process->python_why);
	if (process->replaced_libraries > 0)
		str_printf(out,
			   "  %zu of its libraries were deleted or replaced since: their functions "
			   "have no names\n",
			   process->replaced_libraries);
	append_threads(out, process, view, names);
	if (process->threads_dropped > 0)
		str_printf(out, "\n  %zu more threads\n", process->threads_dropped);
	append_children(out, process);
}
