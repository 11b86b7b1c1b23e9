/* SPDX-License-Identifier: Apache-2.0 */
/* A weighted tree of stacks as folded lines, speedscope's JSON, an SVG picture, and a page. */
#pragma once

#include "base/str.h"
#include "model/flame/flametree.h"

struct flameforms {
	const struct flametree *tree; /* finished */
	const char *what;	      /* "time of kernels and copies": a constant */
	const char *subject;	      /* "4 ranks": what the page's first line is about */
	const int *ranks;	      /* by member */
	size_t rank_cnt;
};

/* "a;b;c 1234": weights in microseconds, callers first. All return 0 or -ENOMEM. */
_must_check_ int flameforms_folded(const struct flameforms *f, struct str *out);
_must_check_ int flameforms_speedscope(const struct flameforms *f, struct str *out);
_must_check_ int flameforms_svg(const struct flameforms *f, struct str *out);
_must_check_ int flameforms_html(const struct flameforms *f, struct str *out);

/* "@0,2-7|1": ranks that have a node, and those that do not. */
void flameforms_append_ranks(struct str *out, const struct flameforms *f,
			     const struct flametree_node *node);
