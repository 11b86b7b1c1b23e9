/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/dumplines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

char *dumplines_next(struct dumplines *lines)
{
	const char *data = lines->text.data + lines->at, *end;
	size_t len;

	if (lines->at >= lines->text.len)
		return NULL;
	end = memchr(data, '\n', lines->text.len - lines->at);
	len = end != NULL ? (size_t)(end - data) : lines->text.len - lines->at;
	lines->begin = lines->at;
	lines->at += len + (end != NULL);
	len = MIN(len, (size_t)DUMPLINES_LONGEST);
	if (vec_reserve_bytes((void **)&lines->line, &lines->cap, len + 1, 1) < 0) {
		lines->error = -ENOMEM;
		return NULL;
	}
	memcpy(lines->line, data, len);
	while (len > 0 && (lines->line[len - 1] == '\r' || lines->line[len - 1] == ' '))
		len--;
	lines->line[len] = '\0';
	return lines->line;
}

void dumplines_done(struct dumplines *lines)
{
	free(lines->line);
	lines->line = NULL;
}

/* Moves the frames of the latest thread to their place. */
static int close_thread(struct dumpthreads *threads)
{
	struct stacks_thread *thread;
	struct stacks_frame *frames;

	if (threads->threads.cnt == 0)
		return 0;
	thread = &threads->threads.data[threads->threads.cnt - 1];
	frames = arena_calloc(threads->arena, threads->frames.cnt + 1, sizeof(*frames));
	if (frames == NULL)
		return -ENOMEM;
	if (threads->frames.cnt > 0)
		memcpy(frames, threads->frames.data, threads->frames.cnt * sizeof(*frames));
	thread->frames = frames;
	thread->frame_cnt = threads->frames.cnt;
	thread->mixed = true;
	threads->frames.cnt = 0;
	return 0;
}

int dumpthreads_begin(struct dumpthreads *threads, const struct stacks_thread *thread)
{
	int error = close_thread(threads);

	if (error == 0)
		error = vec_push(&threads->threads, *thread);
	return error;
}

int dumpthreads_add(struct dumpthreads *threads, const struct stacks_frame *frame)
{
	if (threads->frames.cnt >= STACKS_FRAMES_MAX) {
		threads->dropped++;
		return 0;
	}
	return vec_push(&threads->frames, *frame);
}

static size_t find_main(const struct dumpthreads *threads, const struct stacks_process *process)
{
	const size_t cnt = threads->threads.cnt;

	for (size_t i = 0; i < cnt; i++)
		if (process->pid != 0 && threads->threads.data[i].tid == process->pid)
			return i;
	for (size_t i = 0; i < cnt; i++)
		if (strcmp(threads->threads.data[i].name, "MainThread") == 0)
			return i;
	return cnt - 1;
}

static int add_record(struct dumpthreads *threads, struct stacks_process *process,
		      const char *source, struct dumps *dumps)
{
	const size_t cnt = threads->threads.cnt, main = find_main(threads, process);
	struct stacks_process *kept = arena_calloc(threads->arena, 1, sizeof(*kept));
	struct hang_record record = dump_record(source);

	process->threads = arena_calloc(threads->arena, cnt, sizeof(*process->threads));
	if (kept == NULL || process->threads == NULL)
		return -ENOMEM;
	process->threads[0] = threads->threads.data[main];
	for (size_t i = 0, at = 1; i < cnt; i++)
		if (i != main)
			process->threads[at++] = threads->threads.data[i];
	process->thread_cnt = cnt;
	if (process->pid == 0)
		process->pid = process->threads[0].tid;
	*kept = *process;
	record.pid = process->pid;
	record.stacks = kept;
	return vec_push(&dumps->records, record);
}

int dumpthreads_finish(struct dumpthreads *threads, struct stacks_process *process,
		       const struct dumptext *text, struct dumps *dumps, struct err *err)
{
	int error = close_thread(threads);

	if (error == 0)
		error = add_record(threads, process, text->path, dumps);
	return error < 0 ? err_set(err, ENOMEM, "%s: out of memory", text->path) : 0;
}

void dumpthreads_done(struct dumpthreads *threads)
{
	vec_done(&threads->threads);
	vec_done(&threads->frames);
}
