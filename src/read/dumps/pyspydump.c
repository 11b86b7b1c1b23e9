/* SPDX-License-Identifier: Apache-2.0 */
/*
 * py-spy dump. Text:
 *
 *	Process 4711: python train.py
 *	Python v3.11.2 (/usr/bin/python3.11)
 *
 *	Thread 4711 (active+gil): "MainThread"
 *	    read (train.py:12)
 *	    <module> (train.py:80)
 *
 * and, with --json, a list of threads with the same. Frames come innermost first.
 * Source: py-spy, src/dump.rs and src/stack_trace.rs.
 */
#include "read/dumps/dumplines.h"
#include "read/dumps/dumps_parts.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* --- text --- */

/* "Thread 4711 (active+gil): "MainThread""; older ones have the id in hexadecimal. */
static bool parse_thread(const char *line, struct stacks_thread *ret)
{
	char state[32] = "", *end;
	unsigned long long id;
	const char *quote = strchr(line, '"');

	if (strncmp(line, "Thread ", 7) != 0)
		return false;
	id = strtoull(line + 7, &end, 0);
	if (end == line + 7 || sscanf(end, " (%31[^)])", state) != 1)
		return false;
	*ret = (struct stacks_thread){ .tid = (uint32_t)id,
				       .own_tid = (uint32_t)id,
				       .why_incomplete = "",
				       .runs_python = true };
	ret->state = strncmp(state, "active", 6) == 0 ? 'R' : 'S';
	ret->gil = strstr(state, "gil") != NULL ? STACKS_GIL_HOLDS : STACKS_GIL_NONE;
	if (quote != NULL)
		(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)strcspn(quote + 1, "\""),
			       quote + 1);
	return true;
}

/* "    read (train.py:12)"; without a line number it is native: "    wait (libc.so.6)". */
static int parse_frame(struct arena *arena, const char *line, struct stacks_frame *ret)
{
	const char *open = strrchr(line, '('), *close = strrchr(line, ')'), *colon, *name = line;

	name += strspn(name, " ");
	if (open == NULL || close == NULL || close < open || open <= name || open[-1] != ' ' ||
	    close[1] != '\0')
		return -EINVAL;
	colon = memrchr(open, ':', (size_t)(close - open));
	*ret = (struct stacks_frame){
		.kind = colon != NULL ? STACKS_PYTHON : STACKS_NATIVE,
		.line = colon != NULL ? (uint32_t)strtoul(colon + 1, NULL, 10) : 0,
		.function = arena_strndup(arena, name, (size_t)(open - 1 - name)),
		.file = arena_strndup(arena, open + 1,
				      (size_t)((colon != NULL ? colon : close) - open - 1)),
	};
	return ret->function != NULL && ret->file != NULL ? 0 : -ENOMEM;
}

static int parse_line(struct dumplines *lines, struct dumpthreads *threads, char *line)
{
	struct stacks_thread thread;
	struct stacks_frame frame;
	int error;

	if (parse_thread(line, &thread))
		return dumpthreads_begin(threads, &thread);
	/* Deeper lines are arguments and local variables. */
	if (threads->threads.cnt == 0 || strncmp(line, "    ", 4) != 0 || line[4] == ' ')
		return 0;
	error = parse_frame(lines->arena, line, &frame);
	if (error == -EINVAL)
		return 0; /* "    Arguments:" */
	return error == 0 ? dumpthreads_add(threads, &frame) : error;
}

/* "Process 4711: python train.py" */
static void parse_process(const char *line, struct stacks_process *ret)
{
	const char *colon = strchr(line, ':');

	ret->pid = ret->own_pid = (uint32_t)strtoul(line + strlen("Process "), NULL, 10);
	if (colon != NULL)
		(void)snprintf(ret->command, sizeof(ret->command), "%.200s",
			       colon + 1 + strspn(colon + 1, " "));
}

