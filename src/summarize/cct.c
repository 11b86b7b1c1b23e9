/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/cct.h"

#include <errno.h>

int cct_init(struct cct *cct)
{
	*cct = (struct cct){ 0 };
	return strtab_init(&cct->names);
}

void cct_done(struct cct *cct)
{
	strtab_done(&cct->names);
	vec_done(&cct->nodes);
	idmap_done(&cct->by_parent);
	vec_done(&cct->by_raw);
	vec_done(&cct->nexts);
	str_done(&cct->scratch);
}

static struct funckey key_under(const struct cct *cct, uint32_t parent, const char *part)
{
	return funckey_under(parent != CCT_ROOT ? &cct->nodes.data[parent].key : NULL, part);
}

static uint32_t cct_intern(struct cct *cct, enum event_kind kind, const char *name, bool display)
{
	cct->scratch.len = 0;
	if (display)
		funckey_display(kind, name, &cct->scratch);
	else
		funckey_part(kind, name, &cct->scratch);
	if (str_error(&cct->scratch) < 0)
		return STRTAB_NONE;
	return strtab_intern(&cct->names, str_borrow(&cct->scratch), cct->scratch.len);
}

static uint32_t cct_find_or_add(struct cct *cct, uint32_t parent, enum event_kind kind,
				uint32_t canonical, uint32_t display)
{
	uint64_t edge = (uint64_t)parent << 32 | canonical;
	uint32_t node = idmap_get(&cct->by_parent, edge);

	if (node != IDMAP_NONE)
		return node;
	node = (uint32_t)cct->nodes.cnt;
	if (idmap_set(&cct->by_parent, edge, node) < 0)
		return FRAME_NONE;
	if (vec_push(&cct->nodes,
		     (struct cct_node){
			     .key = key_under(cct, parent, strtab_text(&cct->names, canonical)),
			     .parent = parent,
			     .name = display,
			     .kind = (uint8_t)kind,
		     }) < 0)
		return FRAME_NONE;
	return node;
}

/* Fills the cache entry of a name. Returns 0 or -ENOMEM. */
static int learn_name(struct cct *cct, enum event_kind kind, uint32_t raw_id, const char *name)
{
	uint32_t canonical = cct_intern(cct, kind, name, false);
	uint32_t display = cct_intern(cct, kind, name, true);

	if (canonical == STRTAB_NONE || display == STRTAB_NONE ||
	    vec_reserve(&cct->by_raw, (size_t)raw_id + 1) < 0)
		return -ENOMEM;
	while (cct->by_raw.cnt <= raw_id)
		cct->by_raw.data[cct->by_raw.cnt++] = (struct cct_name){ 0 };
	cct->by_raw.data[raw_id] = (struct cct_name){ canonical, display, true, (uint8_t)kind };
	return 0;
}

/* cct_child() without the prediction from the previous call. */
static uint32_t find_child(struct cct *cct, uint32_t parent, enum event_kind kind, uint32_t raw_id,
			   const char *name)
{
	const struct cct_name *known = raw_id < cct->by_raw.cnt ? &cct->by_raw.data[raw_id] : NULL;

	if (known == NULL || !known->known || known->kind != kind) {
		if (learn_name(cct, kind, raw_id, name) < 0)
			return FRAME_NONE;
		known = &cct->by_raw.data[raw_id];
	}
	return cct_find_or_add(cct, parent, kind, known->canonical, known->display);
}

static int add_nexts(struct cct *cct)
{
	if (vec_reserve(&cct->nexts, cct->nodes.cnt) < 0)
		return -ENOMEM;
	while (cct->nexts.cnt < cct->nodes.cnt)
		cct->nexts.data[cct->nexts.cnt++] = (struct cct_next){ .node = FRAME_NONE };
	return 0;
}

uint32_t cct_child(struct cct *cct, uint32_t parent, enum event_kind kind, uint32_t raw_id,
		   const char *name)
{
	struct cct_next *next = cct->nexts.cnt > 0 ? &cct->nexts.data[cct->last] : NULL;
	uint32_t node;

	if (next != NULL && next->node != FRAME_NONE && next->parent == parent &&
	    next->raw_id == raw_id && next->kind == kind) {
		cct->last = next->node;
		return next->node;
	}
	node = find_child(cct, parent, kind, raw_id, name);
	if (node == FRAME_NONE)
		return FRAME_NONE;
	if (next != NULL)
		*next = (struct cct_next){ parent, raw_id, node, (uint8_t)kind };
	if (cct->nexts.cnt < cct->nodes.cnt && add_nexts(cct) < 0)
		return FRAME_NONE;
	cct->last = node;
	return node;
}

uint32_t cct_child_text(struct cct *cct, uint32_t parent, enum event_kind kind, const char *name)
{
	uint32_t canonical = cct_intern(cct, kind, name, false);
	uint32_t display = cct_intern(cct, kind, name, true);

	if (canonical == STRTAB_NONE || display == STRTAB_NONE)
		return FRAME_NONE;
	return cct_find_or_add(cct, parent, kind, canonical, display);
}
