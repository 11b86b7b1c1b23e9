/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Stacks of processes for programs and browsers. Each function appends one complete document, the
 * same bytes for the same stacks, and returns 0 or -ENOMEM; then out is unchanged.
 */
#pragma once

#include "report/jsonwriter.h"
#include "report/stacks/stacktree.h"

/* All of it, and of several processes the tree: docs/stacks.md. */
_must_check_ int stackformat_json(const struct stacktree *tree, struct stacknames *names,
				  struct str *out);

/* Parts of that document, for others: one process, and the nodes of a tree. */
json_t *stackformat_process(struct json_writer *w, const struct stacks_process *process,
			    struct stacknames *names);
json_t *stackformat_tree(struct json_writer *w, const struct stacktree *tree);

/* Lines "state;role;frame;frame COUNT", outermost first: input of flame graph programs. */
_must_check_ int stackformat_folded(const struct stacktree *tree, struct str *out);

/* A file for speedscope.app: one profile per process. Source: its file-format-spec.ts. */
_must_check_ int stackformat_speedscope(const struct stacktree *tree, const struct stackview *view,
					struct stacknames *names, struct str *out);

/* One page: a flame graph of the tree, widths are processes. */
_must_check_ int stackformat_html(const struct stacktree *tree, struct str *out);
