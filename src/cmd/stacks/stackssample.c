/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/stacks/stackssample.h"

#include <errno.h>
#include <string.h>

enum { AT_ONCE = 64 }; /* children that read beside each other */

void stackssample_done(struct stackssample *sample)
{
	vec_foreach(reading, &sample->readings)
		stackreading_done(reading);
	vec_done(&sample->readings);
	vec_done(&sample->processes);
}

static int add_children(struct stackslist *list, const struct stacks_process *process)
{
	int error = 0;

	for (size_t i = 0; i < process->child_cnt && error == 0; i++)
		error = stackslist_add(list, process->children[i].pid, -1);
	return error;
}

/* Starts to read entry `index`. Returns 0 or -errno. */
static int begin(struct stackssample *sample, const struct stackslist *list, size_t index)
{
	const struct stackslist_entry *entry = &list->entries.data[index];
	struct stackreading reading;
	int error = vec_reserve(&sample->readings, sample->readings.cnt + 1);

	if (error == 0)
		error = stackreading_begin(&reading, entry->pid);
	if (error == 0)
		sample->readings.data[sample->readings.cnt++] = reading;
	return error;
}

static int finish(struct stackssample *sample, struct stackslist *list, size_t index, bool children)
{
	struct stackreading *reading = &sample->readings.data[index];
	const struct stacks_process *process = stackreading_finish(reading);
	int error = vec_push(&sample->processes, process);

	if (list->entries.data[index].rank >= 0)
		reading->shared->process.rank = list->entries.data[index].rank;
	if (error == 0 && children)
		error = add_children(list, process);
	return error;
}

int stackssample_take(struct stackssample *sample, struct stackslist *list, bool children,
		      struct err *err)
{
	size_t begun = 0, finished = 0;
	int error = 0;

	*sample = (struct stackssample){ 0 };
	while (error == 0 && finished < list->entries.cnt) {
		if (begun < list->entries.cnt && begun - finished < AT_ONCE)
			error = begin(sample, list, begun++);
		else
			error = finish(sample, list, finished++, children);
	}
	if (error == -ENOMEM)
		return err_set(err, ENOMEM, "out of memory");
	return error < 0 ? err_set(err, -error, "cannot start a reader: %s", strerror(-error)) : 0;
}

/* Comparing. */

static bool same_text(const char *a, const char *b)
{
	return a == b || (a != NULL && b != NULL && strcmp(a, b) == 0);
}

static bool same_stack(const struct stacks_thread *a, const struct stacks_thread *b)
{
	if (a->frame_cnt != b->frame_cnt)
		return false;
	for (size_t i = 0; i < a->frame_cnt; i++) {
		const struct stacks_frame *x = &a->frames[i], *y = &b->frames[i];

		if (x->kind != y->kind || x->line != y->line || x->offset != y->offset ||
		    !same_text(x->function, y->function) || !same_text(x->file, y->file))
			return false;
	}
	return true;
}

static const struct stacks_thread *find(const struct stacks_process *process, uint32_t tid)
{
	for (size_t i = 0; i < process->thread_cnt; i++)
		if (process->threads[i].tid == tid)
			return &process->threads[i];
	return NULL;
}

/* The outermost Python frame whose index is below *at; NULL: none. Moves *at there. */
static const struct stacks_frame *outer_python(const struct stacks_thread *thread, size_t *at)
{
	while (*at > 0)
		if (thread->frames[--*at].kind == STACKS_PYTHON)
			return &thread->frames[*at];
	return NULL;
}

/* How many of the outermost Python functions both have; the line may differ. */
static uint32_t common_functions(const struct stacks_thread *a, const struct stacks_thread *b)
{
	size_t i = a->frame_cnt, j = b->frame_cnt;
	uint32_t cnt = 0;

	for (;;) {
		const struct stacks_frame *x = outer_python(a, &i), *y = outer_python(b, &j);

		if (x == NULL || y == NULL || !same_text(x->function, y->function) ||
		    !same_text(x->file, y->file))
			return cnt;
		cnt++;
	}
}

static void compare_thread(const struct stacks_thread *before, struct stacks_thread *now)
{
	now->moved = before == NULL || !same_stack(before, now);
	if (before == NULL)
		return;
	now->state_before = before->state;
	now->switched = now->switches - before->switches;
	now->common_cnt = common_functions(before, now);
}

static void compare_process(const struct stacks_process *before, struct stacks_process *now)
{
	now->twice = true;
	for (size_t i = 0; i < now->thread_cnt; i++) {
		const struct stacks_thread *thread = find(before, now->threads[i].tid);

		compare_thread(thread, &now->threads[i]);
		now->moved = now->moved || now->threads[i].moved;
	}
}

/* Both have the processes of one list; the second one may have new children behind them. */
void stackssample_compare(const struct stackssample *before, struct stackssample *now)
{
	for (size_t i = 0; i < MIN(before->processes.cnt, now->processes.cnt); i++)
		compare_process(before->processes.data[i], &now->readings.data[i].shared->process);
}
