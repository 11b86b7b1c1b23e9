/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/dumps_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char letter_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text != NULL ? text[0] : '\0';
}

static void copy_text(const json_t *object, const char *key, char *ret, size_t size)
{
	const char *text = json_string_value(json_object_get(object, key));

	(void)snprintf(ret, size, "%s", text != NULL ? text : "");
}

static uint32_t number_of(const json_t *object, const char *key)
{
	const int64_t number = dumpjson_number(object, key, 0);

	return number > 0 && number <= UINT32_MAX ? (uint32_t)number : 0;
}

static int read_frame(const json_t *from, struct arena *arena, struct stacks_frame *ret)
{
	const char *kind = json_string_value(json_object_get(from, "kind"));
	const bool python = kind == NULL || strcmp(kind, "native") != 0;
	const char *symbol = python ? NULL : dumpjson_text(arena, from, "symbol");
	const char *function = dumpjson_text(arena, from, "function");
	const char *file = dumpjson_text(arena, from, python ? "file" : "library");

	if (function == NULL || file == NULL || (!python && symbol == NULL))
		return -ENOMEM;
	if (!python)
		function = symbol[0] != '\0' ? symbol : NULL;
	*ret = (struct stacks_frame){
		.kind = python ? STACKS_PYTHON : STACKS_NATIVE,
		.interpreter = dumpjson_flag(from, "interpreter"),
		.line = number_of(from, "line"),
		.function = function,
		.file = file[0] != '\0' ? file : NULL,
		.offset = (uint64_t)dumpjson_number(from, "offset", 0),
	};
	return 0;
}

static int read_frames(const json_t *array, struct arena *arena, struct stacks_thread *ret)
{
	const size_t cnt = MIN(json_array_size(array), (size_t)STACKS_FRAMES_MAX);
	struct stacks_frame *frames = arena_calloc(arena, cnt + 1, sizeof(*frames));

	if (frames == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		int error = read_frame(json_array_get(array, i), arena, &frames[i]);

		if (error < 0)
			return error;
	}
	ret->frames = frames;
	ret->frame_cnt = cnt;
	return 0;
}

/* Names of kernel functions, a line each. */
static int read_kernel(const json_t *array, struct arena *arena, const char **ret)
{
	char text[2048];
	size_t len = 0;

	for (size_t i = 0; i < json_array_size(array) && len < sizeof(text) - 128; i++) {
		const char *name = json_string_value(json_array_get(array, i));

		if (name != NULL)
			len += (size_t)snprintf(text + len, sizeof(text) - len, "%.100s\n", name);
	}
	*ret = len > 0 ? arena_strndup(arena, text, len) : NULL;
	return len == 0 || *ret != NULL ? 0 : -ENOMEM;
}

static enum stacks_gil gil_of(const json_t *from)
{
	const char *word = json_string_value(json_object_get(from, "gil"));

	if (word == NULL)
		return STACKS_GIL_NONE;
	return strcmp(word, "holds") == 0 ? STACKS_GIL_HOLDS : STACKS_GIL_WAITS;
}

static int read_thread(const json_t *from, struct arena *arena, struct stacks_thread *ret)
{
	int error;

	*ret = (struct stacks_thread){
		.tid = number_of(from, "tid"),
		.own_tid = number_of(from, "tid"),
		.state = letter_of(from, "state"),
		.stopped = dumpjson_flag(from, "stopped"),
		.gil = gil_of(from),
		.owner_tid = number_of(from, "mutex_owner"),
		.end = dumpjson_flag(from, "complete") ? STACKS_WHOLE : STACKS_CUT,
		.why_incomplete = dumpjson_text(arena, from, "why_incomplete"),
		.moved = dumpjson_flag(from, "moved"),
		.state_before = letter_of(from, "state_before"),
		.common_cnt = number_of(from, "common_functions"),
		.switched = number_of(from, "switches_between"),
		.mixed = dumpjson_flag(from, "mixed"),
	};
	copy_text(from, "name", ret->name, sizeof(ret->name));
	copy_text(from, "role", ret->role, sizeof(ret->role));
	copy_text(from, "call", ret->call, sizeof(ret->call));
	copy_text(from, "waits_for", ret->waits, sizeof(ret->waits));
	copy_text(from, "wait_channel", ret->channel, sizeof(ret->channel));
	error = read_kernel(json_object_get(from, "kernel"), arena, &ret->kernel);
	if (error == 0)
		error = read_frames(json_object_get(from, "frames"), arena, ret);
	return ret->why_incomplete != NULL ? error : -ENOMEM;
}

