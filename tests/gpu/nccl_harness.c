/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Plays NCCL for the agent library, as built: opens it as NCCL's loader does, calls
 * all seven tables in NCCL's order, from a thread that queues and one that drives the
 * network; plays the daemon, too, and reads the recorder that it was sent. No NCCL
 * and no GPU take part.
 *
 *	nccl_harness LIBRARY		checks
 *	nccl_harness LIBRARY --bench	what an event costs the job
 */
#include "agent/nccl/abi_calls.h"
#include "base/clock.h"
#include "format/flightlog/flightlog.h"
#include "play_hostd.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ALL_ON (NCCL_COLL | NCCL_P2P | NCCL_PROXY_OP | NCCL_PROXY_STEP)
#define VERSION_CNT 7
#define BENCH_CNT 500 /* so short that some rounds run through, whatever else runs */
#define BENCH_ROUNDS 500

/* --- the library --- */

static struct library {
	void *handle;
	int (*start)(const char *socket_path, int32_t rank, int32_t local_rank, int32_t world);
	int (*run)(void);
	int (*mark)(uint32_t mark, int64_t value, uint32_t detail);
	void (*bye)(const char *exception);
	const struct nccl_table_v1 *old[3]; /* versions 1 to 3 */
	const struct nccl_table_v4 *v4;
	const struct nccl_table_v5 *newer[3]; /* versions 5 to 7 */
} lib;

static void *symbol(const char *name)
{
	void *found = dlsym(lib.handle, name);

	CHECK(found != NULL);
	return found;
}

static void open_library(const char *path)
{
	lib.handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
	if (lib.handle == NULL)
		fprintf(stderr, "%s\n", dlerror());
	CHECK(lib.handle != NULL);
	/* The hook's and NCCL's library are the same. */
	CHECK(dlopen(path, RTLD_NOW | RTLD_LOCAL) == lib.handle);
	*(void **)&lib.start = symbol("pt_agent_start");
	*(void **)&lib.run = symbol("pt_agent_run");
	*(void **)&lib.mark = symbol("pt_agent_mark");
	*(void **)&lib.bye = symbol("pt_agent_bye");
	lib.old[0] = symbol("ncclProfiler_v1");
	lib.old[1] = symbol("ncclProfiler_v2");
	lib.old[2] = symbol("ncclProfiler_v3");
	lib.v4 = symbol("ncclProfiler_v4");
	lib.newer[0] = symbol("ncclProfiler_v5");
	lib.newer[1] = symbol("ncclProfiler_v6");
	lib.newer[2] = symbol("ncclProfiler_v7");
}

static void step(void)
{
	(void)lib.mark(MARK_ITERATION, 0, 0);
}

/* --- NCCL --- */

static int mask; /* one for all communicators, as NCCL has it */
static const char *const funcs[] = { "AllReduce", "AllGather", "ReduceScatter", "Broadcast" };

/* A communicator of one version of the interface. */
struct comm {
	int version;
	void *context;
	int (*start)(void *context, void **handle, void *descr);
	int (*stop)(void *handle);
	int (*state)(void *handle, int state, const struct nccl_state_args *args);
	int (*finalize)(void *context);
};

#define TAKE(comm, table)                             \
	do {                                          \
		(comm)->start = (table)->start;       \
		(comm)->stop = (table)->stop;         \
		(comm)->state = (table)->state;       \
		(comm)->finalize = (table)->finalize; \
	} while (0)

static void init_comm(struct comm *comm, int version)
{
	int ret;

	*comm = (struct comm){ .version = version };
	mask = -1;
	if (version <= 3) {
		TAKE(comm, lib.old[version - 1]);
		ret = lib.old[version - 1]->init(&comm->context, &mask);
	} else if (version == 4) {
		TAKE(comm, lib.v4);
		ret = lib.v4->init(&comm->context, &mask, "dp", 4, 2, 16, 0, NULL);
	} else {
		TAKE(comm, lib.newer[version - 5]);
		ret = lib.newer[version - 5]->init(&comm->context, (uint64_t)version, &mask, "dp",
						   2, 16, 0, NULL);
	}
	CHECK(ret == NCCL_SUCCESS && comm->context != NULL);
}

static void *begin(struct comm *comm, void *descr)
{
	void *handle = NULL;

	CHECK(comm->start(comm->context, &handle, descr) == NCCL_SUCCESS);
	return handle;
}

static void end(struct comm *comm, void *handle)
{
	if (handle != NULL) /* as NCCL does */
		CHECK(comm->stop(handle) == NCCL_SUCCESS);
}

