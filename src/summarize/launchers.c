/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names the launching operators of kernels. Two versions of a library may run different kernels for
 * the same work; the launching place identifies that work.
 */
#include "summarize/pass.h"

#include <errno.h>

#define CHAIN_MAX 3 /* operators in a launcher's name */

/* The place that launched most of a function, by majority vote in one pass (Boyer and Moore). */
struct vote {
	uint32_t node; /* FRAME_NONE: none yet */
	int64_t lead_ns;
};

static void vote_add(struct vote *vote, uint32_t node, int64_t dur_ns)
{
	if (vote->node == node || vote->lead_ns < dur_ns) {
		vote->lead_ns = vote->node == node ? add_saturated(vote->lead_ns, dur_ns)
						   : dur_ns - vote->lead_ns;
		vote->node = node;
	} else {
		vote->lead_ns -= dur_ns;
	}
}

/* The innermost operators around node, excluding it; else the innermost caller. */
static size_t find_chain(const struct cct *cct, uint32_t node, uint32_t ret[static CHAIN_MAX])
{
	uint32_t innermost = FRAME_NONE;
	size_t cnt = 0;

	for (; node != CCT_ROOT && cnt < CHAIN_MAX; node = cct->nodes.data[node].parent) {
		uint8_t kind = cct->nodes.data[node].kind;

		if (kind == KIND_OPERATOR)
			ret[cnt++] = node;
		else if (kind != KIND_RUNTIME && innermost == FRAME_NONE)
			innermost = node;
	}
	if (cnt == 0 && innermost != FRAME_NONE)
		ret[cnt++] = innermost;
	return cnt;
}

static int name_launcher(const struct cct *cct, uint32_t node, struct fingerprint *fp,
			 struct fp_function *f)
{
	_cleanup_(str_done) struct str text = { 0 };
	uint32_t chain[CHAIN_MAX];

	for (size_t i = find_chain(cct, node, chain); i > 0; i--) {
		const struct cct_node *n = &cct->nodes.data[chain[i - 1]];

		str_append(&text, text.len > 0 ? " > " : "");
		funckey_canonical((enum event_kind)n->kind, strtab_text(&cct->names, n->name),
				  &text);
	}
	if (str_error(&text) < 0)
		return -ENOMEM;
	f->launched_by = text.len > 0 ? arena_strdup(&fp->arena, str_borrow(&text)) : NULL;
	return text.len > 0 && f->launched_by == NULL ? -ENOMEM : 0;
}

static void count_votes(const struct pass *p, size_t function_cnt, struct vote *votes)
{
	vec_foreach(exec, &p->execs) {
		const struct event *e = &p->trace->events[exec->event];
		uint32_t f = nodemap_get(&p->index.map, exec->node, exec->class);

		if (f < function_cnt && e->kind == KIND_KERNEL && e->parent != EVENT_NONE &&
		    p->node_of[e->parent] != FRAME_NONE)
			vote_add(&votes[f], p->node_of[e->parent], e->dur_ns);
	}
}

int launchers_add(struct pass *p, struct fingerprint *fp)
{
	_cleanup_free_ struct vote *votes = calloc(fp->function_cnt + 1, sizeof(*votes));
	int error = votes != NULL ? 0 : -ENOMEM;

	if (error < 0)
		return error;
	for (size_t f = 0; f < fp->function_cnt; f++)
		votes[f].node = FRAME_NONE;
	count_votes(p, fp->function_cnt, votes);
	for (size_t f = 0; f < fp->function_cnt && error == 0; f++) {
		if (votes[f].node != FRAME_NONE)
			error = name_launcher(&p->cct, votes[f].node, fp, &fp->functions[f]);
	}
	return error;
}
