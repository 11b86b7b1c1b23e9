/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL flight recorder dumps of PyTorch: {"version", "pg_config": {name: {"ranks", ...}}, "entries":
 * [{"process_group": [name, description], "collective_seq_id", "state", ...}]}; before 2.3 the root is
 * the list of entries, and their number "seq_id".
 */
#include "base/str.h"
#include "read/dumps/dumps_parts.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define UNKNOWN (-1)
#define COALESCED "coalesced"
#define DIGITS "0123456789"

struct nccl_groups {
	struct hang_entered entered[HANG_ENTERED_MAX];
	int64_t least_open[HANG_ENTERED_MAX]; /* UNKNOWN: none */
	size_t cnt, dropped;
	/* Of sends and receives: some were launched together, and only the whole has a state. */
	bool batched[HANG_ENTERED_MAX];
	int64_t last_batch[HANG_ENTERED_MAX]; /* its number; UNKNOWN: none */
	bool some_ended;		      /* the dump has ended collectives, too */
};

/* "35 (TENSOR_MODEL_PARALLEL_GROUP)" of ("35", "TENSOR_MODEL_PARALLEL_GROUP"). */
static const char *group_of(struct arena *arena, const json_t *entry)
{
	const json_t *group = json_object_get(entry, "process_group");
	const char *name = json_string_value(json_array_get(group, 0));
	const char *description = json_string_value(json_array_get(group, 1));

	if (name == NULL)
		return arena_printf(arena, "%lld", (long long)dumpjson_number(entry, "pg_id", 0));
	if (description == NULL || description[0] == '\0' || strcmp(description, "undefined") == 0)
		return arena_strdup(arena, name);
	return arena_printf(arena, "%s (%s)", name, description);
}

/* "all_reduce" of "nccl:all_reduce". */
static const char *name_of(struct arena *arena, const json_t *entry)
{
	const char *name = json_string_value(json_object_get(entry, "profiling_name"));
	const char *colon = name != NULL ? strchr(name, ':') : NULL;

	return arena_strdup(arena, colon != NULL ? colon + 1 : name != NULL ? name : "");
}

static bool is_p2p(const json_t *entry, const char *name)
{
	const json_t *flag = json_object_get(entry, "is_p2p");

	if (strcmp(name, COALESCED) == 0)
		return true; /* members of a group take part in different ones */
	if (json_is_boolean(flag))
		return json_is_true(flag);
	return strncmp(name, "send", 4) == 0 || strncmp(name, "recv", 4) == 0;
}

/* The rank of the job that is the index-th of "[0, 4, 8]"; -1: there is none. */
static int member_at(const char *members, long index)
{
	for (const char *p = members + strcspn(members, DIGITS); *p != '\0' && index >= 0;
	     p += strcspn(p, DIGITS)) {
		char *end;
		const long rank = strtol(p, &end, 10);

		if (index-- == 0)
			return rank <= DUMPS_RANKS_MAX ? (int)rank : -1;
		p = end;
	}
	return -1;
}

/* "send 0->3" and "recv 3<-0": places in the group. Source: ProcessGroupNCCL.cpp, pointToPoint. */
static void find_peers(const char *members, struct hang_entered *row)
{
	const char *at = row->open_name + strcspn(row->open_name, DIGITS);
	const bool sends = strncmp(row->open_name, "send ", 5) == 0;
	char *end;
	long own, peer;
	int from, to;

	row->open_from = row->open_to = 0;
	if ((!sends && strncmp(row->open_name, "recv ", 5) != 0) || *at == '\0')
		return;
	own = strtol(at, &end, 10);
	if (strncmp(end, sends ? "->" : "<-", 2) != 0 || strspn(end + 2, DIGITS) == 0)
		return;
	peer = strtol(end + 2, NULL, 10);
	from = member_at(members, sends ? own : peer);
	to = member_at(members, sends ? peer : own);
	if (from < 0 || to < 0)
		return;
	row->open_from = from;
	row->open_to = to;
}

/* The product of the sizes of the first input; 0: unknown. */
static uint64_t elements_of(const json_t *entry)
{
	const json_t *sizes = json_array_get(json_object_get(entry, "input_sizes"), 0);
	uint64_t product = json_array_size(sizes) > 0;

	for (size_t i = 0; i < json_array_size(sizes); i++) {
		const json_int_t size = json_integer_value(json_array_get(sizes, i));

		if (size < 0 || __builtin_mul_overflow(product, (uint64_t)size, &product))
			return 0;
	}
	return product;
}

static bool is_torchs(const char *file)
{
	return strstr(file, "/torch/") != NULL || strncmp(file, "torch/", 6) == 0;
}

