/* SPDX-License-Identifier: Apache-2.0 */
#include "read/nsys/nsys.h"

#include "read/nsys/nccl_payload.h"
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAX_MEMORY_BYTES (8ULL << 30)
/* No host has more; each costs a look at every row. */
#define MAX_WORKERS 512u
#define PID_OF(global) ((global) >> 24 & 0xffffff)

/* --- what an export is --- */

static int check_export(struct nsys_db *db)
{
	int ret = nsys_db_has(db, "META_DATA_EXPORT");

	if (ret == 0)
		ret = nsys_db_has(db, "EXPORT_META_DATA"); /* schema 2 */
	if (ret == 0)
		ret = nsys_db_has(db, "TARGET_INFO_SESSION_START_TIME");
	if (ret > 0)
		ret = nsys_db_has(db, "StringIds");
	if (ret == 0)
		return err_set(db->err, EINVAL,
			       "%s: expected an export of Nsight Systems (tables META_DATA_EXPORT "
			       "and StringIds), found a database without them",
			       db->name);
	return MIN(ret, 0);
}

/* --- workers --- */

static int by_device(const void *a, const void *b)
{
	const struct nsys_worker *x = a, *y = b;

	if (x->device != y->device)
		return x->device < y->device ? -1 : 1;
	return (x->process > y->process) - (x->process < y->process);
}

static int note_worker(nsys_worker_vec *workers, int64_t process, int64_t device)
{
	struct nsys_worker worker = { .process = process,
				      .pid = process > 0 ? PID_OF(process) : -1,
				      .device = device };

	vec_foreach(known, workers) {
		if (known->process != process)
			continue;
		known->device = known->device < 0 ? device : MIN(known->device, device);
		return 0;
	}
	return workers->cnt < MAX_WORKERS ? vec_push(workers, worker) : -EFBIG;
}

static int fail_workers(struct nsys_db *db, const char *table, int error)
{
	if (error == -ENOMEM)
		return err_set(db->err, ENOMEM, "%s: out of memory", db->name);
	if (error == -EFBIG)
		return err_set(db->err, EFBIG,
			       "%s: table %s: expected at most %u processes, found more", db->name,
			       table, MAX_WORKERS);
	return error;
}

/* The processes in one table; column: of the packed id, 0 where the table lacks it. */
static int find_workers_in(struct nsys_db *db, const char *table, const char *column,
			   const char *device, nsys_worker_vec *workers)
{
	const struct nsys_column columns[] = { { column, true }, { device, true } };
	struct nsys_query query;
	int64_t last_process = -1, last_device = -1;
	int ret = nsys_query_open(&query, db, table, columns, ARRAY_SIZE(columns), NSYS_ROWS_ALL,
				  NSYS_ANY_PROCESS);

	while (ret > 0 && (ret = nsys_query_next(&query)) > 0) {
		int64_t process = NSYS_ANY_PROCESS, at = -1;

		(void)nsys_query_int(&query, 0, &process);
		(void)nsys_query_int(&query, 1, &at);
		process = process > 0 ? process & ~INT64_C(0xffffff) : NSYS_ANY_PROCESS;
		if (process == last_process && at == last_device)
			continue;
		last_process = process;
		last_device = at;
		ret = fail_workers(db, table, note_worker(workers, process, at));
		if (ret < 0)
			break;
		ret = 1;
	}
	nsys_query_close(&query);
	return ret;
}

/* Rows without a process id can only be used if no row has one. */
static void drop_unknown(nsys_worker_vec *workers)
{
	size_t kept = 0;

	for (size_t i = 0; i < workers->cnt && workers->cnt > 1; i++) {
		if (workers->data[i].process != NSYS_ANY_PROCESS)
			workers->data[kept++] = workers->data[i];
	}
	workers->cnt = workers->cnt > 1 ? kept : workers->cnt;
}

/* Sorted: equal ones are neighbors. */
static void mark_sharing(nsys_worker_vec *workers)
{
	for (size_t i = 1; i < workers->cnt; i++) {
		if (workers->data[i].device == workers->data[i - 1].device)
			workers->data[i].shares = workers->data[i - 1].shares = true;
	}
}

