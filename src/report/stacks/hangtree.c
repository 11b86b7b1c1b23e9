/* SPDX-License-Identifier: Apache-2.0 */
#include "report/stacks/hangtree.h"

#include "base/text/clean.h"
#include "report/html/markup.h"
#include "report/stacks/stackformats.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_LINES = 40 };

/* Copies of the processes with their training threads alone. */
struct trained {
	struct stacks_process *processes;
	const struct stacks_process **pointers;
};

static void trained_done(struct trained *trained)
{
	free(trained->processes);
	free(trained->pointers);
}

static int trained_make(struct trained *ret, const struct report *report)
{
	ret->processes = calloc(report->stack_cnt + 1, sizeof(*ret->processes));
	ret->pointers = calloc(report->stack_cnt + 1, sizeof(*ret->pointers));
	if (ret->processes == NULL || ret->pointers == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < report->stack_cnt; i++) {
		ret->processes[i] = *report->stacks[i];
		ret->processes[i].thread_cnt = MIN(report->stacks[i]->thread_cnt, (size_t)1);
		ret->pointers[i] = &ret->processes[i];
	}
	return 0;
}

static void append_line(struct str *out, const char *line, size_t len, size_t width)
{
	struct str copy = { 0 };

	str_append_len(&copy, line, len);
	if (str_error(&copy) < 0)
		out->error = str_error(&copy);
	clean_append_short(out, str_borrow(&copy), width);
	str_append(out, "\n");
	str_done(&copy);
}

/* Appends the first lines of text, and how many more there are. */
static void append_lines(struct str *out, const char *text, size_t width, size_t limit)
{
	size_t cnt = 0, more = 0;

	for (const char *p = text; *p != '\0';) {
		const size_t len = strcspn(p, "\n");

		if (cnt++ < limit) {
			append_line(out, p, len, width);
		} else {
			more++;
		}
		p += len + (p[len] == '\n');
	}
	if (more > 0)
		str_printf(out, "  ... %zu more line%s on the page and in the JSON\n", more,
			   plural((double)more));
}

static int print_tree(const struct stacks_process *const *processes, size_t cnt,
		      enum stackview_frames frames, struct str *out)
{
	const struct stackview view = { .frames = frames };
	struct stacknames names = { 0 };
	struct stacktree tree;
	int error = stacktree_make(&tree, processes, cnt, &view, &names);

	if (error == 0)
		stacktree_text(out, &tree);
	stacktree_done(&tree);
	stacknames_done(&names);
	return error;
}

void hangtree_text(struct str *out, const struct report *report, size_t width)
{
	struct trained trained = { 0 };
	struct str text = { 0 };
	int error;

	if (report->stack_cnt == 0)
		return;
	error = trained_make(&trained, report);
	if (error == 0)
		error = print_tree(trained.pointers, report->stack_cnt, STACKVIEW_PYTHON, &text);
	if (error == 0) {
		str_append(out, "\nStacks of the training threads, callers first\n");
		append_lines(out, str_borrow(&text), width, TEXT_LINES);
	}
	if (error < 0 || str_error(&text) < 0)
		out->error = -ENOMEM;
	str_done(&text);
	trained_done(&trained);
}

void hangtree_html(struct str *out, const struct report *report)
{
	struct str text = { 0 };

	if (report->stack_cnt == 0)
		return;
	if (print_tree(report->stacks, report->stack_cnt, STACKVIEW_BOTH, &text) < 0 ||
	    str_error(&text) < 0)
		out->error = -ENOMEM;
	str_append(out, "<section>\n<h2>Stacks of all ranks</h2>\n<p>Callers come first; @ has the "
			"ranks that are there, and behind | those that are not.</p>\n<details open>"
			"<summary>All threads, Python and native</summary>\n<pre>");
	for (const char *p = str_borrow(&text); *p != '\0';) {
		const size_t len = strcspn(p, "\n");
		struct str line = { 0 };

		str_append_len(&line, p, len);
		markup_text(out, str_borrow(&line));
		str_append(out, "\n");
		str_done(&line);
		p += len + (p[len] == '\n');
	}
	str_append(out, "</pre>\n</details>\n</section>\n");
	str_done(&text);
}

json_t *hangtree_json(struct json_writer *w, const struct report *report)
{
	const struct stackview view = { .all = true };
	struct stacknames names = { 0 };
	struct stacktree tree;
	json_t *object = NULL;

	if (report->stack_cnt == 0)
		return json_null();
	if (stacktree_make(&tree, report->stacks, report->stack_cnt, &view, &names) == 0) {
		object = json_object();
		jsonwriter_put(w, object, "members", jsonwriter_text(stacktree_member_word(&tree)));
		jsonwriter_put(w, object, "tree", stackformat_tree(w, &tree));
	}
	stacktree_done(&tree);
	stacknames_done(&names);
	return object;
}
