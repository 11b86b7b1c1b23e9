/* SPDX-License-Identifier: Apache-2.0 */
/* The tables about the session: clock, host, device and the worker's rank. */
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <string.h>

static int read_clock(struct nsys_pass *pass)
{
	static const struct nsys_column columns[] = { { "utcEpochNs", true } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_SESSION_START_TIME", columns, 1,
			    NSYS_ROWS_ALL);

	if (ret > 0)
		ret = nsys_query_next(&query);
	if (ret > 0)
		(void)nsys_query_int(&query, 0, &pass->base_ns);
	nsys_query_close(&query);
	return MIN(ret, 0);
}

/* An owned copy of a text, mended. Returns 0 or -ENOMEM. */
static int copy_text(struct nsys_pass *pass, const char *text, size_t len, char **ret)
{
	uint32_t id;
	int r = nsys_intern(pass, text, len, &id);

	if (r < 0)
		return r;
	free(*ret);
	*ret = strdup(strtab_text(&pass->trace->strings, id));
	return *ret != NULL ? 0 : -ENOMEM;
}

static int read_host(struct nsys_pass *pass)
{
	static const struct nsys_column columns[] = { { "name", true }, { "value", true } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_SYSTEM_ENV", columns, ARRAY_SIZE(columns),
			    NSYS_ROWS_ALL);

	/* Of all the properties only this one is looked at. */
	query.bad_cnt = NULL;
	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		size_t len = 0;
		const char *name = nsys_query_text(&query, 0, &len);

		if (name == NULL || strcmp(name, "Hostname") != 0)
			continue;
		name = nsys_query_text(&query, 1, &len);
		if (name != NULL && len > 0) {
			ret = copy_text(pass, name, len, &pass->trace->meta.host);
			break;
		}
	}
	nsys_query_close(&query);
	return MIN(ret, 0);
}

static int read_device_name(struct nsys_pass *pass)
{
	static const struct nsys_column columns[] = { { "name", true } };
	struct nsys_query query;
	int ret = nsys_rows(pass, &query, "TARGET_INFO_GPU", columns, 1, NSYS_ROWS_ALL);
	const char *name;
	size_t len = 0;

	if (ret > 0)
		ret = nsys_query_next(&query);
	name = ret > 0 ? nsys_query_text(&query, 0, &len) : NULL;
	if (name != NULL && len > 0)
		ret = copy_text(pass, name, len, &pass->trace->meta.device_name);
	nsys_query_close(&query);
	return MIN(ret, 0);
}

/* --- rank --- */

static int set_rank(struct nsys_pass *pass, int64_t rank, int64_t size)
{
	struct trace_meta *meta = &pass->trace->meta;

	if (rank < 0 || rank > INT_MAX || (size > 0 && rank >= size) || size > INT_MAX) {
		pass->trace->drops.bad_value++;
		return 0;
	}
	meta->rank = (int)rank;
	if (size > 0)
		meta->world_size = (int)size;
	return 0;
}

/* MPI_RANKS names a thread of each process that called MPI_Init(). */
static int read_mpi(struct nsys_pass *pass)
{
	static const struct nsys_column columns[] = { { "rank", true } };
	struct nsys_query query;
	int64_t rank = -1;
	int ret = nsys_rows(pass, &query, "MPI_RANKS", columns, 1, NSYS_ROWS_OF_TID);

	if (ret > 0)
		ret = nsys_query_next(&query);
	if (ret > 0 && nsys_query_int(&query, 0, &rank))
		ret = set_rank(pass, rank, -1);
	nsys_query_close(&query);
	return MIN(ret, 0);
}

/* The largest communicator is the world, unless the job has just one rank a group. */
static int read_rank(struct nsys_pass *pass)
{
	const struct nsys_group *world = NULL;

	vec_foreach(group, &pass->groups) {
		if (group->rank >= 0 && (world == NULL || group->size > world->size))
			world = group;
	}
	if (world != NULL && world->size > 1)
		return set_rank(pass, world->rank, world->size);
	return read_mpi(pass);
}

static int set_backend(struct nsys_pass *pass)
{
	const struct strtab *strings = &pass->trace->strings;

	for (size_t i = 0; i < strings->cnt; i++) {
		if (strncmp(strings->entries[i].text, "nccl", 4) != 0)
			continue;
		pass->trace->meta.backend = strdup("nccl");
		return pass->trace->meta.backend != NULL ? 0 : -ENOMEM;
	}
	return 0;
}

int nsys_read_target(struct nsys_pass *pass)
{
	int ret = read_clock(pass);

	if (ret == 0)
		ret = read_host(pass);
	if (ret == 0)
		ret = read_device_name(pass);
	if (ret == 0)
		ret = read_rank(pass);
	return ret == 0 ? set_backend(pass) : ret;
}