/* The innermost frame that is not torch's: "train.py(12): main"; "" without frames. */
static const char *caller_of(struct arena *arena, const json_t *entry)
{
	const json_t *frames = json_object_get(entry, "frames");

	for (size_t i = 0; i < json_array_size(frames); i++) {
		const json_t *frame = json_array_get(frames, i);
		const char *file = json_string_value(json_object_get(frame, "filename"));
		const char *name = json_string_value(json_object_get(frame, "name"));
		const char *slash = file != NULL ? strrchr(file, '/') : NULL;

		if (file == NULL || name == NULL || is_torchs(file))
			continue;
		return arena_printf(arena, "%s(%lld): %s", slash != NULL ? slash + 1 : file,
				    (long long)dumpjson_number(frame, "line", 0), name);
	}
	return "";
}

static bool has_ended(const json_t *entry)
{
	const char *state = json_string_value(json_object_get(entry, "state"));

	/* gloo's works are retired when they are over, and stay "scheduled". */
	return (state != NULL && strcmp(state, "completed") == 0) ||
	       dumpjson_flag(entry, "retired");
}

static const char *members_of(struct arena *arena, const json_t *root, const json_t *entry)
{
	const char *name =
		json_string_value(json_array_get(json_object_get(entry, "process_group"), 0));
	const json_t *config = json_object_get(root, "pg_config");

	return dumpjson_text(arena, name != NULL ? json_object_get(config, name) : NULL, "ranks");
}

/* The row of the group, made if new; NULL: too many. */
static struct hang_entered *row_of(struct nccl_groups *groups, const char *group, bool p2p,
				   size_t *ret_index)
{
	for (size_t i = 0; i < groups->cnt; i++) {
		*ret_index = i;
		if (groups->entered[i].p2p == p2p && strcmp(groups->entered[i].group, group) == 0)
			return &groups->entered[i];
	}
	if (groups->cnt == HANG_ENTERED_MAX) {
		groups->dropped++;
		return NULL;
	}
	*ret_index = groups->cnt;
	groups->least_open[groups->cnt] = groups->last_batch[groups->cnt] = UNKNOWN;
	groups->entered[groups->cnt] = (struct hang_entered){
		.group = group, .p2p = p2p, .number = UNKNOWN, .last_finished = UNKNOWN
	};
	return &groups->entered[groups->cnt++];
}

static int fill_row(struct arena *arena, const json_t *root, const json_t *entry,
		    struct hang_entered *row)
{
	row->name = name_of(arena, entry);
	row->elements = elements_of(entry);
	row->time_ns = dumpjson_number(entry, "time_created_ns", 0);
	row->ended = has_ended(entry);
	row->caller = caller_of(arena, entry);
	row->members = members_of(arena, root, entry);
	return row->name != NULL && row->caller != NULL && row->members != NULL ? 0 : -ENOMEM;
}

static int64_t number_of(const json_t *entry, bool p2p)
{
	const char *key = p2p ? "p2p_seq_id" : "collective_seq_id";

	return dumpjson_number(entry, key, dumpjson_number(entry, "seq_id", UNKNOWN));
}

static enum hang_begun begun(const json_t *entry)
{
	const char *state = json_string_value(json_object_get(entry, "state"));

	if (state == NULL)
		return HANG_WORK_UNKNOWN;
	return strcmp(state, "started") == 0 ? HANG_WORK_BEGUN : HANG_WORK_QUEUED;
}

/* The first of the group that is open. A dump without states does not say which are. */
static int take_open(struct arena *arena, const json_t *entry, int64_t number,
		     struct hang_entered *row)
{
	if (!json_is_string(json_object_get(entry, "state")) ||
	    (row->open_name != NULL && number >= row->open))
		return 0;
	row->open = number;
	row->open_ns = dumpjson_number(entry, "time_created_ns", 0);
	row->open_begun = begun(entry);
	row->open_name = name_of(arena, entry);
	row->open_elements = elements_of(entry);
	return row->open_name != NULL ? 0 : -ENOMEM;
}

/* Members of a batch have its number, each, and so has the entry of the batch behind them. */
static void see_batch(const char *name, int64_t number, size_t index, struct nccl_groups *groups)
{
	groups->batched[index] |=
		strcmp(name, COALESCED) == 0 || (groups->entered[index].number == number);
}

static int take_entry(const json_t *root, const json_t *entry, struct arena *arena,
		      struct nccl_groups *groups)
{
	const char *group = group_of(arena, entry), *name = name_of(arena, entry);
	struct hang_entered *row;
	bool p2p;
	int64_t number;
	size_t index;