static void *begin_coll(struct comm *comm, void *group, void *api, uint64_t seq)
{
	union {
		struct nccl_coll_v1 v1;
		struct nccl_coll_v2 v2;
		struct nccl_coll_v3 v3;
		struct nccl_coll_v4 v4;
	} descr;
	const char *func = funcs[seq % ARRAY_SIZE(funcs)];

	memset(&descr, 0, sizeof(descr));
	if (comm->version == 1)
		descr.v1 = (struct nccl_coll_v1){ .head = { NCCL_COLL, group, 0 },
						  .comm_hash = 1,
						  .seq = seq,
						  .func = 4,
						  .cnt = 1000,
						  .datatype = 7 };
	else if (comm->version == 2)
		descr.v2 = (struct nccl_coll_v2){ .head = { NCCL_COLL, group, 0 },
						  .comm_hash = 2,
						  .seq = seq,
						  .func = func,
						  .cnt = 1000,
						  .datatype = "ncclFloat32",
						  .algorithm = "RING",
						  .protocol = "LL" };
	else if (comm->version == 3)
		descr.v3 = (struct nccl_coll_v3){ .head = { NCCL_COLL, group, 0 },
						  .comm_hash = 3,
						  .seq = seq,
						  .func = func,
						  .cnt = 1000,
						  .datatype = "ncclFloat32",
						  .algorithm = "RING",
						  .protocol = "LL" };
	else
		descr.v4 = (struct nccl_coll_v4){ .head = { NCCL_COLL,
							    comm->version == 4 ? group : api, 0 },
						  .seq = seq,
						  .func = func,
						  .cnt = 1000,
						  .datatype = "ncclFloat32",
						  .channels = 8,
						  .algorithm = "RING",
						  .protocol = "LL",
						  .parent_group = group };
	return begin(comm, &descr);
}

/* As the launch of a plan with one collective does it. Returns the collective's handle. */
static void *queue_coll(struct comm *comm, uint64_t seq)
{
	struct nccl_descr group_descr = { .kind = NCCL_GROUP };
	struct nccl_coll_api api_descr = { .head.kind = NCCL_COLL_API };
	void *api = NULL, *group, *coll;

	if (mask == 0)
		return NULL;
	if (comm->version >= 5) {
		api = begin(comm, &api_descr);
		end(comm, api);
	}
	group = begin(comm, &group_descr);
	coll = begin_coll(comm, group, api, seq);
	end(comm, coll);
	end(comm, group);
	return coll;
}

static void move_step(struct comm *comm, void *op)
{
	struct nccl_descr descr = { .kind = NCCL_PROXY_STEP, .parent = op };
	struct nccl_state_args args = { 65536 };
	void *step_handle = begin(comm, &descr);

	if (step_handle == NULL)
		return;
	CHECK(comm->state(step_handle, NCCL_SEND_GPU_WAIT, &args) == NCCL_SUCCESS);
	if (comm->version >= 4)
		CHECK(comm->state(step_handle, NCCL_SEND_PEER_WAIT, &args) == NCCL_SUCCESS);
	CHECK(comm->state(step_handle, NCCL_SEND_WIRE_WAIT, &args) == NCCL_SUCCESS);
	end(comm, step_handle);
}

static void drive(struct comm *comm, void *coll, int pid)
{
	struct nccl_proxy_op descr = { .head = { NCCL_PROXY_OP, coll, 0 }, .pid = pid };
	void *op;

	if ((mask & (NCCL_PROXY_OP | NCCL_PROXY_STEP)) == 0)
		return;
	op = begin(comm, &descr);
	for (int i = 0; i < 3 && (mask & NCCL_PROXY_STEP) != 0; i++)
		move_step(comm, op);
	end(comm, op);
}

/* --- what the recorder got --- */

static size_t cnt_of(const struct flightlog *log, uint16_t kind, const char *text)
{
	size_t cnt = 0;

	vec_foreach(lane, &log->lanes) {
		vec_foreach(record, &lane->records)
			cnt += record->kind == kind &&
			       (text == NULL ||
				strcmp(log->strings.data[record->extra], text) == 0);
	}
	return cnt;
}

static void take(struct flightlog *log)
{
	flightlog_init(log);
	CHECK(flightlog_take(log, hostd.flight, false) == 0);
	CHECK(log->drops.invalid == 0 && log->drops.torn == 0);
}

/* --- checks --- */

