/* SPDX-License-Identifier: Apache-2.0 */
#include "read/flight/labels.h"

#include "base/str.h"
#include "model/syscall.h"
#include "read/flight/flight_parts.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#define DEPTH_MAX 512
#define SCRIPT_SAMPLES 10000 /* nearly all show the script */

uint32_t flight_names_syscall(struct flight_names *names, uint32_t number)
{
	const char *name = syscall_name(number);
	char text[64];
	int len = name != NULL ? snprintf(text, sizeof(text), "<system call %s>", name)
			       : snprintf(text, sizeof(text), "<system call %u>", number);

	return strtab_intern(names->strings, text, (size_t)len);
}

static bool starts_with(const char *text, const char *prefix)
{
	return strncmp(text, prefix, strlen(prefix)) == 0;
}

/* What follows the last "DIR/" in path, for a DIR that sys.path is known to hold; NULL: none. */
static const char *behind_library(const char *path)
{
	static const char *const folders[] = { "/site-packages/", "/dist-packages/" };
	const char *found = NULL, *p;

	for (size_t i = 0; i < ARRAY_SIZE(folders); i++) {
		for (p = strstr(path, folders[i]); p != NULL; p = strstr(found, folders[i]))
			found = p + strlen(folders[i]);
	}
	if (found != NULL)
		return found;
	/* ".../lib/python3.12/threading.py", but not the name "lib/python-things/". */
	for (p = strstr(path, "/lib/python"); p != NULL; p = strstr(p + 1, "/lib/python")) {
		const char *q = p + strlen("/lib/python");
		bool digit = isdigit((unsigned char)*q);

		while (isdigit((unsigned char)*q) || *q == '.')
			q++;
		if (digit && *q == '/')
			found = q + 1;
	}
	return found;
}

/* The agent's hook may be anywhere on sys.path. */
static const char *behind_hook(const char *path)
{
	const char *p = strstr(path, "/perftracker/_");

	return p != NULL && strchr(p + strlen("/perftracker/"), '/') == NULL ? p + 1 : NULL;
}

/* The path as Kineto writes it: without the entry of sys.path that it begins with. */
static const char *module_path(const struct flight_names *names, const char *path)
{
	const char *found = NULL;

	if (path[0] != '/')
		return starts_with(path, "./") ? path + 2 : path;
	found = behind_hook(path);
	if (found == NULL)
		found = behind_library(path);
	if (found == NULL && names->script_dir != NULL &&
	    strncmp(path, names->script_dir, names->script_dir_len) == 0)
		found = path + names->script_dir_len;
	return found != NULL && *found != '\0' ? found : path;
}

static enum frame_part part_of(const char *path)
{
	if (starts_with(path, "perftracker/_"))
		return PART_OWN;
	if (starts_with(path, "torch/utils/data/"))
		return PART_LOADER;
	if (starts_with(path, "torch/optim/"))
		return PART_OPTIMIZER;
	return strcmp(path, "threading.py") == 0 ? PART_THREADING : PART_USER;
}

/* co_name of a qualified name: "Optimizer.profile.<locals>.wrapper" is "wrapper". */
static const char *plain_name(const char *name)
{
	const char *dot = strrchr(name, '.');

	return dot != NULL && dot[1] != '\0' ? dot + 1 : name;
}

static int name_frame(struct flight_names *names, size_t idx, struct str *scratch)
{
	const struct flight_frame *frame = &names->log->frames.data[idx];
	const char *path = module_path(names, names->log->strings.data[frame->file]);
	struct frame_name *to = &names->frames[idx];

	scratch->len = 0;
	str_printf(scratch, "%s(%u): %s", path[0] != '\0' ? path : "<unknown>", frame->first_line,
		   plain_name(names->log->strings.data[frame->name]));
	if (str_error(scratch) < 0)
		return -ENOMEM;
	to->part = (uint8_t)part_of(path);
	to->text = strtab_intern(names->strings, str_borrow(scratch), scratch->len);
	return to->text == STRTAB_NONE ? -ENOMEM : 0;
}

static bool is_module(const struct flightlog *log, uint32_t frame)
{
	const struct flight_frame *f = &log->frames.data[frame];
	const char *path = log->strings.data[f->file];

	return strcmp(log->strings.data[f->name], "<module>") == 0 && path[0] == '/' &&
	       behind_library(path) == NULL;
}

/* The outermost module that is no library's: the script. 0: none on this stack. */
static uint32_t script_of(const struct flightlog *log, uint32_t node)
{
	uint32_t found = 0;

	for (size_t depth = 0; node != 0 && depth < DEPTH_MAX; depth++) {
		if (is_module(log, log->nodes.data[node].frame))
			found = log->nodes.data[node].frame;
		node = log->nodes.data[node].parent;
	}
	return found;
}

/* sys.path[0] is the folder of the script, which is at the bottom of the training thread. */
static void find_script_dir(struct flight_names *names)
{
	const struct flightlog *log = names->log;
	size_t cnt = MIN(log->samples.cnt, (size_t)SCRIPT_SAMPLES);
	uint32_t found = 0;

	for (size_t i = 0; i < cnt && found == 0; i++) {
		const struct ring_record *record = &log->samples.data[i];

		if (record->kind == FLIGHT_SAMPLE && record->extra >> 32 == log->training_tid)
			found = script_of(log, (uint32_t)record->extra);
	}
	if (found == 0)
		return;
	names->script_dir = log->strings.data[log->frames.data[found].file];
	names->script_dir_len = (size_t)(strrchr(names->script_dir, '/') + 1 - names->script_dir);
}

int flight_names_init(struct flight_names *names, const struct flightlog *log,
		      struct strtab *strings)
{
	struct str scratch = { 0 };
	int ret = 0;

	*names = (struct flight_names){ .log = log, .strings = strings };
	names->frames = calloc(log->frames.cnt + 1, sizeof(*names->frames));
	if (names->frames == NULL)
		return -ENOMEM;
	find_script_dir(names);
	for (size_t i = 1; i < log->frames.cnt && ret == 0; i++)
		ret = name_frame(names, i, &scratch);
	str_done(&scratch);
	return ret;
}

void flight_names_done(struct flight_names *names)
{
	free(names->frames);
	names->frames = NULL;
}

static bool ends_with(const char *text, const char *end)
{
	size_t len = strlen(text), end_len = strlen(end);

	return len >= end_len && strcmp(text + len - end_len, end) == 0;
}

bool flight_node_is(const struct flightlog *log, uint32_t node, const char *file_end,
		    const char *function)
{
	const struct flight_frame *frame = &log->frames.data[log->nodes.data[node].frame];

	return ends_with(log->strings.data[frame->file], file_end) &&
	       (*function == '\0' ||
		strcmp(plain_name(log->strings.data[frame->name]), function) == 0);
}
