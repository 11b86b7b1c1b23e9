/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/stackformats.h"

#include <errno.h>
#include <string.h>

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)value);
}

/* NULL for "". */
static const char *some(const char *text)
{
	return text != NULL && text[0] != '\0' ? text : NULL;
}

static json_t *letter(char state)
{
	return state != '\0' ? json_stringn(&state, 1) : json_null();
}

static json_t *milliseconds(int64_t ns)
{
	return jsonwriter_number((double)ns / NSEC_PER_MSEC);
}

static json_t *frame_object(struct json_writer *w, const struct stacks_frame *frame,
			    struct stacknames *names)
{
	_cleanup_(str_done) struct str name = { 0 };
	json_t *object = json_object();
	const bool python = frame->kind == STACKS_PYTHON;

	stackframe_function(&name, names, frame);
	jsonwriter_put_text(w, object, "kind", python ? "python" : "native");
	jsonwriter_put_text(w, object, "function", str_borrow(&name));
	jsonwriter_put_text(w, object, python ? "file" : "library", frame->file);
	if (python) {
		jsonwriter_put(w, object, "line", number(frame->line));
		return object;
	}
	jsonwriter_put_text(w, object, "symbol", frame->function);
	jsonwriter_put(w, object, "offset", number(frame->offset));
	jsonwriter_put(w, object, "interpreter", json_boolean(frame->interpreter));
	return object;
}

static json_t *kernel_array(struct json_writer *w, const char *names)
{
	json_t *array = json_array();

	for (const char *p = names; p != NULL && *p != '\0';) {
		const size_t len = strcspn(p, "\n");

		jsonwriter_push(w, array, json_stringn(p, len));
		p += len + (p[len] == '\n');
	}
	return array;
}

static const char *gil_word(enum stacks_gil gil)
{
	return gil == STACKS_GIL_HOLDS ? "holds" : gil == STACKS_GIL_WAITS ? "waits" : NULL;
}

static json_t *thread_object(struct json_writer *w, const struct stacks_process *process,
			     const struct stacks_thread *thread, struct stacknames *names)
{
	json_t *object = json_object(), *frames = json_array();

	jsonwriter_put(w, object, "tid", number(thread->tid));
	jsonwriter_put_text(w, object, "name", thread->name);
	jsonwriter_put_text(w, object, "role", thread->role);
	jsonwriter_put(w, object, "state", letter(thread->state));
	jsonwriter_put_text(w, object, "gil", gil_word(thread->gil));
	jsonwriter_put_text(w, object, "call", some(thread->call));
	jsonwriter_put_text(w, object, "waits_for", some(thread->waits));
	jsonwriter_put(w, object, "mutex_owner",
		       thread->owner_tid != 0 ? number(thread->owner_tid) : json_null());
	jsonwriter_put_text(w, object, "wait_channel", some(thread->channel));
	jsonwriter_put(w, object, "kernel", kernel_array(w, thread->kernel));
	jsonwriter_put(w, object, "stopped", json_boolean(thread->stopped));
	if (process->twice) {
		jsonwriter_put(w, object, "moved", json_boolean(thread->moved));
		jsonwriter_put(w, object, "state_before", letter(thread->state_before));
		jsonwriter_put(w, object, "common_functions", number(thread->common_cnt));
		jsonwriter_put(w, object, "switches_between", number(thread->switched));
	}
	jsonwriter_put(w, object, "complete", json_boolean(thread->end == STACKS_WHOLE));
	jsonwriter_put_text(w, object, "why_incomplete", some(thread->why_incomplete));
	jsonwriter_put(w, object, "mixed", json_boolean(thread->mixed));
	for (size_t i = 0; i < thread->frame_cnt; i++)
		jsonwriter_push(w, frames, frame_object(w, &thread->frames[i], names));
	jsonwriter_put(w, object, "frames", frames);
	return object;
}

