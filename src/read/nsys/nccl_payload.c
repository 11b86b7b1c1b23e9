/* SPDX-License-Identifier: Apache-2.0 */
#include "read/nsys/nccl_payload.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *const field_names[] = {
	[FIELD_COMMUNICATOR] = "NCCL communicator ID",
	[FIELD_BYTES] = "Message size [bytes]",
	[FIELD_RANKS] = "No. of ranks",
	[FIELD_RANK] = "Rank",
};

/* Size of a payload entry of an integer type (nvToolsExtPayload.h); 0: another type. */
static uint8_t type_bytes(int64_t type)
{
	switch (type) {
	case 5:	 /* int */
	case 6:	 /* unsigned int */
	case 15: /* int32 */
	case 16: /* uint32 */
		return 4;
	case 7:	 /* long */
	case 8:	 /* unsigned long */
	case 9:	 /* long long */
	case 10: /* unsigned long long */
	case 17: /* int64 */
	case 18: /* uint64 */
	case 22: /* size_t */
		return 8;
	default:
		return 0;
	}
}

static struct nsys_schema *schema_get(struct nsys_pass *pass, int64_t domain, int64_t id)
{
	struct nsys_schema fresh = { .domain = domain, .id = id, .offset = { -1, -1, -1, -1 } };

	vec_foreach(schema, &pass->schemas) {
		if (schema->domain == domain && schema->id == id)
			return schema;
	}
	/* NCCL has a dozen. */
	if (pass->schemas.cnt >= 1024 || vec_push(&pass->schemas, fresh) < 0)
		return NULL;
	return &pass->schemas.data[pass->schemas.cnt - 1];
}

static void note_entry(struct nsys_pass *pass, struct nsys_query *query)
{
	int64_t domain, id, type, offset = 0;
	struct nsys_schema *schema;
	size_t len = 0;
	const char *name = nsys_query_text(query, 3, &len);

	if (!nsys_query_int(query, 0, &domain) || !nsys_query_int(query, 1, &id) ||
	    !nsys_query_int(query, 2, &type) || name == NULL)
		return;
	(void)nsys_query_int(query, 4, &offset);
	schema = schema_get(pass, domain, id);
	for (size_t i = 0; i < ARRAY_SIZE(field_names) && schema != NULL; i++) {
		if (strcmp(name, field_names[i]) != 0 || type_bytes(type) == 0)
			continue;
		schema->offset[i] = offset;
		schema->bytes[i] = type_bytes(type);
	}
}

int nsys_read_schemas(struct nsys_pass *pass)
{
	static const struct nsys_column columns[] = {
		{ "domainId", true }, { "schemaId", true }, { "type", true },
		{ "name", true },     { "offset", true },
	};
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "NVTX_PAYLOAD_SCHEMA_ENTRIES", columns,
			    ARRAY_SIZE(columns), NSYS_ROWS_ALL);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0)
		note_entry(pass, &query);
	nsys_query_close(&query);
	return ret;
}

/* --- payload of one range --- */

static uint64_t little_endian(const uint8_t *p, size_t len)
{
	uint64_t value = 0;

	for (size_t i = 0; i < len; i++)
		value |= (uint64_t)p[i] << 8 * i;
	return value;
}

static bool read_field(const struct nsys_schema *schema, enum nsys_field field, const uint8_t *data,
		       size_t len, uint64_t *ret)
{
	int64_t offset = schema->offset[field];
	size_t bytes = schema->bytes[field];

	if (offset < 0 || bytes == 0 || bytes > len || (uint64_t)offset > len - bytes)
		return false;
	*ret = little_endian(data + offset, bytes);
	return true;
}

static int64_t amount(uint64_t value)
{
	return value <= INT64_MAX ? (int64_t)value : -1;
}

#define HEADER_BYTES 32 /* 1, 0, schema, 0, then sizes as 64 bits */

void nsys_payload_binary(const struct nsys_pass *pass, const uint8_t *data, size_t len,
			 struct nsys_payload *ret)
{
	int64_t id = len >= HEADER_BYTES ? (int64_t)little_endian(data + 8, 4) : -1;
	uint64_t value;

