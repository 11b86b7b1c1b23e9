/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Text of gdb's `thread apply all bt`:
 *
 *	Thread 2 (Thread 0x7f.. (LWP 4712) "python3"):
 *	#0  0x00007f in read () from /lib/libc.so.6
 *	#1  c10d::Work::wait (this=0x1) at /src/Work.cpp:12
 *
 * Thread 1 is the main one, and comes last. `thread apply all py-bt` may follow each stack; its lines
 * `File "train.py", line 12, in read` are Python frames, innermost first.
 */
#include "read/dumps/dumplines.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The length of a function's name before its arguments: " (" outside of templates and operators. */
static size_t name_length(const char *name)
{
	int depth = 0;

	for (size_t i = 0; name[i] != '\0'; i++) {
		if (name[i] == '<')
			depth++;
		else if (name[i] == '>' && depth > 0)
			depth--;
		else if (name[i] == ' ' && name[i + 1] == '(' && depth == 0)
			return i;
	}
	return strlen(name);
}

/* "#1  0x00007f.. in c10d::Work::wait (this=0x1) from /lib/libtorch.so" */
static int parse_frame(struct arena *arena, const char *line, struct stacks_frame *ret)
{
	const char *p = line + 1, *in, *from = strstr(line, " from ");
	size_t len;

	p += strspn(p, "0123456789");
	p += strspn(p, " ");
	in = strncmp(p, "0x", 2) == 0 ? strstr(p, " in ") : NULL;
	if (in != NULL)
		p = in + 4;
	len = name_length(p);
	*ret = (struct stacks_frame){ .kind = STACKS_NATIVE };
	if (len > 0 && strncmp(p, "??", 2) != 0)
		ret->function = arena_strndup(arena, p, len);
	if (from != NULL)
		ret->file = arena_strdup(arena, from + strlen(" from "));
	ret->interpreter = ret->function != NULL && (strncmp(ret->function, "_Py", 3) == 0 ||
						     strncmp(ret->function, "Py", 2) == 0);
	return (len > 0 && strncmp(p, "??", 2) != 0 && ret->function == NULL) ||
			       (from != NULL && ret->file == NULL)
		       ? -ENOMEM
		       : 0;
}

/* `  File "train.py", line 12, in read` */
static bool parse_python(struct arena *arena, const char *line, struct stacks_frame *ret)
{
	const char *file = line + strspn(line, " "), *end, *in;
	unsigned number;

	if (strncmp(file, "File \"", 6) != 0)
		return false;
	file += 6;
	end = strchr(file, '"');
	if (end == NULL || sscanf(end, "\", line %u", &number) != 1)
		return false;
	in = strstr(end, ", in ");
	*ret = (struct stacks_frame){ .kind = STACKS_PYTHON, .line = number };
	ret->file = arena_strndup(arena, file, (size_t)(end - file));
	ret->function = arena_strndup(arena, in != NULL ? in + 5 : "?",
				      in != NULL ? strcspn(in + 5, " (") : 1);
	return ret->file != NULL && ret->function != NULL;
}

/* "Thread 2 (Thread 0x7f.. (LWP 4712) "python3"):"; of a core file "Thread 2 (LWP 4712):" */
static bool parse_thread(const char *line, struct stacks_thread *ret)
{
	const char *lwp = strstr(line, "LWP "), *quote = strchr(line, '"');
	unsigned long tid;

	if (strncmp(line, "Thread ", 7) != 0 || strchr(line, '(') == NULL)
		return false;
	tid = strtoul(lwp != NULL ? lwp + 4 : line + 7, NULL, 10);
	*ret = (struct stacks_thread){ .tid = (uint32_t)tid,
				       .own_tid = (uint32_t)tid,
				       .why_incomplete = "" };
	if (quote != NULL)
		(void)snprintf(ret->name, sizeof(ret->name), "%.*s",
			       (int)MIN(strcspn(quote + 1, "\""), (size_t)15), quote + 1);
	return true;
}

static int parse_line(struct dumplines *lines, struct dumpthreads *threads, const char *line)
{
	struct stacks_thread thread;
	struct stacks_frame frame;
	int error;

	if (parse_thread(line, &thread))
		return dumpthreads_begin(threads, &thread);
	if (threads->threads.cnt == 0)
		return 0;
	if (line[0] == '#' && line[1] >= '0' && line[1] <= '9') {
		error = parse_frame(lines->arena, line, &frame);
		return error == 0 ? dumpthreads_add(threads, &frame) : error;
	}
	return parse_python(lines->arena, line, &frame) ? dumpthreads_add(threads, &frame) : 0;
}

int gdbdump_read(const struct dumptext *text, struct dumps *dumps, struct err *err)
{
	struct dumplines lines = { .text = *text, .arena = &dumps->arena };
	struct dumpthreads threads = { .arena = &dumps->arena };
	struct stacks_process process = { .rank = -1 };
	const char *line;
	int error = 0;

	while (error == 0 && (line = dumplines_next(&lines)) != NULL)
		error = parse_line(&lines, &threads, line);
	if (error == 0)
		error = lines.error;
	if (error < 0)
		error = err_set(err, -error, "%s: %s", text->path, strerror(-error));
	else if (threads.threads.cnt == 0)
		error = err_set(err, EINVAL,
				"%s: offset %zu: expected a line \"Thread N (LWP ID)\", found "
				"the end",
				text->path, text->len);
	else
		error = dumpthreads_finish(&threads, &process, text, dumps, err);
	dumplines_done(&lines);
	dumpthreads_done(&threads);
	return error;
}
