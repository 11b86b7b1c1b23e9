/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels, copies, sets and waits of a device. */
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The columns that all tables of device work begin with. */
enum { COL_START, COL_END, COL_DEVICE, COL_STREAM, COL_CORRELATION, COL_OWN };

#define WORK_COLUMNS                                                                        \
	{ "start", false }, { "end", false }, { "deviceId", false }, { "streamId", false }, \
	{                                                                                   \
		"correlationId", true                                                       \
	}

/* One row of such a table. */
struct work {
	int64_t start_ns, end_ns, device, stream, correlation;
};

/* Reads it; false when the row is no event, which is counted. */
static bool read_work(struct nsys_pass *pass, struct nsys_query *query, struct work *ret)
{
	*ret = (struct work){ .stream = 0 };
	if (!nsys_query_int(query, COL_START, &ret->start_ns) ||
	    !nsys_query_int(query, COL_END, &ret->end_ns) ||
	    !nsys_query_int(query, COL_DEVICE, &ret->device)) {
		pass->trace->drops.bad_event++;
		return false;
	}
	(void)nsys_query_int(query, COL_STREAM, &ret->stream);
	(void)nsys_query_int(query, COL_CORRELATION, &ret->correlation);
	return true;
}

static int note_device(struct nsys_pass *pass, int64_t device)
{
	if (pass->devices.cnt > 0 && pass->devices.data[pass->devices.cnt - 1] == device)
		return 0;
	vec_foreach(known, &pass->devices) {
		if (*known == device)
			return 0;
	}
	/* No host has more; what lies beyond only lacks metrics. */
	return pass->devices.cnt < 64 ? vec_push(&pass->devices, device) : 0;
}

static int add_work(struct nsys_pass *pass, const struct work *work, enum event_kind kind,
		    uint32_t name, uint32_t args)
{
	struct event event = { .name = name, .args = args, .kind = (uint8_t)kind };
	struct link link = { CODE_NONE, CODE_NONE };
	int lane = nsys_stream(pass, work->device, work->stream);
	int ret = 0;

	if (kind != KIND_SYNC) {
		pass->trace->meta.has_device = true;
		ret = note_device(pass, work->device);
	}
	if (ret == 0 && work->correlation > 0)
		ret = build_code(&pass->build, (uint64_t)work->correlation, &link.parent);
	if (ret < 0)
		return ret;
	return nsys_add(pass, event, lane, work->start_ns, work->end_ns, &link);
}

static int add_args(struct nsys_pass *pass, int64_t bytes, int64_t elements, uint32_t *ret)
{
	struct event_args args = {
		.bytes = bytes, .elements = elements, .seq = -1, .group_size = -1
	};

	*ret = 0;
	return bytes < 0 && elements < 0 ? 0 : build_args(&pass->build, &args, ret);
}

/* A number that cannot be below zero: counted and absent then. */
static int64_t read_amount(struct nsys_pass *pass, struct nsys_query *query, int column)
{
	int64_t value = -1;

	if (!nsys_query_int(query, column, &value))
		return -1;
	pass->trace->drops.bad_value += value < 0;
	return MAX(value, INT64_C(-1));
}

/* --- kernels --- */

enum { COL_DEMANGLED = COL_OWN, COL_SHORT, COL_GRID };

static const struct nsys_column kernel_columns[] = {
	WORK_COLUMNS,	    { "demangledName", true }, { "shortName", true },
	{ "gridX", true },  { "gridY", true },	       { "gridZ", true },
	{ "blockX", true }, { "blockY", true },	       { "blockZ", true },
};

/* Threads launched; -1 if the row has no such columns. */
static int64_t read_threads(struct nsys_pass *pass, struct nsys_query *query)
{
	int64_t product = 1;

	for (int i = 0; i < 6; i++) {
		int64_t value = read_amount(pass, query, COL_GRID + i);

		if (value < 0 || __builtin_mul_overflow(product, value, &product))
			return -1;
	}
	return product;
}

static int kernel_name(struct nsys_pass *pass, struct nsys_query *query, uint32_t *ret)
{
	struct nsys_name name;
	int64_t id = -1;
	int r;

	if (!nsys_query_int(query, COL_DEMANGLED, &id))
		(void)nsys_query_int(query, COL_SHORT, &id);
	r = nsys_string(pass, id, NSYS_TEXT, &name);
	*ret = name.id;
	return r;
}

static int add_kernel(struct nsys_pass *pass, struct nsys_query *query)
{
	uint32_t name, args;
	struct work work;
	int ret;

	if (!read_work(pass, query, &work))
		return 0;
	ret = kernel_name(pass, query, &name);
	if (ret == 0)
		ret = add_args(pass, -1, read_threads(pass, query), &args);
	return ret == 0 ? add_work(pass, &work, KIND_KERNEL, name, args) : ret;
}

/* --- graphs that were recorded as a whole --- */

static const struct nsys_column graph_columns[] = { WORK_COLUMNS, { "graphId", true } };

static int add_graph(struct nsys_pass *pass, struct nsys_query *query)
{
	int64_t graph = -1;
	struct work work;
	char text[48];
	uint32_t name;
	int len, ret;

	if (!read_work(pass, query, &work))
		return 0;
	(void)nsys_query_int(query, COL_OWN, &graph);
	len = snprintf(text, sizeof(text), "CUDA graph %lld", (long long)graph);
	ret = nsys_intern(pass, text, (size_t)len, &name);
	return ret == 0 ? add_work(pass, &work, KIND_KERNEL, name, 0) : ret;
}