static int find_workers(struct nsys_db *db, nsys_worker_vec *workers)
{
	static const char *const tables[][3] = {
		{ "CUPTI_ACTIVITY_KIND_KERNEL", "globalPid", "deviceId" },
		{ "CUPTI_ACTIVITY_KIND_GRAPH_TRACE", "globalPid", "deviceId" },
		{ "CUPTI_ACTIVITY_KIND_MEMCPY", "globalPid", "deviceId" },
		{ "CUPTI_ACTIVITY_KIND_MEMSET", "globalPid", "deviceId" },
		{ "NVTX_EVENTS", "globalTid", "deviceId" },
		{ "OSRT_API", "globalTid", "deviceId" },
	};
	int ret = 0;

	/* A process that only copies beside one that computes is no worker. */
	for (size_t i = 0; i < ARRAY_SIZE(tables) && ret == 0; i++) {
		if (i >= 2 && workers->cnt > 0)
			break;
		ret = find_workers_in(db, tables[i][0], tables[i][1], tables[i][2], workers);
	}
	if (ret < 0)
		return ret;
	if (workers->cnt == 0)
		return err_set(db->err, EINVAL,
			       "%s: expected work on a device or ranges "
			       "(CUPTI_ACTIVITY_KIND_KERNEL, NVTX_EVENTS), found none",
			       db->name);
	drop_unknown(workers);
	qsort(workers->data, workers->cnt, sizeof(*workers->data), by_device);
	mark_sharing(workers);
	return 0;
}

static int open_workers(struct nsys_db *db, nsys_worker_vec *workers)
{
	int ret = check_export(db);

	return ret == 0 ? find_workers(db, workers) : ret;
}

int nsys_workers(const char *path, nsys_worker_vec *ret, struct err *err)
{
	nsys_worker_vec workers = { 0 };
	struct nsys_db db;
	int r = nsys_db_open(&db, path, path, err);

	if (r == 0)
		r = open_workers(&db, &workers);
	nsys_db_close(&db);
	if (r < 0)
		vec_done(&workers);
	else
		*ret = workers;
	return r;
}

/* --- events --- */

int nsys_rows(struct nsys_pass *pass, struct nsys_query *query, const char *table,
	      const struct nsys_column *columns, size_t cnt, enum nsys_owner owner)
{
	int ret =
		nsys_query_open(query, pass->db, table, columns, cnt, owner, pass->worker.process);

	query->bad_cnt = &pass->trace->drops.bad_value;
	return ret;
}

int nsys_thread(struct nsys_pass *pass, int64_t global_tid)
{
	struct ident pid = { .num = PID_OF(global_tid) }, tid = { .num = global_tid & 0xffffff };

	return build_lane(&pass->build, pid, tid, LANE_THREAD);
}

int nsys_stream(struct nsys_pass *pass, int64_t device, int64_t stream)
{
	return build_lane(&pass->build, (struct ident){ .num = device },
			  (struct ident){ .num = stream }, LANE_STREAM);
}

int nsys_add(struct nsys_pass *pass, struct event event, int lane, int64_t start_ns, int64_t end_ns,
	     const struct link *link)
{
	struct trace_drops *drops = &pass->trace->drops;
	struct nsys_db *db = pass->db;

	if (lane == -ENOSPC) {
		drops->unsupported_overlap++;
		return 0;
	}
	if (lane < 0)
		return lane;
	if (__builtin_sub_overflow(end_ns, start_ns, &event.dur_ns)) {
		drops->bad_event++;
		return 0;
	}
	drops->negative_dur += event.dur_ns < 0;
	event.dur_ns = MAX(event.dur_ns, INT64_C(0));
	event.start_ns = start_ns;
	event.lane = (uint16_t)lane;
	if (build_bytes(&pass->build) > pass->max_memory_bytes)
		return err_set(db->err, EFBIG,
			       "%s: expected events and names of at most %" PRIu64
			       " bytes, found more",
			       db->name, pass->max_memory_bytes);
	return build_event(&pass->build, event, link);
}

/* --- one worker's trace --- */

static void pass_done(struct nsys_pass *pass)
{
	nsys_query_close(&pass->string_query);
	for (size_t i = 0; i < ARRAY_SIZE(pass->names); i++)
		idmap_done(&pass->names[i]);
	idmap_done(&pass->kinds);
	vec_done(&pass->steps);
	vec_done(&pass->calls);
	vec_done(&pass->groups);
	vec_done(&pass->schemas);
	vec_done(&pass->devices);
	build_done(&pass->build);
}

static int read_tables(struct nsys_pass *pass)
{
	int ret = nsys_query_open_text(&pass->string_query, pass->db, "StringIds",
				       "SELECT value FROM StringIds WHERE id = ?1", 0);

	if (ret == 0)
		ret = nsys_read_device(pass);
	if (ret == 0)
		ret = nsys_read_threads(pass);
	if (ret == 0)
		ret = nsys_read_ranges(pass);
	if (ret == 0)
		ret = nsys_read_samples(pass);
	if (ret == 0)
		ret = nsys_find_iterations(pass);
	if (ret == 0)
		ret = nsys_read_target(pass);
	if (ret == 0)
		ret = nsys_read_gauges(pass);
	if (ret == 0)
		ret = nsys_read_host(pass);
	return ret;
}