static void check_silence_before_the_daemon(struct comm comms[VERSION_CNT])
{
	for (int v = 1; v <= VERSION_CNT; v++) {
		init_comm(&comms[v - 1], v);
		CHECK(mask == 0);
		CHECK(begin_coll(&comms[v - 1], NULL, NULL, 0) == NULL);
	}
}

static void check_versions(struct comm comms[VERSION_CNT])
{
	struct flightlog log;

	for (int v = 1; v <= VERSION_CNT; v++) {
		CHECK(mask == (NCCL_COLL | NCCL_P2P | NCCL_PROXY_OP));
		for (uint64_t seq = 0; seq < 10; seq++)
			drive(&comms[v - 1], queue_coll(&comms[v - 1], seq), getpid());
	}
	drive(&comms[VERSION_CNT - 1], NULL, getpid() + 1);
	take(&log);
	CHECK(cnt_of(&log, FLIGHT_COLLECTIVE, NULL) == 10 * VERSION_CNT);
	CHECK(cnt_of(&log, FLIGHT_COLLECTIVE_HOW, NULL) == 10 * VERSION_CNT);
	CHECK(cnt_of(&log, FLIGHT_NETWORK, NULL) == 10 * VERSION_CNT + 1);
	CHECK(cnt_of(&log, FLIGHT_NETWORK, "nccl (for another process)") == 1);
	CHECK(cnt_of(&log, FLIGHT_NETWORK_SEND, NULL) == 0);
	CHECK(cnt_of(&log, FLIGHT_COLLECTIVE, "ncclAllGather") == 3 * (VERSION_CNT - 1));
	flightlog_done(&log);
}

static void check_window(struct comm comms[VERSION_CNT])
{
	struct flightlog log;

	order_window(1, 2);
	step(); /* off */
	step(); /* on */
	CHECK(mask == ALL_ON);
	drive(&comms[4], queue_coll(&comms[4], 7), getpid());
	step();
	CHECK(mask == (NCCL_COLL | NCCL_P2P | NCCL_PROXY_OP));
	take(&log);
	CHECK(cnt_of(&log, FLIGHT_NETWORK_SEND, NULL) == 1);
	CHECK(cnt_of(&log, FLIGHT_NETWORK_RECV, NULL) == 1);
	flightlog_done(&log);
}

/* Left out by the daemon because it costs too much. */
static void check_backoff(void)
{
	atomic_store(&hostd.flight->block.backoff, BACKOFF_ALWAYS);
	step();
	CHECK(mask == 0);
	atomic_store(&hostd.flight->block.backoff, BACKOFF_NONE);
	step();
	CHECK(mask != 0);
}

static void check_full_pool(struct comm *comm)
{
	struct flightlog log;
	void *handle = comm;

	for (uint64_t i = 0; handle != NULL; i++) {
		handle = begin_coll(comm, NULL, NULL, i);
		CHECK(i < 100000);
	}
	take(&log);
	CHECK(log.drops.nccl > 0);
	flightlog_done(&log);
	CHECK(comm->finalize(comm->context) == NCCL_SUCCESS);
	init_comm(comm, comm->version);
	CHECK(begin_coll(comm, NULL, NULL, 0) != NULL);
}

/* The child of a fork is silent, whatever its copy of NCCL does. */
static void check_fork(struct comm *comm)
{
	uint64_t head = hostd.flight->lanes[0].head;
	int status = -1;
	pid_t child = fork();

	CHECK(child >= 0);
	if (child == 0)
		_exit(mask == 0 && begin_coll(comm, NULL, NULL, 1) == NULL ? 0 : 1);
	CHECK(waitpid(child, &status, 0) == child && status == 0);
	CHECK(mask != 0 && hostd.flight->lanes[0].head == head);
}

/* One thread queues, another drives the network, masks go up and down. */
struct relay {
	struct comm *comm;
	_Atomic(void *) coll;
	_Atomic bool done;
};

static void *drive_all(void *arg)
{
	struct relay *relay = arg;

	for (;;) {
		bool done = atomic_load(&relay->done);
		void *coll = atomic_exchange(&relay->coll, NULL);

		if (coll != NULL)
			drive(relay->comm, coll, getpid());
		else if (done)
			return NULL;
		else
			(void)sched_yield();
	}
}