	vec_foreach(schema, &pass->schemas) {
		const uint8_t *body = data + HEADER_BYTES;

		if (id < 0 || schema->id != id ||
		    (pass->nccl_domain >= 0 && schema->domain != pass->nccl_domain))
			continue;
		ret->known = read_field(schema, FIELD_COMMUNICATOR, body, len - HEADER_BYTES,
					&ret->communicator);
		if (read_field(schema, FIELD_BYTES, body, len - HEADER_BYTES, &value))
			ret->bytes = amount(value);
		if (read_field(schema, FIELD_RANKS, body, len - HEADER_BYTES, &value))
			ret->size = amount(value);
		if (read_field(schema, FIELD_RANK, body, len - HEADER_BYTES, &value))
			ret->rank = amount(value);
		return;
	}
}

/* The number behind "NAME": in a flat object, also as text and with commas; false: none. */
static bool json_number(const char *text, size_t len, const char *name, uint64_t *ret)
{
	const char *end = text + len, *p = memmem(text, len, name, strlen(name));
	uint64_t value = 0;
	bool any = false;

	/* "Rank" is also a part of other names. */
	while (p != NULL &&
	       (p == text || p[-1] != '"' || p + strlen(name) == end || p[strlen(name)] != '"'))
		p = memmem(p + 1, (size_t)(end - p - 1), name, strlen(name));
	if (p == NULL)
		return false;
	for (p += strlen(name) + 1; p < end && strchr(": \t\"", *p) != NULL && *p != '\0'; p++)
		;
	for (; p < end && ((*p >= '0' && *p <= '9') ||
			   (any && *p == ',' && p + 1 < end && p[1] >= '0' && p[1] <= '9'));
	     p++) {
		if (*p == ',')
			continue;
		any = true;
		if (__builtin_mul_overflow(value, UINT64_C(10), &value) ||
		    __builtin_add_overflow(value, (uint64_t)(*p - '0'), &value))
			return false;
	}
	*ret = value;
	return any;
}

void nsys_payload_json(const char *text, size_t len, struct nsys_payload *ret)
{
	uint64_t value;

	ret->known = json_number(text, len, field_names[FIELD_COMMUNICATOR], &ret->communicator);
	if (json_number(text, len, field_names[FIELD_BYTES], &value))
		ret->bytes = amount(value);
	if (json_number(text, len, field_names[FIELD_RANKS], &value))
		ret->size = amount(value);
	if (json_number(text, len, field_names[FIELD_RANK], &value))
		ret->rank = amount(value);
}

/* --- calls --- */

/* torch's word for "ncclAllReduce"; NULL: no call that launches. */
static const char *collective_of(const char *name)
{
	static const char *const words[][2] = {
		{ "ncclAllReduce", "allreduce" }, { "ncclAllGather", "_allgather_base" },
		{ "ncclBroadcast", "broadcast" }, { "ncclReduceScatter", "_reduce_scatter_base" },
		{ "ncclReduce", "reduce" },	  { "ncclSend", "send" },
		{ "ncclRecv", "recv" },		  { "ncclAllToAll", "all_to_all" },
		{ "ncclAlltoAll", "all_to_all" }, { "ncclGather", "gather" },
		{ "ncclScatter", "scatter" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(name, words[i][0]) == 0)
			return words[i][1];
	}
	return NULL;
}

/* Looked through for each kernel. */
#define MAX_GROUPS 1024u

static int note_group(struct nsys_pass *pass, const struct nsys_payload *payload)
{
	if (!payload->known || payload->size <= 0)
		return 0;
	vec_foreach(group, &pass->groups) {
		if (group->communicator == payload->communicator)
			return 0;
	}
	if (pass->groups.cnt >= MAX_GROUPS)
		return 0;
	return vec_push(&pass->groups,
			(struct nsys_group){ payload->communicator, payload->size, payload->rank });
}

int nsys_note_call(struct nsys_pass *pass, const char *name, const struct nsys_payload *payload,
		   uint16_t lane, int64_t start_ns, int64_t end_ns)
{
	const char *word = collective_of(name);
	struct nsys_call call = {
		start_ns, end_ns, payload->communicator, payload->bytes, 0, lane
	};
	int ret = note_group(pass, payload);

	if (ret < 0 || word == NULL)
		return ret;
	if (!payload->known)
		call.communicator = 0;
	ret = nsys_intern(pass, word, strlen(word), &call.collective);
	return ret == 0 ? vec_push(&pass->calls, call) : ret;
}