int pyspydump_read(const struct dumptext *text, struct dumps *dumps, struct err *err)
{
	struct dumplines lines = { .text = *text, .arena = &dumps->arena };
	struct dumpthreads threads = { .arena = &dumps->arena };
	struct stacks_process process = { .rank = -1 };
	char *line;
	int error = 0;

	while (error == 0 && (line = dumplines_next(&lines)) != NULL) {
		if (strncmp(line, "Process ", 8) == 0 && process.pid == 0)
			parse_process(line, &process);
		else if (strncmp(line, "Python v", 8) == 0)
			(void)snprintf(process.python, sizeof(process.python), "%.*s",
				       (int)MIN(strspn(line + 8, "0123456789."), (size_t)7),
				       line + 8);
		else
			error = parse_line(&lines, &threads, line);
	}
	if (error == 0)
		error = lines.error;
	if (error == 0 && threads.threads.cnt == 0)
		error = err_set(err, EINVAL,
				"%s: offset %zu: expected a line \"Thread ID (STATE)\", found "
				"the end",
				text->path, text->len);
	else if (error == 0)
		error = dumpthreads_finish(&threads, &process, text, dumps, err);
	else
		error = err_set(err, -error, "%s: %s", text->path, strerror(-error));
	dumplines_done(&lines);
	dumpthreads_done(&threads);
	return error;
}

/* --- JSON --- */

static int take_frame(struct arena *arena, const json_t *from, struct stacks_frame *ret)
{
	const char *name = dumpjson_text(arena, from, "name");
	const char *file = dumpjson_text(arena, from, "filename");

	if (name == NULL || file == NULL)
		return -ENOMEM;
	*ret = (struct stacks_frame){
		.kind = dumpjson_number(from, "line", 0) > 0 ? STACKS_PYTHON : STACKS_NATIVE,
		.line = (uint32_t)dumpjson_number(from, "line", 0),
		.function = name,
		.file = file,
	};
	return 0;
}

static int take_thread(const json_t *from, struct dumpthreads *threads)
{
	const json_t *frames = json_object_get(from, "frames");
	const uint32_t tid = (uint32_t)dumpjson_number(from, "os_thread_id",
						       dumpjson_number(from, "thread_id", 0));
	struct stacks_thread thread = {
		.tid = tid,
		.own_tid = tid,
		.state = dumpjson_flag(from, "active") ? 'R' : 'S',
		.gil = dumpjson_flag(from, "owns_gil") ? STACKS_GIL_HOLDS : STACKS_GIL_NONE,
		.why_incomplete = "",
		.runs_python = true,
	};
	const char *name = json_string_value(json_object_get(from, "thread_name"));
	int error;

	(void)snprintf(thread.name, sizeof(thread.name), "%.15s", name != NULL ? name : "");
	error = dumpthreads_begin(threads, &thread);
	for (size_t i = 0; error == 0 && i < json_array_size(frames); i++) {
		struct stacks_frame frame;

		error = take_frame(threads->arena, json_array_get(frames, i), &frame);
		if (error == 0)
			error = dumpthreads_add(threads, &frame);
	}
	return error;
}

int pyspydump_take(const json_t *root, const struct dumptext *text, struct dumps *dumps,
		   struct err *err)
{
	struct dumpthreads threads = { .arena = &dumps->arena };
	struct stacks_process process = { .rank = -1 };
	int error = 0;

	for (size_t i = 0; error == 0 && i < json_array_size(root); i++)
		error = take_thread(json_array_get(root, i), &threads);
	process.pid = (uint32_t)dumpjson_number(json_array_get(root, 0), "pid", 0);
	process.own_pid = process.pid;
	if (error == 0 && threads.threads.cnt == 0)
		error = err_set(err, EINVAL, "%s: offset 0: expected a list of threads, found none",
				text->path);
	else if (error == 0)
		error = dumpthreads_finish(&threads, &process, text, dumps, err);
	else
		error = err_set(err, ENOMEM, "%s: out of memory", text->path);
	dumpthreads_done(&threads);
	return error;
}