static void check_threads(struct comm *comm)
{
	struct relay relay = { .comm = comm };
	pthread_t thread;

	CHECK(pthread_create(&thread, NULL, drive_all, &relay) == 0);
	for (uint64_t i = 0; i < 300; i++) {
		void *coll = queue_coll(comm, i);

		while (atomic_load(&relay.coll) != NULL)
			(void)sched_yield();
		atomic_store(&relay.coll, coll);
		if (i % 50 == 0)
			order_window(100 + i, 2);
		step();
	}
	atomic_store(&relay.done, true);
	CHECK(pthread_join(thread, NULL) == 0);
}

#define SHORT_THREADS 40

static void *queue_one(void *arg)
{
	(void)queue_coll(arg, 1);
	return NULL;
}

static uint64_t written(void)
{
	uint64_t cnt = 0;

	for (size_t i = 0; i < FLIGHT_LANE_CNT; i++)
		cnt += hostd.flight->lanes[i].head;
	return cnt;
}

static void *drive_one(void *arg)
{
	drive(arg, NULL, getpid());
	return NULL;
}

/* As communicators that come and go have them: they are heard, and the lanes stay for others. */
static void check_short_threads(struct comm *comm)
{
	uint64_t before = written(), left_out = hostd.flight->drops.nccl;

	for (size_t i = 0; i < SHORT_THREADS; i++) {
		pthread_t thread;

		CHECK(pthread_create(&thread, NULL, queue_one, comm) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
		CHECK(pthread_create(&thread, NULL, drive_one, comm) == 0);
		CHECK(pthread_join(thread, NULL) == 0);
	}
	CHECK(queue_coll(comm, 2) != NULL);
	CHECK(written() - before == 4 * (SHORT_THREADS + 1) + 3 * SHORT_THREADS);
	CHECK(hostd.flight->drops.nccl == left_out && hostd.flight->drops.lanes == 0);
	CHECK(hostd.flight->lane_cnt < FLIGHT_LANE_CNT / 2);
}

static void check_all(void)
{
	struct comm comms[VERSION_CNT];

	check_silence_before_the_daemon(comms);
	CHECK(lib.start(hostd.path, 0, 0, 1) == 0);
	take_recorder();
	CHECK(mask == 0);
	CHECK(lib.run() == 0); /* without Python there are no stacks to read */
	check_versions(comms);
	check_window(comms);
	check_backoff();
	check_full_pool(&comms[5]);
	check_fork(&comms[4]);
	check_threads(&comms[4]);
	check_short_threads(&comms[4]);
	lib.bye(NULL);
	CHECK(mask == 0);
	for (int v = 1; v <= VERSION_CNT; v++) {
		CHECK(comms[v - 1].finalize(comms[v - 1].context) == NCCL_SUCCESS);
	}
	printf("ok\n");
}

/* --- bench --- */

static double least(double a, double b)
{
	return a == 0 || b < a ? b : a;
}

/* ns of one round of what, the least of several. */
static double cost(struct comm *comm, void (*what)(struct comm *comm, uint64_t i))
{
	double best = 0;

	for (int round = 0; round < BENCH_ROUNDS; round++) {
		int64_t start_ns = clock_mono_ns();

		for (uint64_t i = 0; i < BENCH_CNT; i++)
			what(comm, i);
		best = least(best, (double)(clock_mono_ns() - start_ns) / BENCH_CNT);
	}
	return best;
}

static void bench_coll(struct comm *comm, uint64_t i)
{
	(void)queue_coll(comm, i);
}

static void bench_op(struct comm *comm, uint64_t i)
{
	static int pid;

	(void)i;
	if (pid == 0)
		pid = getpid();
	drive(comm, NULL, pid);
}

static void bench(void)
{
	struct comm comm;
	double off, on, op, step_ns;

	init_comm(&comm, 5);
	off = cost(&comm, bench_coll);
	CHECK(lib.start(hostd.path, 0, 0, 1) == 0);
	take_recorder();
	(void)lib.run();
	on = cost(&comm, bench_coll);
	op = cost(&comm, bench_op);
	order_window(1, 2);
	step();
	step();
	CHECK(mask == ALL_ON);
	step_ns = (cost(&comm, bench_op) - op) / 3;
	printf("collective, not connected: %.1f ns (harness)\n", off);
	printf("collective, group and call included: %.0f ns (harness)\n", on);
	printf("network operation of its own: %.0f ns (harness)\n", op);
	printf("transfer with 3 states, in a window: %.0f ns (harness)\n", step_ns);
	lib.bye(NULL);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	open_daemon();
	open_library(argv[1]);
	if (argc > 2 && strcmp(argv[2], "--bench") == 0)
		bench();
	else
		check_all();
	close_daemon();
	return 0;
}