static int read_worker(struct nsys_db *db, const struct nsys_worker *worker,
		       const struct nsys_options *opt, struct trace *ret)
{
	struct trace trace = { 0 };
	struct nsys_pass pass = {
		.db = db,
		.trace = &trace,
		.worker = *worker,
		.max_memory_bytes = opt != NULL && opt->max_memory_bytes > 0 ? opt->max_memory_bytes
									     : MAX_MEMORY_BYTES,
		.nccl_domain = -1,
	};
	int r = trace_init(&trace);

	build_init(&pass.build, &trace);
	if (r == 0)
		r = read_tables(&pass);
	if (r == 0) {
		trace.meta.source = strdup(db->name);
		trace.meta.base_ns = pass.base_ns;
		trace.meta.text_bytes = db->bytes;
		r = trace.meta.source != NULL ? build_finish(&pass.build, pass.base_ns) : -ENOMEM;
	}
	if (r == 0)
		r = nsys_join_calls(&pass);
	if (r == -ENOMEM)
		r = err_set(db->err, ENOMEM, "%s: out of memory", db->name);
	pass_done(&pass);
	if (r < 0)
		trace_done(&trace);
	else
		*ret = trace;
	return r;
}

static int choose_worker(struct nsys_db *db, const nsys_worker_vec *workers, int64_t pid,
			 struct nsys_worker *ret)
{
	vec_foreach(worker, workers) {
		if (pid >= 0 ? worker->pid == pid : workers->cnt == 1) {
			*ret = *worker;
			return 0;
		}
	}
	if (pid < 0)
		return err_set(db->err, E2BIG,
			       "%s: expected one worker, found %zu: name one by its process, "
			       "for example %s#%" PRId64,
			       db->name, workers->cnt, db->name, workers->data[0].pid);
	return err_set(db->err, ENOENT,
		       "%s: expected a worker with process id %" PRId64 ", found %zu others",
		       db->name, pid, workers->cnt);
}

int nsys_read(const char *path, const char *source, int64_t pid, const struct nsys_options *opt,
	      struct trace *ret, struct err *err)
{
	nsys_worker_vec workers = { 0 };
	struct nsys_worker worker = { 0 };
	struct nsys_db db;
	int r = nsys_db_open(&db, path, source != NULL ? source : path, err);

	if (r == 0)
		r = open_workers(&db, &workers);
	if (r == 0)
		r = choose_worker(&db, &workers, pid, &worker);
	if (r == 0)
		r = read_worker(&db, &worker, opt, ret);
	vec_done(&workers);
	nsys_db_close(&db);
	return r;
}

int nsys_read_memory(const void *data, size_t len, const char *name, const struct nsys_options *opt,
		     nsys_take_fn *take, void *to, struct err *err)
{
	nsys_worker_vec workers = { 0 };
	struct nsys_db db;
	int r = nsys_db_open_memory(&db, data, len, name, err);

	if (r == 0)
		r = open_workers(&db, &workers);
	for (size_t i = 0; i < workers.cnt && r == 0; i++) {
		struct trace trace;

		r = read_worker(&db, &workers.data[i], opt, &trace);
		if (r < 0)
			break;
		take(to, &trace);
		trace_done(&trace);
	}
	vec_done(&workers);
	nsys_db_close(&db);
	return r;
}

int nsys_read_input(const struct reader_input *input, struct trace *ret, struct err *err)
{
	return nsys_read(input->file, input->source, input->worker, NULL, ret, err);
}

int nsys_list_workers(const char *file, reader_worker_vec *ret)
{
	nsys_worker_vec workers = { 0 };
	int error = nsys_workers(file, &workers, NULL);

	for (size_t i = 0; i < workers.cnt && error == 0; i++)
		error = vec_push(ret, workers.data[i].pid);
	vec_done(&workers);
	return error;
}

bool nsys_is_report(const char *path)
{
	const char *dot = strrchr(path, '.');

	return dot != NULL && dot != path &&
	       (strcmp(dot, ".nsys-rep") == 0 || strcmp(dot, ".qdrep") == 0);
}

int nsys_refuse_report(const struct reader_input *input, struct trace *ret, struct err *err)
{
	(void)ret;
	return err_set(err, EINVAL,
		       "%s: expected an export, found a report: make one with 'nsys export "
		       "--type sqlite'",
		       input->source);
}