/* --- kernels --- */

/* A kernel of NCCL and where it was launched. */
struct launch {
	int64_t time_ns;
	uint32_t kernel;
	uint16_t lane;
};

static int by_call(const void *a, const void *b)
{
	const struct nsys_call *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	return (x->start_ns > y->start_ns) - (x->start_ns < y->start_ns);
}

static int by_launch(const void *a, const void *b)
{
	const struct launch *x = a, *y = b;

	if (x->lane != y->lane)
		return x->lane < y->lane ? -1 : 1;
	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	return (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

typedef VEC(struct launch) launch_vec;

/* Times of calls are the session's: so are those of launches. */
static int find_launches(struct nsys_pass *pass, launch_vec *launches)
{
	const struct trace *trace = pass->trace;

	for (size_t i = 0; i < trace->event_cnt; i++) {
		const struct event *kernel = &trace->events[i], *launch;

		if (kernel->kind != KIND_KERNEL || kernel->parent == EVENT_NONE ||
		    strncmp(event_name(trace, kernel), "nccl", 4) != 0)
			continue;
		launch = &trace->events[kernel->parent];
		if (vec_push(launches, (struct launch){ launch->start_ns - pass->base_ns,
							(uint32_t)i, launch->lane }) < 0)
			return -ENOMEM;
	}
	return 0;
}

/* The communicator's name; with it, groups of several ranks are matched. */
static int group_name(struct nsys_pass *pass, uint64_t communicator, uint32_t *ret)
{
	char text[32];
	int len = snprintf(text, sizeof(text), "nccl %016" PRIx64, communicator);

	return nsys_intern(pass, text, (size_t)len, ret);
}

/* What calls[cnt], launched as one kernel, say of it. */
static int describe(struct nsys_pass *pass, const struct nsys_call *calls, size_t cnt,
		    struct event *kernel)
{
	const struct event_args *old = event_args_borrow(pass->trace, kernel);
	struct event_args args = { .bytes = 0,
				   .elements = old != NULL ? old->elements : -1,
				   .seq = -1,
				   .collective = calls[0].collective,
				   .group_size = -1 };

	for (size_t i = 0; i < cnt; i++) {
		if (calls[i].communicator != calls[0].communicator)
			return 0;
		if (calls[i].collective != args.collective)
			args.collective = 0;
		if (calls[i].bytes < 0 || args.bytes < 0 ||
		    __builtin_add_overflow(args.bytes, calls[i].bytes, &args.bytes))
			args.bytes = -1;
	}
	vec_foreach(group, &pass->groups) {
		if (group->communicator == calls[0].communicator && group->size <= INT32_MAX)
			args.group_size = (int32_t)group->size;
	}
	if (calls[0].communicator != 0 && group_name(pass, calls[0].communicator, &args.group) < 0)
		return -ENOMEM;
	return build_args(&pass->build, &args, &kernel->args);
}

int nsys_join_calls(struct nsys_pass *pass)
{
	launch_vec launches = { 0 };
	size_t next = 0;
	int ret = pass->calls.cnt > 0 ? find_launches(pass, &launches) : 0;

	if (ret == 0 && launches.cnt > 0) {
		qsort(pass->calls.data, pass->calls.cnt, sizeof(*pass->calls.data), by_call);
		qsort(launches.data, launches.cnt, sizeof(*launches.data), by_launch);
	}
	for (size_t i = 0; i < launches.cnt && ret == 0; i++) {
		struct launch *launch = &launches.data[i];
		const struct nsys_call *calls = pass->calls.data;
		size_t first;

		while (next < pass->calls.cnt && calls[next].lane < launch->lane)
			next++;
		first = next;
		while (next < pass->calls.cnt && calls[next].lane == launch->lane &&
		       calls[next].start_ns <= launch->time_ns)
			next++;
		if (next > first)
			ret = describe(pass, &calls[first], next - first,
				       &pass->trace->events[launch->kernel]);
	}
	vec_done(&launches);
	return ret;
}
