/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker.hang.v1: the records of a hang, as report/stacks/hangjson.h writes them. */
#include "read/dumps/dumps_parts.h"

#include <errno.h>
#include <string.h>

static const char *const LIVES[] = {
	[HANG_BLOCKED] = "blocked", [HANG_RUNNING] = "running", [HANG_GONE] = "gone"
};
static const char *const MARKS[] = {
	[HANG_MARK_NONE] = "none",	     [HANG_MARK_LOADER] = "loader",
	[HANG_MARK_BATCH] = "batch",	     [HANG_MARK_BACKWARD] = "backward",
	[HANG_MARK_OPTIMIZER] = "optimizer", [HANG_MARK_STEP] = "step",
};
static const char *const WHOSE[] = {
	[AWAITED_LOADER] = "loader", [AWAITED_THREAD] = "thread", [AWAITED_CHILD] = "child"
};

/* The index of the word in the table, 0 if it is none of them. */
static size_t word_of(const json_t *object, const char *key, const char *const *words, size_t cnt)
{
	const char *text = json_string_value(json_object_get(object, key));

	for (size_t i = 0; text != NULL && i < cnt; i++)
		if (strcmp(words[i], text) == 0)
			return i;
	return 0;
}

static int read_entered(const json_t *array, struct arena *arena, struct hang_record *ret)
{
	const size_t cnt = MIN(json_array_size(array), (size_t)HANG_ENTERED_MAX);
	struct hang_entered *entered = arena_calloc(arena, cnt + 1, sizeof(*entered));

	if (entered == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < cnt; i++) {
		const json_t *from = json_array_get(array, i);

		entered[i] = (struct hang_entered){
			.group = dumpjson_text(arena, from, "group"),
			.name = dumpjson_text(arena, from, "name"),
			.number = dumpjson_number(from, "number", -1),
			.by_name = dumpjson_flag(from, "numbered_by_name"),
			.ended = dumpjson_flag(from, "ended"),
			.p2p = dumpjson_flag(from, "p2p"),
			.size = (uint32_t)MAX(dumpjson_number(from, "group_size", 0), 0),
			.elements = (uint64_t)MAX(dumpjson_number(from, "elements", 0), 0),
			.members = dumpjson_text(arena, from, "members"),
			.caller = dumpjson_text(arena, from, "caller"),
			.last_finished = dumpjson_number(from, "last_finished", -1),
		};
		if (entered[i].group == NULL || entered[i].name == NULL ||
		    entered[i].members == NULL || entered[i].caller == NULL)
			return -ENOMEM;
	}
	ret->entered = entered;
	ret->entered_cnt = cnt;
	return 0;
}

static int read_stacks(const json_t *from, struct arena *arena, struct hang_record *ret)
{
	json_t *one = json_array();
	struct stacks_process *process = NULL, *children = NULL;
	const struct stacks_process **pointers;
	size_t cnt = 0, child_cnt = 0;
	int error = one != NULL ? 0 : -ENOMEM;

	if (error == 0 && json_is_object(json_object_get(from, "stacks")) &&
	    json_array_append(one, json_object_get(from, "stacks")) < 0)
		error = -ENOMEM;
	if (error == 0)
		error = stacksdump_processes(one, arena, &process, &cnt);
	if (error == 0)
		error = stacksdump_processes(json_object_get(from, "children"), arena, &children,
					     &child_cnt);
	json_decref(one);
	pointers = error == 0 ? arena_calloc(arena, child_cnt + 1, sizeof(*pointers)) : NULL;
	if (pointers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < child_cnt; i++)
		pointers[i] = &children[i];
	ret->stacks = cnt > 0 ? process : NULL;
	ret->children = pointers;
	ret->child_cnt = child_cnt;
	return 0;
}

static int read_texts(const json_t *from, struct arena *arena, struct hang_record *ret)
{
	struct {
		const char *key, **to;
	} texts[] = {
		{ "host", &ret->host },		 { "stack", &ret->stack },
		{ "leaf", &ret->leaf },		 { "awaited", &ret->awaited },
		{ "ended_thread", &ret->ended }, { "says", &ret->says },
		{ "child", &ret->child },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		*texts[i].to = dumpjson_text(arena, from, texts[i].key);
		if (*texts[i].to == NULL)
			return -ENOMEM;
	}
	return 0;
}

static int64_t nanoseconds(const json_t *object, const char *key)
{
	const double seconds = json_number_value(json_object_get(object, key));

	return seconds > 0 && seconds < 1e9 ? (int64_t)(seconds * 1e9) : 0;
}

static int read_record(const json_t *from, const char *source, struct arena *arena,
		       struct hang_record *ret)
{
	const json_t *state = json_object_get(from, "state");
	int error;

	*ret = dump_record(source);
	ret->rank = (int)MAX(MIN(dumpjson_number(from, "rank", -1), DUMPS_RANKS_MAX), -1);
	ret->world_size = (int)MAX(MIN(dumpjson_number(from, "world_size", 0), DUMPS_RANKS_MAX), 0);
	ret->pid = (uint32_t)MAX(dumpjson_number(from, "pid", 0), 0);
	ret->life = (enum hang_life)word_of(from, "life", LIVES, ARRAY_SIZE(LIVES));
	ret->process = json_is_string(state) ? json_string_value(state)[0] : '\0';
	ret->bye = dumpjson_flag(from, "ended_itself");
	ret->exit_known = json_is_integer(json_object_get(from, "wait_status"));
	ret->exit_status = (int)dumpjson_number(from, "wait_status", 0);
	ret->killed_for_memory = dumpjson_flag(from, "killed_for_memory");
	ret->launcher_gone = dumpjson_flag(from, "launcher_gone");
	ret->marks_known = json_is_integer(json_object_get(from, "step"));
	ret->step = (uint64_t)MAX(dumpjson_number(from, "step", 0), 0);
	ret->mark = (enum hang_mark)word_of(from, "mark", MARKS, ARRAY_SIZE(MARKS));
	ret->silent_ns = nanoseconds(from, "silent_s");
	ret->by = (enum awaited_by)word_of(from, "awaited_by", WHOSE, ARRAY_SIZE(WHOSE));
	ret->ended_ago_ns = nanoseconds(from, "ended_ago_s");
	ret->shown = (uint32_t)MAX(dumpjson_number(from, "shown", 0), 0);
	ret->in_collective = dumpjson_flag(from, "in_collective");
	error = read_texts(from, arena, ret);
	if (error == 0)
		error = read_entered(json_object_get(from, "collectives"), arena, ret);
	return error == 0 ? read_stacks(from, arena, ret) : error;
}

int recorddump_read(const struct dumptext *text, struct dumps *dumps, struct err *err)
{
	json_t *root = dumpjson_load(text, err);
	const json_t *records = json_object_get(root, "records");
	int error = 0;

	if (root == NULL)
		return -EINVAL;
	if (!json_is_array(records)) {
		json_decref(root);
		return err_set(err, EINVAL, "%s: offset 0: expected a list \"records\", found none",
			       text->path);
	}
	for (size_t i = 0; error == 0 && i < json_array_size(records); i++) {
		struct hang_record record;

		error = read_record(json_array_get(records, i), text->path, &dumps->arena, &record);
		if (error == 0)
			error = vec_push(&dumps->records, record);
	}
	json_decref(root);
	return error < 0 ? err_set(err, ENOMEM, "%s: out of memory", text->path) : 0;
}
