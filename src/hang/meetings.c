/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/meetings.h"

#include "base/str.h"
#include "base/strtab.h"
#include "base/vec.h"

#include <errno.h>
#include <string.h>

#define UNKNOWN (-1)

/* A process group, over all its members. */
struct meeting {
	int64_t first_open;		      /* of all members; UNKNOWN: none */
	int64_t most_finished;		      /* UNKNOWN: no member knows */
	int64_t front;			      /* the latest number */
	const struct hang_entered *candidate; /* of that number: Boyer-Moore majority vote */
	size_t lead, same, front_cnt;
};

struct groups {
	struct strtab names;
	VEC(struct meeting) all; /* by the ids of names */
};

static bool counts(const struct hang_entered *entered)
{
	return !entered->p2p && !entered->by_name;
}

/* The group, added if new; NULL: out of memory. */
static struct meeting *meeting_of(struct groups *groups, const struct hang_entered *entered)
{
	const uint32_t id = strtab_intern(&groups->names, entered->group, strlen(entered->group));

	while (id != STRTAB_NONE && groups->all.cnt <= id)
		if (vec_push(&groups->all, (struct meeting){ .first_open = UNKNOWN,
							     .most_finished = UNKNOWN,
							     .front = UNKNOWN }) < 0)
			return NULL;
	return id != STRTAB_NONE ? &groups->all.data[id] : NULL;
}

static void add_progress(struct meeting *meeting, const struct hang_entered *entered)
{
	meeting->most_finished = MAX(meeting->most_finished, entered->last_finished);
	meeting->front = MAX(meeting->front, entered->number);
	if (!entered->ended && entered->last_finished >= 0 &&
	    (meeting->first_open == UNKNOWN || entered->last_finished + 1 < meeting->first_open))
		meeting->first_open = entered->last_finished + 1;
}

static bool has_equal_sizes(const char *name)
{
	static const char *const names[] = { "all_reduce",
					     "allreduce",
					     "broadcast",
					     "reduce",
					     "_all_gather_base",
					     "_reduce_scatter_base",
					     "allgather_into_tensor" };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++)
		if (strcmp(names[i], name) == 0)
			return true;
	return false;
}

/* Whether members of one collective can have both. */
static bool is_same(const struct hang_entered *a, const struct hang_entered *b)
{
	if (strcmp(a->name, b->name) != 0)
		return false;
	return !has_equal_sizes(a->name) || a->elements == 0 || b->elements == 0 ||
	       a->elements == b->elements;
}

bool meetings_match(const struct hang_entered *a, const struct hang_entered *b)
{
	const struct hang_entered x = { .name = a->open_name, .elements = a->open_elements };
	const struct hang_entered y = { .name = b->open_name, .elements = b->open_elements };

	return is_same(&x, &y);
}

static void vote(struct meeting *meeting, const struct hang_entered *entered)
{
	if (entered->number != meeting->front || entered->ended)
		return;
	meeting->front_cnt++;
	if (meeting->lead == 0)
		meeting->candidate = entered;
	meeting->lead =
		is_same(meeting->candidate, entered) ? meeting->lead + 1 : meeting->lead - 1;
}

typedef void see_entry(struct meeting *meeting, const struct hang_entered *entered);

static int visit(const struct hang_record *records, size_t cnt, struct groups *groups,
		 see_entry *see)
{
	for (size_t i = 0; i < cnt; i++) {
		for (size_t j = 0; j < records[i].entered_cnt; j++) {
			const struct hang_entered *entered = &records[i].entered[j];
			struct meeting *meeting;

			if (!counts(entered))
				continue;
			meeting = meeting_of(groups, entered);
			if (meeting == NULL)
				return -ENOMEM;
			see(meeting, entered);
		}
	}
	return 0;
}

static void count_same(struct meeting *meeting, const struct hang_entered *entered)
{
	meeting->same += entered->number == meeting->front && !entered->ended &&
			 meeting->candidate != NULL && is_same(meeting->candidate, entered);
}