static int read_threads(const json_t *array, struct arena *arena, struct stacks_process *ret)
{
	const size_t cnt = MIN(json_array_size(array), (size_t)STACKS_THREADS_MAX);

	ret->threads = arena_calloc(arena, cnt + 1, sizeof(*ret->threads));
	if (ret->threads == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const json_t *from = json_array_get(array, i);
		int error = read_thread(from, arena, &ret->threads[i]);

		if (error < 0)
			return error;
		ret->twice |= json_is_boolean(json_object_get(from, "moved"));
		ret->moved |= ret->threads[i].moved;
	}
	ret->thread_cnt = cnt;
	return 0;
}

static int read_process(const json_t *from, struct arena *arena, struct stacks_process *ret)
{
	*ret = (struct stacks_process){
		.pid = number_of(from, "pid"),
		.own_pid = number_of(from, "pid"),
		.parent = number_of(from, "parent"),
		.tracer = number_of(from, "tracer"),
		.rank = (int32_t)MAX(MIN(dumpjson_number(from, "rank", -1), DUMPS_RANKS_MAX), -1),
		.state = letter_of(from, "state"),
		.threads_dropped = number_of(from, "threads_dropped"),
		.children_dropped = number_of(from, "children_dropped"),
		.replaced_libraries = number_of(from, "replaced_libraries"),
	};
	copy_text(from, "command", ret->command, sizeof(ret->command));
	copy_text(from, "python", ret->python, sizeof(ret->python));
	copy_text(from, "python_missing", ret->python_why, sizeof(ret->python_why));
	copy_text(from, "error", ret->error, sizeof(ret->error));
	return read_threads(json_object_get(from, "threads"), arena, ret);
}

int stacksdump_processes(const json_t *array, struct arena *arena, struct stacks_process **ret,
			 size_t *ret_cnt)
{
	const size_t cnt = json_array_size(array);
	struct stacks_process *processes = arena_calloc(arena, cnt + 1, sizeof(*processes));

	if (processes == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		int error = read_process(json_array_get(array, i), arena, &processes[i]);

		if (error < 0)
			return error;
	}
	*ret = processes;
	*ret_cnt = cnt;
	return 0;
}

/* The processes whose parent this one is. Returns 0 or -ENOMEM. */
static int find_children(const struct stacks_process *all, size_t cnt, struct arena *arena,
			 struct hang_record *ret)
{
	const struct stacks_process **children = arena_calloc(arena, cnt + 1, sizeof(*children));
	size_t child_cnt = 0;

	if (children == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++)
		if (all[i].parent == ret->pid && ret->pid != 0)
			children[child_cnt++] = &all[i];
	ret->children = children;
	ret->child_cnt = child_cnt;
	return 0;
}

static bool is_child(const struct stacks_process *all, size_t cnt, size_t index)
{
	for (size_t i = 0; i < cnt; i++)
		if (i != index && all[i].pid == all[index].parent && all[i].pid != 0)
			return true;
	return false;
}

static int add_records(const struct stacks_process *all, size_t cnt, struct dumps *dumps,
		       const char *source)
{
	for (size_t i = 0; i < cnt; i++) {
		struct hang_record record = dump_record(source);
		int error;

		if (is_child(all, cnt, i))
			continue;
		record.rank = all[i].rank;
		record.pid = all[i].pid;
		record.process = all[i].state;
		record.stacks = &all[i];
		error = find_children(all, cnt, &dumps->arena, &record);
		if (error == 0)
			error = vec_push(&dumps->records, record);
		if (error < 0)
			return error;
	}
	return 0;
}

int stacksdump_read(const struct dumptext *text, struct dumps *dumps, struct err *err)
{
	json_t *root = dumpjson_load(text, err);
	struct stacks_process *processes = NULL;
	size_t cnt = 0;
	int error;

	if (root == NULL)
		return -EINVAL;
	error = stacksdump_processes(json_object_get(root, "processes"), &dumps->arena, &processes,
				     &cnt);
	if (error == 0)
		error = add_records(processes, cnt, dumps, text->path);
	json_decref(root);
	return error < 0 ? err_set(err, ENOMEM, "%s: out of memory", text->path) : 0;
}