	if (group == NULL || name == NULL)
		return -ENOMEM;
	p2p = is_p2p(entry, name);
	number = number_of(entry, p2p);
	row = number >= 0 ? row_of(groups, group, p2p, &index) : NULL;
	if (row == NULL)
		return 0;
	if (p2p)
		see_batch(name, number, index, groups);
	if (p2p && strcmp(name, COALESCED) != 0 && number <= groups->last_batch[index])
		return 0; /* the batch says whether it is over */
	if (has_ended(entry)) {
		groups->some_ended = true;
		row->last_finished = MAX(row->last_finished, number);
	} else {
		if (groups->least_open[index] == UNKNOWN || number < groups->least_open[index])
			groups->least_open[index] = number;
		if (take_open(arena, entry, number, row) < 0)
			return -ENOMEM;
	}
	if (number < row->number)
		return 0;
	row->number = number;
	return fill_row(arena, root, entry, row);
}

/* What is before the first open collective is over. */
static void find_finished(struct nccl_groups *groups)
{
	for (size_t i = 0; i < groups->cnt; i++)
		if (groups->least_open[i] > 0)
			groups->entered[i].last_finished = groups->least_open[i] - 1;
}

/* Rows of groups that it is a member of and has nothing open in: their number is found later. */
static int add_idle_groups(const json_t *root, struct arena *arena, struct nccl_groups *groups)
{
	const json_t *config = json_object_get(root, "pg_config"), *group;
	const char *name;

	if (groups->some_ended)
		return 0; /* then what it has not is older than the ring */
	json_object_foreach((json_t *)(uintptr_t)config, name, group)
	{
		const char *description = json_string_value(json_object_get(group, "desc"));
		const char *key = description != NULL && description[0] != '\0' &&
						  strcmp(description, "undefined") != 0
					  ? arena_printf(arena, "%s (%s)", name, description)
					  : arena_strdup(arena, name);
		struct hang_entered *row;
		size_t index;

		row = key != NULL ? row_of(groups, key, false, &index) : NULL;
		if (key == NULL)
			return -ENOMEM;
		if (row == NULL || row->number != UNKNOWN)
			continue;
		row->name = row->caller = "";
		row->members = dumpjson_text(arena, group, "ranks");
		row->ended = true;
		if (row->members == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* Of sends and receives that are open for sure: with whom. */
static void find_all_peers(struct nccl_groups *groups)
{
	for (size_t i = 0; i < groups->cnt; i++) {
		struct hang_entered *row = &groups->entered[i];

		if (row->p2p && row->open_name != NULL && !groups->batched[i])
			find_peers(row->members, row);
	}
}

/* Batches of sends and receives come behind their members. */
static int find_batch(const json_t *entry, struct arena *arena, struct nccl_groups *groups)
{
	const char *group, *name = name_of(arena, entry);
	const int64_t number = number_of(entry, true);
	size_t index;

	if (name == NULL)
		return -ENOMEM;
	if (strcmp(name, COALESCED) != 0 || number < 0)
		return 0;
	group = group_of(arena, entry);
	if (group == NULL)
		return -ENOMEM;
	if (row_of(groups, group, true, &index) != NULL)
		groups->last_batch[index] = MAX(groups->last_batch[index], number);
	return 0;
}

static int take_all(const json_t *root, struct arena *arena, struct nccl_groups *groups)
{
	const json_t *entries = json_is_array(root) ? root : json_object_get(root, "entries");
	int error = 0;

	for (size_t i = 0; i < json_array_size(entries) && error == 0; i++)
		error = find_batch(json_array_get(entries, i), arena, groups);
	groups->dropped = 0; /* they come again */
	for (size_t i = 0; i < json_array_size(entries) && error == 0; i++)
		error = take_entry(root, json_array_get(entries, i), arena, groups);
	find_finished(groups);
	find_all_peers(groups);
	return error == 0 ? add_idle_groups(root, arena, groups) : error;
}

int nccldump_take(const json_t *root, const struct dumptext *text, struct dumps *dumps,
		  struct err *err)
{
	struct hang_record record = dump_record(text->path);
	struct nccl_groups *groups;
	struct hang_entered *entered;
	int error;

	if (!json_is_array(root) && !json_is_object(root))
		return err_set(
			err, EINVAL,
			"%s: offset 0: expected the dump of a flight recorder, found a single "
			"value",
			text->path);
	groups = arena_calloc(&dumps->arena, 1, sizeof(*groups));
	error = groups != NULL ? take_all(root, &dumps->arena, groups) : -ENOMEM;
	if (error == 0) {
		entered = groups->entered;
		record.rank = (int)MAX(MIN(dumpjson_number(root, "rank", -1), DUMPS_RANKS_MAX), -1);
		record.entered = entered;
		record.entered_cnt = groups->cnt;
		error = vec_push(&dumps->records, record);
	}
	if (error == 0 && groups->dropped > 0 &&
	    vec_push(&dumps->notes,
		     arena_printf(&dumps->arena,
				  "%s: %zu collectives of process groups beyond the %d first",
				  text->path, groups->dropped, HANG_ENTERED_MAX)) < 0)
		error = -ENOMEM;
	return error < 0 ? err_set(err, ENOMEM, "%s: out of memory", text->path) : 0;
}