static int groups_init(struct groups *groups, const struct hang_record *records, size_t cnt)
{
	int error;

	*groups = (struct groups){ .all = { 0 } };
	error = strtab_init(&groups->names);
	return error == 0 ? visit(records, cnt, groups, add_progress) : error;
}

static void groups_done(struct groups *groups)
{
	strtab_done(&groups->names);
	vec_done(&groups->all);
}

static int number_record(struct hang_record *record, struct groups *groups, struct arena *arena)
{
	struct hang_entered *entered;

	if (record->entered_cnt == 0)
		return 0;
	entered = arena_calloc(arena, record->entered_cnt, sizeof(*entered));
	if (entered == NULL)
		return -ENOMEM;
	memcpy(entered, record->entered, record->entered_cnt * sizeof(*entered));
	record->entered = entered;
	for (size_t i = 0; i < record->entered_cnt; i++) {
		const struct meeting *meeting =
			counts(&entered[i]) ? meeting_of(groups, &entered[i]) : NULL;

		if (entered[i].number != UNKNOWN || meeting == NULL)
			continue;
		entered[i].number = entered[i].last_finished =
			meeting->first_open > 0 ? meeting->first_open - 1 : UNKNOWN;
	}
	return 0;
}

int meetings_number(struct hang_record *records, size_t cnt, struct arena *arena)
{
	struct groups groups;
	int error = groups_init(&groups, records, cnt);

	for (size_t i = 0; error == 0 && i < cnt; i++)
		error = number_record(&records[i], &groups, arena);
	groups_done(&groups);
	return error;
}

static void compare_entry(const struct meeting *meeting, const struct hang_entered *entered,
			  size_t i, struct meetings *ret)
{
	const int64_t lag = meeting->most_finished - entered->last_finished;

	if (entered->last_finished >= 0 && entered->number > entered->last_finished && lag > 0) {
		ret->unfinished[i] = ret->any_unfinished = true;
		if (ret->shown[i] == NULL || lag > ret->shown_lag[i]) {
			ret->shown[i] = entered;
			ret->shown_lag[i] = lag;
		}
	}
	if (entered->number == meeting->front && !entered->ended && meeting->candidate != NULL &&
	    2 * meeting->same > meeting->front_cnt && !is_same(meeting->candidate, entered))
		ret->other[i] = ret->any_other = true;
}

static void compare_record(const struct hang_record *record, size_t i, struct groups *groups,
			   struct meetings *ret)
{
	bool open = false;

	for (size_t j = 0; j < record->entered_cnt; j++) {
		const struct hang_entered *entered = &record->entered[j];
		const struct meeting *meeting =
			counts(entered) ? meeting_of(groups, entered) : NULL;

		open |= !entered->ended;
		if (meeting != NULL)
			compare_entry(meeting, entered, i, ret);
	}
	ret->idle[i] = record->entered_cnt > 0 && !open;
}

int meetings_find(const struct hang_record *records, size_t cnt, struct arena *arena,
		  struct meetings *ret)
{
	struct groups groups;
	int error = groups_init(&groups, records, cnt);

	*ret = (struct meetings){ .unfinished = arena_calloc(arena, cnt + 1, sizeof(bool)),
				  .shown = arena_calloc(arena, cnt + 1, sizeof(*ret->shown)),
				  .shown_lag = arena_calloc(arena, cnt + 1, sizeof(int64_t)),
				  .other = arena_calloc(arena, cnt + 1, sizeof(bool)),
				  .idle = arena_calloc(arena, cnt + 1, sizeof(bool)) };
	if (ret->unfinished == NULL || ret->other == NULL || ret->idle == NULL ||
	    ret->shown == NULL || ret->shown_lag == NULL)
		error = -ENOMEM;
	if (error == 0)
		error = visit(records, cnt, &groups, vote);
	if (error == 0)
		error = visit(records, cnt, &groups, count_same);
	for (size_t i = 0; error == 0 && i < cnt; i++)
		compare_record(&records[i], i, &groups, ret);
	groups_done(&groups);
	return error;
}
