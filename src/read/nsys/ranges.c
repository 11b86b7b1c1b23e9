/* SPDX-License-Identifier: Apache-2.0 */
/* NVTX: operators, annotations, iterations and the payload of NCCL's ranges. */
#include "read/nsys/nccl_payload.h"

#include <errno.h>
#include <string.h>

/* ENUM_NSYS_EVENT_TYPE */
enum { TYPE_PUSH_POP = 59, TYPE_START_END = 60, TYPE_DOMAIN = 75 };

enum {
	COL_TYPE,
	COL_START,
	COL_END,
	COL_THREAD,
	COL_TEXT,
	COL_TEXT_ID,
	COL_DOMAIN,
	COL_BINARY,
	COL_JSON,
	COL_JSON_ID
};

static const struct nsys_column range_columns[] = {
	{ "eventType", false }, { "start", false },	{ "end", false },
	{ "globalTid", false }, { "text", true },	{ "textId", true },
	{ "domainId", true },	{ "binaryData", true }, { "jsonText", true },
	{ "jsonTextId", true },
};

/* The name of a row, which is either the text in a column or its id in the next one. */
static int row_name(struct nsys_pass *pass, struct nsys_query *query, int column,
		    struct nsys_name *ret)
{
	size_t len = 0;
	const char *text = nsys_query_text(query, column, &len);
	int64_t id;

	if (text != NULL)
		return nsys_range_name(pass, text, len, ret);
	if (nsys_query_int(query, column + 1, &id))
		return nsys_string(pass, id, NSYS_RANGE, ret);
	return nsys_range_name(pass, "", 0, ret);
}

static const char *name_text(const struct nsys_pass *pass, const struct nsys_name *name)
{
	return strtab_text(&pass->trace->strings, name->id);
}

/* --- domains --- */

/* Domains are registered once a process, maybe behind the first ranges in them. */
static int read_domains(struct nsys_pass *pass)
{
	static const struct nsys_column columns[] = {
		{ "eventType", false }, { "text", true }, { "textId", true }, { "domainId", true }
	};
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "NVTX_EVENTS", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_OF_TID);

	/* The rows are read once more: what is wrong is counted then. */
	query.bad_cnt = NULL;
	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		struct nsys_name name;
		int64_t type = 0, domain;

		if (!nsys_query_int(&query, 0, &type) || type != TYPE_DOMAIN ||
		    !nsys_query_int(&query, 3, &domain))
			continue;
		ret = row_name(pass, &query, 1, &name);
		if (ret < 0)
			break;
		if (strcmp(name_text(pass, &name), "NCCL") == 0)
			pass->nccl_domain = domain;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

/* --- ranges --- */

struct range {
	int64_t start_ns, end_ns;
	struct nsys_name name;
	int lane;
};

static int note_nccl(struct nsys_pass *pass, struct nsys_query *query, const struct range *range)
{
	struct nsys_payload payload = { .bytes = -1, .size = -1, .rank = -1 };
	const uint8_t *blob;
	const char *text;
	size_t len;

	blob = nsys_query_blob(query, COL_BINARY, &len);
	if (blob != NULL)
		nsys_payload_binary(pass, blob, len, &payload);
	text = payload.known ? NULL : nsys_query_text(query, COL_JSON, &len);
	if (text != NULL)
		nsys_payload_json(text, len, &payload);
	if (!payload.known && text == NULL) {
		struct nsys_name json = { 0 };
		int64_t id;
		int ret;

		if (!nsys_query_int(query, COL_JSON_ID, &id))
			return 0;
		ret = nsys_string(pass, id, NSYS_TEXT, &json);
		if (ret < 0)
			return ret;
		text = name_text(pass, &json);
		nsys_payload_json(text, strlen(text), &payload);
	}
	return nsys_note_call(pass, name_text(pass, &range->name), &payload, (uint16_t)range->lane,
			      range->start_ns, range->end_ns);
}

/* Reads a row's interval; 1, 0 when it has none (counted), or -errno. */
static int read_range(struct nsys_pass *pass, struct nsys_query *query, struct range *ret)
{
	int64_t thread;
	int r;

	if (!nsys_query_int(query, COL_START, &ret->start_ns) ||
	    !nsys_query_int(query, COL_THREAD, &thread)) {
		pass->trace->drops.bad_event++;
		return 0;
	}
	if (!nsys_query_int(query, COL_END, &ret->end_ns)) {
		pass->trace->drops.unmatched_begin++;
		return 0;
	}
	ret->lane = nsys_thread(pass, thread);
	r = row_name(pass, query, COL_TEXT, &ret->name);
	return r < 0 ? r : 1;
}

static bool is_nccl(const struct nsys_pass *pass, struct nsys_query *query,
		    const struct range *range)
{
	int64_t domain = 0;

	(void)nsys_query_int(query, COL_DOMAIN, &domain);
	if (pass->nccl_domain >= 0)
		return domain == pass->nccl_domain;
	return domain != 0 && strncmp(name_text(pass, &range->name), "nccl", 4) == 0;
}

static int add_range(struct nsys_pass *pass, struct nsys_query *query)
{
	struct event event = { 0 };
	struct range range;
	int ret = read_range(pass, query, &range);

	if (ret <= 0)
		return ret;
	ret = 0;
	if (range.lane >= 0 && is_nccl(pass, query, &range))
		ret = note_nccl(pass, query, &range);
	else if (range.lane >= 0 && range.name.kind == KIND_ANNOTATION)
		ret = nsys_note_step(pass, range.name.id, (uint16_t)range.lane, range.start_ns,
				     range.end_ns);
	if (ret != 0)
		return MIN(ret, 0);
	event.name = range.name.id;
	event.kind = (uint8_t)range.name.kind;
	return nsys_add(pass, event, range.lane, range.start_ns, range.end_ns, NULL);
}

static int add_row(struct nsys_pass *pass, struct nsys_query *query)
{
	int64_t type;

	if (!nsys_query_int(query, COL_TYPE, &type)) {
		pass->trace->drops.bad_event++;
		return 0;
	}
	if (type == TYPE_PUSH_POP || type == TYPE_START_END)
		return add_range(pass, query);
	pass->trace->drops.no_interval++;
	return 0;
}

int nsys_read_ranges(struct nsys_pass *pass)
{
	struct nsys_query query;
	int ret = nsys_read_schemas(pass);

	if (ret == 0)
		ret = read_domains(pass);
	if (ret < 0)
		return ret;
	ret = nsys_rows(pass, &query, "NVTX_EVENTS", range_columns, ARRAY_SIZE(range_columns),
			NSYS_ROWS_OF_TID);
	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		ret = add_row(pass, &query);
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}
