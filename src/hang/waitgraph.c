/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/waitgraph.h"

#include "base/str.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "hang/meetings.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_RECORD SIZE_MAX

enum { RANKS_MAX = 1 << 20 };

/* A collective that is the head of some rank. */
struct head {
	uint32_t group; /* id of graph.groups */
	int64_t number;
	const struct hang_entered *first; /* the entry of a rank at it */
	size_t first_idx, at_cnt;	  /* those at it: first_idx, graph.next */
	bool p2p;			  /* a transfer from one rank to another */
	bool waits;			  /* for a member that is not at it */
	bool unentered;			  /* one of these has not entered it */
};

struct graph {
	const struct hang_record *records;
	size_t cnt;
	struct arena *arena;
	struct strtab groups, keys; /* "NAME\nMEMBERS", "GROUP NUMBER" */
	VEC(struct head) heads;	    /* by id of keys */
	size_t *of_rank;	    /* index of the record; NO_RECORD */
	int rank_cnt;
	size_t *next;	    /* by record: another one at the same head; NO_RECORD */
	uint32_t *head;	    /* by record: id of its head; STRTAB_NONE: none */
	bool *is_opaque;    /* by record: its head is a send or receive */
	bool *is_unentered; /* by record: it has not entered a head of others */
	bool *is_absent;    /* by rank */
	bool opaque;
	bool passed; /* members have finished a head of others, which explains their waits */
};

static bool counts(const struct hang_entered *entered)
{
	return !entered->p2p && !entered->by_name;
}

/* A send or receive of which both ranks are known. */
static bool is_transfer(const struct hang_entered *entered)
{
	return entered->p2p && entered->open_from != entered->open_to;
}

static uint32_t group_of(struct graph *g, const struct hang_entered *entered)
{
	_cleanup_(str_done) struct str key = { 0 };

	if (is_transfer(entered)) /* a group of two; the one begins it, the other one ends it */
		str_printf(&key, "%d>%d", entered->open_from, entered->open_to);
	else
		str_printf(&key, "%s\n%s", entered->group, entered->members);
	return str_error(&key) == 0 ? strtab_intern(&g->groups, str_borrow(&key), key.len)
				    : STRTAB_NONE;
}

/* The open entry that was launched first. */
static const struct hang_entered *head_entry(const struct hang_record *record)
{
	const struct hang_entered *ret = NULL;

	for (size_t i = 0; i < record->entered_cnt; i++) {
		const struct hang_entered *entered = &record->entered[i];

		if (entered->open_name != NULL && (ret == NULL || entered->open_ns < ret->open_ns))
			ret = entered;
	}
	return ret;
}

static int add_head(struct graph *g, size_t i, const struct hang_entered *entered)
{
	const uint32_t group = group_of(g, entered);
	struct head *head;
	char key[64];
	uint32_t id;

	/* Each rank counts its transfers with all ranks, so the numbers of two are not the same. */
	(void)snprintf(key, sizeof(key), "%u %lld", group,
		       is_transfer(entered) ? -1 : (long long)entered->open);
	id = strtab_intern(&g->keys, key, strlen(key));
	if (group == STRTAB_NONE || id == STRTAB_NONE)
		return -ENOMEM;
	while (g->heads.cnt <= id)
		if (vec_push(&g->heads, (struct head){ .first_idx = NO_RECORD }) < 0)
			return -ENOMEM;
	head = &g->heads.data[id];
	if (head->first == NULL)
		*head = (struct head){ .group = group,
				       .number = entered->open,
				       .first_idx = NO_RECORD,
				       .p2p = is_transfer(entered),
				       .first = entered };
	g->next[i] = head->first_idx;
	head->first_idx = i;
	head->at_cnt++;
	g->head[i] = id;
	return 0;
}

/* --- members --- */

/* The next number of "[0, 4, 8]"; -1: none is left. */
static int next_member(const char **text)
{
	char *end;
	long number;

	*text += strcspn(*text, "0123456789");
	if (**text == '\0')
		return -1;
	number = strtol(*text, &end, 10);
	*text = end;
	return number < RANKS_MAX ? (int)number : RANKS_MAX;
}

static const struct hang_entered *entry_of(struct graph *g, size_t i, const struct head *head)
{
	const struct hang_record *record = &g->records[i];

	for (size_t k = 0; k < record->entered_cnt; k++) {
		const struct hang_entered *entered = &record->entered[k];

		if (counts(entered) && strcmp(entered->group, head->first->group) == 0 &&
		    strcmp(entered->members, head->first->members) == 0)
			return entered;
	}
	return NULL;
}