/* --- copies and sets --- */

enum { COL_BYTES = COL_OWN, COL_KIND, COL_SOURCE, COL_TARGET };

static const struct nsys_column copy_columns[] = {
	WORK_COLUMNS,	     { "bytes", true },	  { "copyKind", true },
	{ "srcKind", true }, { "dstKind", true },
};

static const struct nsys_column set_columns[] = { WORK_COLUMNS,
						  { "bytes", true },
						  { "memKind", true } };

/* As Kineto calls them: ENUM_CUDA_MEMCPY_OPER and ENUM_CUDA_MEM_KIND. */
static const char *copy_word(int64_t kind)
{
	static const char *const words[] = { "Unknown", "HtoD", "DtoH", "HtoA", "AtoH",
					     "AtoA",	"AtoD", "DtoA", "DtoD", "HtoH",
					     "PtoP",	"HtoD", "DtoH", "DtoD" };

	return kind >= 0 && kind < (int64_t)ARRAY_SIZE(words) ? words[kind] : "Unknown";
}

static const char *memory_word(int64_t kind)
{
	static const char *const words[] = { "Pageable",       "Pinned",  "Device",
					     "Array",	       "Managed", "Device Static",
					     "Managed Static", "Unknown" };

	return kind >= 0 && kind < (int64_t)ARRAY_SIZE(words) ? words[kind] : "Unknown";
}

static int add_memop(struct nsys_pass *pass, struct nsys_query *query, const struct work *work,
		     const char *text)
{
	uint32_t name, args;
	int ret = nsys_intern(pass, text, strlen(text), &name);

	if (ret == 0)
		ret = add_args(pass, read_amount(pass, query, COL_BYTES), -1, &args);
	return ret == 0 ? add_work(pass, work, KIND_GPU_MEMOP, name, args) : ret;
}

static int add_copy(struct nsys_pass *pass, struct nsys_query *query)
{
	int64_t kind = 0, source = -1, target = -1;
	struct work work;
	char text[96];

	if (!read_work(pass, query, &work))
		return 0;
	(void)nsys_query_int(query, COL_KIND, &kind);
	(void)nsys_query_int(query, COL_SOURCE, &source);
	(void)nsys_query_int(query, COL_TARGET, &target);
	(void)snprintf(text, sizeof(text), "Memcpy %s (%s -> %s)", copy_word(kind),
		       memory_word(source), memory_word(target));
	return add_memop(pass, query, &work, text);
}

static int add_set(struct nsys_pass *pass, struct nsys_query *query)
{
	int64_t kind = -1;
	struct work work;
	char text[64];

	if (!read_work(pass, query, &work))
		return 0;
	(void)nsys_query_int(query, COL_KIND, &kind);
	(void)snprintf(text, sizeof(text), "Memset (%s)", memory_word(kind));
	return add_memop(pass, query, &work, text);
}

/* --- waits --- */

static const struct nsys_column wait_columns[] = { WORK_COLUMNS, { "syncType", true } };

static int add_wait(struct nsys_pass *pass, struct nsys_query *query)
{
	static const char *const words[] = { "Unknown Sync", "Event Sync", "Stream Wait Event",
					     "Stream Sync", "Context Sync" };
	struct work work;
	int64_t type = 0;
	uint32_t name;
	int ret;

	if (!read_work(pass, query, &work))
		return 0;
	(void)nsys_query_int(query, COL_OWN, &type);
	if (type < 0 || type >= (int64_t)ARRAY_SIZE(words))
		type = 0;
	ret = nsys_intern(pass, words[type], strlen(words[type]), &name);
	return ret == 0 ? add_work(pass, &work, KIND_SYNC, name, 0) : ret;
}

/* --- tables --- */

struct table {
	const char *name;
	const struct nsys_column *columns;
	size_t column_cnt;
	int (*add)(struct nsys_pass *pass, struct nsys_query *query);
};

static int read_table(struct nsys_pass *pass, const struct table *table)
{
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, table->name, table->columns, table->column_cnt,
			    NSYS_ROWS_OF_PID);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		ret = table->add(pass, &query);
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

int nsys_read_device(struct nsys_pass *pass)
{
	static const struct table tables[] = {
		{ "CUPTI_ACTIVITY_KIND_KERNEL", kernel_columns, ARRAY_SIZE(kernel_columns),
		  add_kernel },
		{ "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", graph_columns, ARRAY_SIZE(graph_columns),
		  add_graph },
		{ "CUPTI_ACTIVITY_KIND_MEMCPY", copy_columns, ARRAY_SIZE(copy_columns), add_copy },
		{ "CUPTI_ACTIVITY_KIND_MEMSET", set_columns, ARRAY_SIZE(set_columns), add_set },
		{ "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION", wait_columns, ARRAY_SIZE(wait_columns),
		  add_wait },
	};
	int ret = 0;

	for (size_t i = 0; i < ARRAY_SIZE(tables) && ret == 0; i++)
		ret = read_table(pass, &tables[i]);
	return ret;
}
