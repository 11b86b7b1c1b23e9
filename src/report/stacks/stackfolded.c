/* SPDX-License-Identifier: Apache-2.0 */
#include "report/jsonwriter.h"
#include "report/stacks/stackformats.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Semicolons and line ends separate frames and stacks. */
static void append_label(struct str *out, const char *label)
{
	for (; *label != '\0'; label++)
		str_append_char(out, *label == ';' ? ':' : *label == '\n' ? ' ' : *label);
}

static void append_path(struct str *out, const struct stacktree *tree,
			const struct stacktree_node *node)
{
	const struct stacktree_node *path[STACKS_FRAMES_MAX * 2 + 8];
	size_t cnt = 0;

	for (; node->kind != STACKTREE_ROOT && cnt < ARRAY_SIZE(path);
	     node = &tree->nodes.data[node->parent])
		path[cnt++] = node;
	for (size_t i = cnt; i > 0; i--) {
		append_label(out, strtab_text(&tree->labels, path[i - 1]->label));
		str_append(out, i > 1 ? ";" : " ");
	}
}

int stackformat_folded(const struct stacktree *tree, struct str *out)
{
	const size_t start = out->len;

	vec_foreach(node, &tree->nodes) {
		if (node->ends == 0)
			continue;
		append_path(out, tree, node);
		str_printf(out, "%zu\n", node->ends);
	}
	return str_finish(out, start);
}

/* Frames of all profiles, each once. */
struct shared_frames {
	struct strtab texts;
	json_t *list;
	struct json_writer *writer;
};

/* The index of a frame; -1: out of memory. */
static json_int_t share(struct shared_frames *shared, const char *name, const char *file,
			uint32_t line)
{
	_cleanup_(str_done) struct str key = { 0 };
	const size_t before = shared->texts.cnt;
	json_t *object;
	uint32_t index;

	str_printf(&key, "%s\n%s\n%u", name, file != NULL ? file : "", line);
	index = str_error(&key) == 0 ? strtab_intern(&shared->texts, key.data, key.len)
				     : STRTAB_NONE;
	if (index == STRTAB_NONE) {
		shared->writer->error = -ENOMEM;
		return -1;
	}
	if (shared->texts.cnt == before)
		return (json_int_t)index - 1;
	object = json_object();
	jsonwriter_put_text(shared->writer, object, "name", name);
	if (file != NULL)
		jsonwriter_put_text(shared->writer, object, "file", file);
	if (line != 0)
		jsonwriter_put(shared->writer, object, "line", json_integer(line));
	jsonwriter_push(shared->writer, shared->list, object);
	return (json_int_t)index - 1; /* the first text of the table is "" */
}

static json_t *sample(struct shared_frames *shared, const struct stacks_thread *thread,
		      const struct stackview *view, struct stacknames *names)
{
	_cleanup_free_ uint32_t *shown = calloc(thread->frame_cnt + 1, sizeof(*shown));
	json_t *array = json_array();
	const size_t cnt = shown != NULL ? stackview_pick(view, thread, shown) : 0;

	if (shown == NULL)
		shared->writer->error = -ENOMEM;
	jsonwriter_push(shared->writer, array, json_integer(share(shared, thread->role, NULL, 0)));
	for (size_t i = cnt; i > 0; i--) {
		const struct stacks_frame *frame = &thread->frames[shown[i - 1]];
		_cleanup_(str_done) struct str name = { 0 };

		stackframe_function(&name, names, frame);
		jsonwriter_push(
			shared->writer, array,
			json_integer(share(shared, str_borrow(&name), frame->file, frame->line)));
	}
	return array;
}

static json_t *profile(struct shared_frames *shared, const struct stacks_process *process,
		       const struct stackview *view, struct stacknames *names)
{
	json_t *object = json_object(), *samples = json_array(), *weights = json_array();
	char name[64];

	if (process->rank >= 0)
		(void)snprintf(name, sizeof(name), "rank %d, process %u", process->rank,
			       process->pid);
	else
		(void)snprintf(name, sizeof(name), "process %u", process->pid);
	for (size_t i = 0; i < process->thread_cnt; i++) {
		jsonwriter_push(shared->writer, samples,
				sample(shared, &process->threads[i], view, names));
		jsonwriter_push(shared->writer, weights, json_integer(1));
	}
	jsonwriter_put_text(shared->writer, object, "type", "sampled");
	jsonwriter_put_text(shared->writer, object, "name", name);
	jsonwriter_put_text(shared->writer, object, "unit", "none");
	jsonwriter_put(shared->writer, object, "startValue", json_integer(0));
	jsonwriter_put(shared->writer, object, "endValue",
		       json_integer((json_int_t)process->thread_cnt));
	jsonwriter_put(shared->writer, object, "samples", samples);
	jsonwriter_put(shared->writer, object, "weights", weights);
	return object;
}

int stackformat_speedscope(const struct stacktree *tree, const struct stackview *view,
			   struct stacknames *names, struct str *out)
{
	struct json_writer w = { 0 };
	struct shared_frames shared = { .list = json_array(), .writer = &w };
	json_t *root = json_object(), *frames = json_object(), *profiles = json_array();

	w.error = strtab_init(&shared.texts);
	for (size_t i = 0; i < tree->cnt && w.error == 0; i++)
		jsonwriter_push(&w, profiles, profile(&shared, tree->processes[i], view, names));
	jsonwriter_put_text(&w, root, "$schema",
			    "https://www.speedscope.app/file-format-schema.json");
	jsonwriter_put_text(&w, root, "name", "perftracker stacks");
	jsonwriter_put_text(&w, root, "exporter", "perftracker " PT_VERSION);
	jsonwriter_put(&w, frames, "frames", shared.list);
	jsonwriter_put(&w, root, "shared", frames);
	jsonwriter_put(&w, root, "profiles", profiles);
	strtab_done(&shared.texts);
	return jsonwriter_print(&w, root, out);
}