static bool has_head(const struct graph *g, size_t i)
{
	return g->is_opaque[i] || g->head[i] != STRTAB_NONE;
}

/* A member that is not at the head, beside those that are. */
static void see_member(struct graph *g, uint32_t id, struct head *head, int rank)
{
	const size_t i = rank < g->rank_cnt ? g->of_rank[rank] : NO_RECORD;
	const struct hang_entered *entered;

	if (i == NO_RECORD) {
		head->waits = head->unentered = true;
		if (rank < g->rank_cnt)
			g->is_absent[rank] = true;
		return;
	}
	if (g->head[i] == id)
		return;
	if (head->p2p) {
		/* Whether it has come to the transfer is not known if it is at another one. */
		head->waits = true;
		if (has_head(g, i))
			return;
		head->unentered = true;
		g->is_unentered[i] = true;
		return;
	}
	entered = entry_of(g, i, head);
	if (entered != NULL && entered->last_finished >= head->number) {
		g->passed = true;
		return;
	}
	head->waits = true;
	if (entered != NULL && entered->number >= head->number)
		return;
	/* Without any entry of the group in its dump, it may have ended this one if it has another head. */
	if (entered != NULL && entered->name[0] == '\0' && has_head(g, i))
		return;
	head->unentered = true;
	g->is_unentered[i] = true;
}

static void see_members(struct graph *g)
{
	for (uint32_t id = 0; id < g->heads.cnt; id++) {
		struct head *head = &g->heads.data[id];
		const char *text = head->first != NULL ? head->first->members : "";

		if (head->p2p) {
			see_member(g, id, head, head->first->open_from);
			see_member(g, id, head, head->first->open_to);
			continue;
		}
		for (int rank = next_member(&text); rank >= 0; rank = next_member(&text))
			see_member(g, id, head, rank);
	}
}

/* --- verdicts --- */

/* Of a transfer it is not known whether the other rank has come to it. */
static bool waits_for_entered(const struct head *head)
{
	return head->waits && !head->unentered && !head->p2p;
}

/* Who has nothing open is where a chain ends; else who waits only for those that wait for it. */
static void find_behind(struct graph *g, struct waitgraph *ret)
{
	size_t accused = 0;
	bool idle = false;

	for (size_t i = 0; i < g->cnt; i++)
		idle |= g->is_unentered[i] && !has_head(g, i);
	for (size_t i = 0; i < g->cnt; i++) {
		if (!g->is_unentered[i] || g->is_opaque[i])
			continue;
		ret->behind[i] =
			idle ? !has_head(g, i) : waits_for_entered(&g->heads.data[g->head[i]]);
		accused += ret->behind[i];
	}
	if (2 * accused > g->cnt) /* rather the others have gone on alone */
		memset(ret->behind, 0, g->cnt * sizeof(*ret->behind));
}

static bool any(const bool *flags, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++)
		if (flags[i])
			return true;
	return false;
}

static bool finds_some(const struct graph *g, const struct waitgraph *ret)
{
	return g->passed || any(ret->behind, g->cnt) || any(ret->other, g->cnt) ||
	       any(ret->unbegun, g->cnt);
}

static void find_absent(const struct graph *g, struct waitgraph *ret)
{
	if (finds_some(g, ret) || g->opaque)
		return;
	for (int rank = 0; rank < g->rank_cnt; rank++)
		if (g->is_absent[rank])
			ret->absent[ret->absent_cnt++] = rank;
	if (ret->absent_cnt > g->cnt)
		ret->absent_cnt = 0; /* most dumps were not given, and say nothing */
}

/* What most of those at a head are at (Boyer-Moore majority vote); NULL: no majority. */
static const struct hang_entered *majority(const struct graph *g, const struct head *head)
{
	const struct hang_entered *candidate = head->first;
	size_t lead = 0, same = 0;

	for (size_t i = head->first_idx; i != NO_RECORD; i = g->next[i]) {
		const struct hang_entered *entered = head_entry(&g->records[i]);

		if (lead == 0)
			candidate = entered;
		lead = meetings_match(candidate, entered) ? lead + 1 : lead - 1;
	}
	for (size_t i = head->first_idx; i != NO_RECORD; i = g->next[i])
		same += meetings_match(candidate, head_entry(&g->records[i]));
	return 2 * same > head->at_cnt ? candidate : NULL;
}

