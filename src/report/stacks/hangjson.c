/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/hangjson.h"

#include "report/jsonwriter.h"
#include "report/stacks/stackformats.h"

static const char *life_word(enum hang_life life)
{
	return life == HANG_GONE ? "gone" : life == HANG_RUNNING ? "running" : "blocked";
}

static const char *mark_word(enum hang_mark mark)
{
	static const char *const words[] = {
		[HANG_MARK_NONE] = "none",	     [HANG_MARK_LOADER] = "loader",
		[HANG_MARK_BATCH] = "batch",	     [HANG_MARK_BACKWARD] = "backward",
		[HANG_MARK_OPTIMIZER] = "optimizer", [HANG_MARK_STEP] = "step",
	};

	return words[mark];
}

static const char *whose_word(enum awaited_by by)
{
	return by == AWAITED_CHILD ? "child" : by == AWAITED_THREAD ? "thread" : "loader";
}

static json_t *number(int64_t value)
{
	return json_integer((json_int_t)value);
}

static json_t *seconds(int64_t ns)
{
	return jsonwriter_number((double)ns / NSEC_PER_SEC);
}

static json_t *entered_array(struct json_writer *w, const struct hang_record *record)
{
	json_t *array = json_array();

	for (size_t i = 0; i < record->entered_cnt; i++) {
		const struct hang_entered *entered = &record->entered[i];
		json_t *object = json_object();

		jsonwriter_put_text(w, object, "group", entered->group);
		jsonwriter_put_text(w, object, "name", entered->name);
		jsonwriter_put(w, object, "number", number(entered->number));
		jsonwriter_put(w, object, "numbered_by_name", json_boolean(entered->by_name));
		jsonwriter_put(w, object, "ended", json_boolean(entered->ended));
		jsonwriter_put(w, object, "p2p", json_boolean(entered->p2p));
		jsonwriter_put(w, object, "group_size", number(entered->size));
		jsonwriter_put(w, object, "elements", number((int64_t)entered->elements));
		jsonwriter_put_text(w, object, "members", entered->members);
		jsonwriter_put_text(w, object, "caller", entered->caller);
		jsonwriter_put(w, object, "last_finished", number(entered->last_finished));
		jsonwriter_push(w, array, object);
	}
	return array;
}

static void put_process(struct json_writer *w, json_t *object, const struct hang_record *record)
{
	jsonwriter_put(w, object, "rank", number(record->rank));
	jsonwriter_put(w, object, "world_size", number(record->world_size));
	jsonwriter_put(w, object, "pid", number(record->pid));
	jsonwriter_put_text(w, object, "host", record->host);
	jsonwriter_put_text(w, object, "life", life_word(record->life));
	jsonwriter_put(w, object, "state",
		       record->process != '\0' ? json_stringn(&record->process, 1) : json_null());
	jsonwriter_put(w, object, "ended_itself", json_boolean(record->bye));
	jsonwriter_put(w, object, "wait_status",
		       record->exit_known ? number(record->exit_status) : json_null());
	jsonwriter_put(w, object, "killed_for_memory", json_boolean(record->killed_for_memory));
	jsonwriter_put(w, object, "launcher_gone", json_boolean(record->launcher_gone));
}

static void put_place(struct json_writer *w, json_t *object, const struct hang_record *record)
{
	jsonwriter_put(w, object, "step",
		       record->marks_known ? number((int64_t)record->step) : json_null());
	jsonwriter_put_text(w, object, "mark", mark_word(record->mark));
	jsonwriter_put(w, object, "silent_s", seconds(record->silent_ns));
	jsonwriter_put_text(w, object, "stack", record->stack);
	jsonwriter_put_text(w, object, "leaf", record->leaf);
	jsonwriter_put_text(w, object, "awaited", record->awaited);
	jsonwriter_put_text(w, object, "awaited_by", whose_word(record->by));
	jsonwriter_put_text(w, object, "ended_thread", record->ended);
	jsonwriter_put(w, object, "ended_ago_s", seconds(record->ended_ago_ns));
	jsonwriter_put(w, object, "shown", number(record->shown));
	jsonwriter_put(w, object, "in_collective", json_boolean(record->in_collective));
	jsonwriter_put_text(w, object, "says", record->says);
	jsonwriter_put_text(w, object, "child", record->child);
	jsonwriter_put(w, object, "collectives", entered_array(w, record));
}

static json_t *record_object(struct json_writer *w, const struct hang_record *record,
			     struct stacknames *names)
{
	json_t *object = json_object(), *children = json_array();

	put_process(w, object, record);
	put_place(w, object, record);
	jsonwriter_put(w, object, "stacks",
		       record->stacks != NULL ? stackformat_process(w, record->stacks, names)
					      : json_null());
	for (size_t i = 0; i < record->child_cnt; i++)
		jsonwriter_push(w, children, stackformat_process(w, record->children[i], names));
	jsonwriter_put(w, object, "children", children);
	return object;
}

int hangjson_print(const struct hang_record *records, size_t cnt, struct str *out)
{
	struct json_writer w = { 0 };
	struct stacknames names = { 0 };
	json_t *root = json_object(), *array = json_array();
	int error;

	jsonwriter_put_text(&w, root, "schema", "perftracker.hang.v1");
	for (size_t i = 0; i < cnt; i++)
		jsonwriter_push(&w, array, record_object(&w, &records[i], &names));
	jsonwriter_put(&w, root, "records", array);
	error = jsonwriter_print(&w, root, out);
	stacknames_done(&names);
	return error;
}