static json_t *children_array(struct json_writer *w, const struct stacks_process *process)
{
	json_t *array = json_array();

	for (size_t i = 0; i < process->child_cnt; i++) {
		json_t *object = json_object();

		jsonwriter_put(w, object, "pid", number(process->children[i].pid));
		jsonwriter_put(w, object, "state", letter(process->children[i].state));
		jsonwriter_put_text(w, object, "command", process->children[i].command);
		jsonwriter_push(w, array, object);
	}
	return array;
}

json_t *stackformat_process(struct json_writer *w, const struct stacks_process *process,
			    struct stacknames *names)
{
	json_t *object = json_object(), *threads = json_array();

	jsonwriter_put(w, object, "pid", number(process->pid));
	jsonwriter_put(w, object, "rank",
		       process->rank >= 0 ? json_integer(process->rank) : json_null());
	jsonwriter_put(w, object, "parent", number(process->parent));
	jsonwriter_put_text(w, object, "command",
			    process->command[0] != '\0' ? process->command : process->name);
	jsonwriter_put(w, object, "state", letter(process->state));
	jsonwriter_put(w, object, "tracer",
		       process->tracer != 0 ? number(process->tracer) : json_null());
	jsonwriter_put_text(w, object, "python", some(process->python));
	jsonwriter_put_text(w, object, "python_missing", some(process->python_why));
	jsonwriter_put_text(w, object, "error", some(process->error));
	jsonwriter_put(w, object, "replaced_libraries", number(process->replaced_libraries));
	for (size_t i = 0; i < process->thread_cnt; i++)
		jsonwriter_push(w, threads, thread_object(w, process, &process->threads[i], names));
	jsonwriter_put(w, object, "threads", threads);
	jsonwriter_put(w, object, "threads_dropped", number(process->threads_dropped));
	jsonwriter_put(w, object, "children", children_array(w, process));
	jsonwriter_put(w, object, "children_dropped", number(process->children_dropped));
	jsonwriter_put(w, object, "read_ms", milliseconds(process->read_ns));
	jsonwriter_put(w, object, "stopped_ms", milliseconds(process->stopped_ns));
	jsonwriter_put(w, object, "stopped_max_ms", milliseconds(process->stopped_max_ns));
	return object;
}

static const char *kind_word(enum stacktree_kind kind)
{
	static const char *const WORDS[] = {
		[STACKTREE_ROOT] = "root",
		[STACKTREE_STATE] = "state",
		[STACKTREE_ROLE] = "role",
		[STACKTREE_FRAME] = "frame",
	};

	return WORDS[kind];
}

/* Nodes as a list, parents first; "parent" is an index in it. */
json_t *stackformat_tree(struct json_writer *w, const struct stacktree *tree)
{
	json_t *array = json_array();

	vec_foreach(node, &tree->nodes) {
		_cleanup_(str_done) struct str set = { 0 };
		json_t *object = json_object();

		stacktree_append_members(&set, tree, node);
		if (str_error(&set) < 0)
			w->error = str_error(&set);
		jsonwriter_put(w, object, "parent",
			       node->kind != STACKTREE_ROOT ? number(node->parent) : json_null());
		jsonwriter_put_text(w, object, "kind", kind_word(node->kind));
		jsonwriter_put_text(w, object, "label", strtab_text(&tree->labels, node->label));
		jsonwriter_put_text(w, object, stacktree_member_word(tree),
				    set.len > 0 ? set.data + 1 : ""); /* without the "@" */
		jsonwriter_put(w, object, "threads", number(node->threads));
		jsonwriter_push(w, array, object);
	}
	return array;
}

int stackformat_json(const struct stacktree *tree, struct stacknames *names, struct str *out)
{
	struct json_writer w = { 0 };
	json_t *root = json_object(), *processes = json_array();

	jsonwriter_put_text(&w, root, "schema", "perftracker.stacks.v1");
	for (size_t i = 0; i < tree->cnt; i++)
		jsonwriter_push(&w, processes, stackformat_process(&w, tree->processes[i], names));
	jsonwriter_put(&w, root, "processes", processes);
	if (tree->cnt > 1)
		jsonwriter_put(&w, root, "tree", stackformat_tree(&w, tree));
	return jsonwriter_print(&w, root, out);
}