/* A group that is at one head, all of it. Without a majority all are accused. */
static void judge_group(const struct graph *g, const struct head *head, struct waitgraph *ret)
{
	const struct hang_entered *most = majority(g, head);
	bool others = false;
	size_t begun = 0;

	for (size_t i = head->first_idx; i != NO_RECORD; i = g->next[i]) {
		const struct hang_entered *entered = head_entry(&g->records[i]);

		ret->other[i] = most == NULL || !meetings_match(most, entered);
		others |= ret->other[i];
		begun += entered->open_begun == HANG_WORK_BEGUN;
	}
	for (size_t i = head->first_idx; i != NO_RECORD && !others && begun > 0; i = g->next[i])
		ret->unbegun[i] = head_entry(&g->records[i])->open_begun == HANG_WORK_QUEUED;
}

static void judge(struct graph *g, struct waitgraph *ret)
{
	ret->known = g->heads.cnt > 0;
	ret->whole = !g->opaque;
	for (size_t i = 0; i < g->cnt; i++)
		ret->whole &= has_head(g, i);
	find_behind(g, ret);
	for (uint32_t id = 0; id < g->heads.cnt; id++)
		if (!g->heads.data[id].waits && g->heads.data[id].at_cnt > 1 &&
		    !g->heads.data[id].p2p)
			judge_group(g, &g->heads.data[id], ret);
	find_absent(g, ret);
}

/* --- the graph --- */

static int fill_ranks(struct graph *g)
{
	int greatest = 0;

	for (size_t i = 0; i < g->cnt; i++) {
		greatest = MAX(greatest, g->records[i].rank);
		for (size_t k = 0; k < g->records[i].entered_cnt; k++) {
			const char *text = g->records[i].entered[k].members;

			for (int rank = next_member(&text); rank >= 0; rank = next_member(&text))
				greatest = MAX(greatest, rank);
			greatest = MAX(greatest, g->records[i].entered[k].open_from);
			greatest = MAX(greatest, g->records[i].entered[k].open_to);
		}
	}
	g->rank_cnt = MIN(greatest, RANKS_MAX - 1) + 1;
	g->of_rank = arena_calloc(g->arena, (size_t)g->rank_cnt, sizeof(*g->of_rank));
	g->is_absent = arena_calloc(g->arena, (size_t)g->rank_cnt, sizeof(*g->is_absent));
	if (g->of_rank == NULL || g->is_absent == NULL)
		return -ENOMEM;
	for (int rank = 0; rank < g->rank_cnt; rank++)
		g->of_rank[rank] = NO_RECORD;
	for (size_t i = 0; i < g->cnt; i++)
		if (g->records[i].rank >= 0 && g->records[i].rank < g->rank_cnt)
			g->of_rank[g->records[i].rank] = i;
	return 0;
}

static int fill_heads(struct graph *g)
{
	g->head = arena_calloc(g->arena, g->cnt + 1, sizeof(*g->head));
	g->next = arena_calloc(g->arena, g->cnt + 1, sizeof(*g->next));
	g->is_opaque = arena_calloc(g->arena, g->cnt + 1, sizeof(*g->is_opaque));
	g->is_unentered = arena_calloc(g->arena, g->cnt + 1, sizeof(*g->is_unentered));
	if (g->head == NULL || g->next == NULL || g->is_opaque == NULL || g->is_unentered == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < g->cnt; i++) {
		const struct hang_entered *entered = head_entry(&g->records[i]);

		g->head[i] = STRTAB_NONE;
		if (entered == NULL)
			continue;
		g->is_opaque[i] =
			!is_transfer(entered) && (!counts(entered) || entered->members[0] == '\0');
		g->opaque |= g->is_opaque[i];
		if (!g->is_opaque[i] && add_head(g, i, entered) < 0)
			return -ENOMEM;
	}
	return 0;
}

int waitgraph_find(const struct hang_record *records, size_t cnt, struct arena *arena,
		   struct waitgraph *ret)
{
	struct graph g = { .records = records, .cnt = cnt, .arena = arena };
	int error = strtab_init(&g.groups);
	size_t max;

	if (error == 0)
		error = strtab_init(&g.keys);
	if (error == 0)
		error = fill_ranks(&g);
	if (error == 0)
		error = fill_heads(&g);
	max = cnt + (size_t)g.rank_cnt + 1;
	*ret = (struct waitgraph){ .behind = arena_calloc(arena, max, sizeof(bool)),
				   .other = arena_calloc(arena, max, sizeof(bool)),
				   .unbegun = arena_calloc(arena, max, sizeof(bool)),
				   .absent = arena_calloc(arena, max, sizeof(int)) };
	if (ret->behind == NULL || ret->other == NULL || ret->unbegun == NULL ||
	    ret->absent == NULL)
		error = -ENOMEM;
	if (error == 0) {
		see_members(&g);
		judge(&g, ret);
	}
	strtab_done(&g.groups);
	strtab_done(&g.keys);
	vec_done(&g.heads);
	return error;
}
