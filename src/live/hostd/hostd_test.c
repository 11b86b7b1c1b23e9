/* SPDX-License-Identifier: Apache-2.0 */
/* hostd and hub on one bus, with a worker that is this process. */
#include "base/clock.h"
#include "base/test_alloc.h"
#include "live/hostd/blocked_stacks.h"
#include "live/hostd/hostd_parts.h"
#include "live/hub/hub.h"
#include "live/link/wire_hang.h"
#include "live/link/wire_request.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct {
	char dir[64], socket[96];
	struct run_options options;
	uv_loop_t loop;
	struct bus *bus;
	struct hub *hub;
	struct hostd *hostd;
	int fd, other_fd; /* of the worker; of one more, -1: none */
	unsigned progress_cnt, reported_cnt;
	struct wire_profile progress; /* the latest */
	struct wire_reply reply;
} f;

static void see_progress(void *arg, const struct bus_message *message)
{
	(void)arg;
	assert_int_equal(message->len, sizeof(f.progress));
	memcpy(&f.progress, message->data, sizeof(f.progress));
	f.progress_cnt++;
}

static void see_reply(void *arg, const struct bus_message *message)
{
	(void)arg;
	assert_int_equal(message->len, sizeof(f.reply));
	memcpy(&f.reply, message->data, sizeof(f.reply));
	f.reported_cnt++;
}

static int open_block(void)
{
	struct flight *flight;
	int fd = memfd_create("hostd_test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)sizeof(struct flight)), 0);
	assert_int_equal(fcntl(fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	flight = mmap(NULL, sizeof(*flight), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	assert_true(flight != MAP_FAILED);
	flight->block.magic = BLOCK_MAGIC;
	flight->block.version = BLOCK_VERSION;
	flight->block.ring_cnt = MARK_RING_CNT;
	flight->layout_bytes = sizeof(*flight);
	(void)munmap(flight, sizeof(*flight));
	return fd;
}

/* with_fd: a descriptor to attach; -1: none. */
static void say(int fd, struct message message, int with_fd)
{
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(with_fd))] = { 0 };
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &iov, .msg_iovlen = 1 };

	message.magic = MESSAGE_MAGIC;
	message.version = MESSAGE_VERSION;
	if (with_fd >= 0) {
		struct cmsghdr *c = (struct cmsghdr *)control;

		*c = (struct cmsghdr){ .cmsg_len = CMSG_LEN(sizeof(with_fd)),
				       .cmsg_level = SOL_SOCKET,
				       .cmsg_type = SCM_RIGHTS };
		memcpy(CMSG_DATA(c), &with_fd, sizeof(with_fd));
		header.msg_control = control;
		header.msg_controllen = sizeof(control);
	}
	assert_int_equal(sendmsg(fd, &header, MSG_NOSIGNAL), sizeof(message));
}

/* Runs the loop and the bus until all messages are delivered. */
static void run(void)
{
	for (int i = 0; i < 5; i++) {
		(void)uv_run(&f.loop, UV_RUN_NOWAIT);
		(void)bus_run(f.bus, clock_mono_ns());
	}
}

/* Returns the worker's end of the connection. */
static int connect_worker(void)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int block_fd = open_block(), fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	size_t before = f.hostd->clients.cnt;

	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f.socket);
	assert_int_equal(connect(fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	say(fd, (struct message){ .type = MSG_HELLO, .tid = (uint32_t)getpid(), .rank = -1 },
	    block_fd);
	(void)close(block_fd);
	run();
	assert_int_equal(f.hostd->clients.cnt, before + 1);
	assert_true(f.hostd->clients.data[before]->is_worker);
	return fd;
}

static int open_all(void **state)
{
	struct hostd_setup setup = {
		.loop = &f.loop, .options = &f.options, .socket_path = f.socket, .trace_dir = f.dir
	};
	struct err err;

	(void)state;
	memset(&f, 0, sizeof(f));
	f.other_fd = -1;
	(void)snprintf(f.dir, sizeof(f.dir), "/tmp/perftracker-test.XXXXXX");
	assert_non_null(mkdtemp(f.dir));
	(void)snprintf(f.socket, sizeof(f.socket), "%s/socket", f.dir);
	f.options = (struct run_options){ .out_dir = f.dir,
					  .program = "/nowhere/perftracker",
					  .window_ns = NSEC_PER_SEC,
					  .steps_max = 10,
					  .slowdown_frac = 0.05,
					  .recent_cnt = 50,
					  .learn_cnt = 10,
					  .blocked_factor = 5,
					  .no_audit = true,
					  .quiet = true };
	assert_int_equal(uv_loop_init(&f.loop), 0);
	assert_int_equal(bus_open("inproc:", NULL, NULL, &f.bus), 0);
	setup.bus = f.bus;
	assert_int_equal(hub_open(f.bus, &f.options, &f.hub), 0);
	assert_int_equal(hostd_open(&setup, &f.hostd, &err), 0);
	assert_int_equal(bus_sub(f.bus, SUBJECT_PROFILE, see_progress, NULL, NULL), 0);
	assert_int_equal(bus_sub(f.bus, SUBJECT_REPLY, see_reply, NULL, NULL), 0);
	f.fd = connect_worker();
	return 0;
}

static int close_all(void **state)
{
	(void)state;
	(void)close(f.fd);
	if (f.other_fd >= 0)
		(void)close(f.other_fd);
	hostd_close(f.hostd);
	(void)uv_run(&f.loop, UV_RUN_DEFAULT);
	(void)hub_close(f.hub);
	(void)bus_close(f.bus);
	(void)rmdir(f.dir);
	return uv_loop_close(&f.loop);
}

static void tick(void)
{
	hub_tick(f.hub, clock_mono_ns());
	run();
}

static void ask(uint64_t client)
{
	const struct wire_ask question = { .client = client };

	assert_int_equal(bus_pub(f.bus, SUBJECT_ASK, &question, sizeof(question)), 0);
}

/* Requests a profile and opens the worker's window. */
static void begin_profile(void)
{
	struct wire_state state;

	worker_state(&f.hostd->clients.data[0]->worker, clock_mono_ns(), &state);
	state.phase = PHASE_STEADY;
	state.step_ns = 50 * NSEC_PER_MSEC;
	state.stride = 1;
	assert_int_equal(bus_pub(f.bus, SUBJECT_STATE, &state, sizeof(state)), 0);
	ask(1000);
	run();
	assert_false(hub_idle(f.hub));
	tick();
	assert_int_equal(f.progress.progress, PROFILE_ORDERED);
	assert_false(f.hostd->suspended);
	say(f.fd,
	    (struct message){ .type = MSG_PROFILE_BEGUN, .order_id = 1, .text = SOURCE_TORCH }, -1);
	run();
	assert_true(f.hostd->suspended);
}

/* The worker misses it, which ends the profile. */
static void end_profile(void)
{
	say(f.fd, (struct message){ .type = MSG_PROFILE_MISSED, .order_id = 1, .text = "no" }, -1);
	run();
}

static void the_state_of_a_profile_is_published_at_every_tick(void **state)
{
	unsigned before;

	(void)state;
	tick();
	assert_int_equal(f.progress.progress, PROFILE_NONE);
	begin_profile();
	before = f.progress_cnt;
	for (int i = 0; i < 3; i++) {
		tick();
		assert_int_equal(f.progress.progress, PROFILE_BEGUN);
		assert_true(f.hostd->suspended);
	}
	assert_int_equal(f.progress_cnt, before + 3);
	end_profile();
	assert_true(f.hostd->suspended); /* the report is not yet published */
	tick();
	assert_true(hub_idle(f.hub));
	assert_int_equal(f.progress.progress, PROFILE_NONE);
	assert_false(f.hostd->suspended);
}

static void ignore(void *arg, const struct bus_message *message)
{
	(void)arg;
	(void)message;
}

static void a_lost_message_of_the_end_is_repaired_by_the_next_tick(void **state)
{
	uint64_t dropped;

	(void)state;
	begin_profile();
	end_profile();
	assert_int_equal(bus_sub(f.bus, "test.full", ignore, NULL, NULL), 0);
	while (bus_pub(f.bus, "test.full", "", 1) == 0)
		;
	dropped = bus_stats(f.bus).dropped;
	tick(); /* the profile ends, but the message is lost */
	assert_true(bus_stats(f.bus).dropped > dropped);
	assert_true(hub_idle(f.hub));
	assert_true(f.hostd->suspended);
	assert_int_equal(f.reported_cnt, 0);
	tick();
	assert_false(f.hostd->suspended);
}

static bool is_canceled(void)
{
	return atomic_load(&f.hostd->clients.data[0]->worker.block.block->order.canceled) != 0;
}

static void a_lost_cancel_of_an_order_is_repaired_by_the_next_tick(void **state)
{
	(void)state;
	begin_profile();
	assert_int_equal(bus_sub(f.bus, "test.full", ignore, NULL, NULL), 0);
	while (bus_pub(f.bus, "test.full", "", 1) == 0)
		;
	hub_tick(f.hub, clock_mono_ns() + 3600 * NSEC_PER_SEC); /* the worker is late */
	run();							/* the message was lost */
	assert_true(hub_idle(f.hub));
	assert_false(is_canceled());
	tick();
	assert_true(is_canceled());
}

static void an_answer_to_another_client_does_not_end_a_profile(void **state)
{
	(void)state;
	begin_profile();
	for (uint64_t client = 0; client < HUB_ASKERS_MAX; client++)
		ask(2000 + client); /* one more than the limit */
	run();
	assert_int_equal(f.reported_cnt, 1);
	assert_int_equal(f.reply.status, EBUSY);
	assert_true(f.hostd->suspended);
	tick();
	assert_true(f.hostd->suspended);
}

static void another_host_in_a_window_suspends_this_one(void **state)
{
	struct wire_profile sent = { .epoch = 7, .sequence = 9, .progress = PROFILE_BEGUN };
	const struct bus_message message = { .data = &sent, .len = sizeof(sent) };

	(void)state;
	hostd_take_profile(f.hostd, &message);
	assert_true(f.hostd->suspended);
	sent.progress = PROFILE_NONE;
	hostd_take_profile(f.hostd, &message); /* the same sequence number twice */
	sent.sequence = 8;
	hostd_take_profile(f.hostd, &message); /* an older number */
	assert_true(f.hostd->suspended);
	sent.epoch = 6; /* a restarted hub */
	sent.sequence = 1;
	hostd_take_profile(f.hostd, &message);
	assert_false(f.hostd->suspended);
}

static void workers_are_watched_again_when_the_hub_is_silent(void **state)
{
	int64_t now_ns;

	(void)state;
	begin_profile();
	now_ns = clock_mono_ns();
	hostd_mind_hub(f.hostd, now_ns + 50 * NSEC_PER_SEC);
	assert_true(f.hostd->suspended);
	hostd_mind_hub(f.hostd, now_ns + 61 * NSEC_PER_SEC);
	assert_false(f.hostd->suspended);
	tick(); /* the hub was only slow */
	assert_true(f.hostd->suspended);
}

static void a_profile_that_runs_out_of_memory_reports_it(void **state)
{
	(void)state;
	begin_profile();
	end_profile();
	allocations_fail_once = true;
	allocations_left = 0;
	hub_tick(f.hub, clock_mono_ns());
	allocations_left = -1;
	run();
	assert_true(hub_idle(f.hub));
	assert_int_equal(f.reported_cnt, 1);
	assert_int_equal(f.reply.status, ENOMEM);
	assert_string_equal(f.reply.text, "out of memory");
}

static void a_profile_without_a_trace_reports_it(void **state)
{
	(void)state;
	begin_profile();
	end_profile();
	tick();
	assert_int_equal(f.reported_cnt, 1);
	assert_int_equal(f.reply.status, ENODATA);
	assert_string_equal(f.reply.text, "no worker delivered a trace");
}

/* --- worker.h --- */

static void a_sidecar_that_cannot_be_written_is_reported(void **state)
{
	struct worker *worker = &f.hostd->clients.data[0]->worker;
	const struct worker_finish finish = { .sidecar_fd = f.fd }; /* no file */
	struct err err = { "out of memory" };

	(void)state;
	assert_int_equal(worker_begin(worker, 1, clock_mono_ns()), 0);
	assert_int_equal(worker_finish(worker, &finish, &err), -ESPIPE);
	assert_string_equal(err.text, "its sidecar cannot be written: Illegal seek");
}

/* The worker's optimizer steps: cnt, a millisecond apart. Returns the last one's time. */
static int64_t push_steps(struct worker *worker, uint64_t cnt, int64_t after_ns)
{
	struct worker_block *block = worker->block.block;

	for (uint64_t i = 1; i <= cnt; i++) {
		const struct ring_record record = {
			.kind = MARK_OPTIMIZER,
			.detail = 1,
			.time_ns = after_ns + (int64_t)i * NSEC_PER_MSEC,
			.extra = atomic_load(&block->worker_step) + i,
		};

		ring_push(block->ring, MARK_RING_CNT, &block->head, &record);
	}
	atomic_fetch_add(&block->worker_step, cnt);
	return after_ns + (int64_t)cnt * NSEC_PER_MSEC;
}

static void a_window_of_a_loop_without_a_loader_has_its_steps_as_iterations(void **state)
{
	struct worker *worker = &f.hostd->clients.data[0]->worker;
	struct worker_finish finish = { .last_step = 26 };
	struct sidecar side;
	int64_t now_ns = clock_mono_ns() - NSEC_PER_SEC;
	struct err err;

	(void)state;
	now_ns = push_steps(worker, 20, now_ns);
	assert_int_equal(worker_begin(worker, 1, now_ns), 0);
	now_ns = push_steps(worker, 8, now_ns); /* two more than the window has */
	finish.mono_ns = now_ns;
	finish.window_ns = 6 * NSEC_PER_MSEC;
	finish.sidecar_fd = memfd_create("sidecar", MFD_CLOEXEC);
	assert_int_equal(worker_finish(worker, &finish, &err), 0);
	assert_int_equal(lseek(finish.sidecar_fd, 0, SEEK_SET), 0);
	assert_int_equal(sidecar_read_fd("sidecar", finish.sidecar_fd, &side, &err), 0);
	assert_int_equal(side.iterations.cnt, 6);
	assert_int_equal(side.iterations.data[0].step, 21);
	assert_int_equal(side.iterations.data[5].start_ns, now_ns - 2 * NSEC_PER_MSEC);
	sidecar_done(&side);
	(void)close(finish.sidecar_fd);
}

/* --- live/hostd/blocked_stacks.h --- */

static void mark(struct worker *worker, uint16_t kind, int64_t time_ns)
{
	(void)detector_mark(worker->detector,
			    &(struct ring_record){ .kind = kind, .time_ns = time_ns });
}

/* Iterations of 50 ms, then a minute of silence. */
static void block(struct worker *worker)
{
	for (int64_t i = 1; i <= 100; i++) {
		mark(worker, MARK_DATALOADER, (50 * i + 10) * NSEC_PER_MSEC);
		mark(worker, MARK_OPTIMIZER, (50 * i + 40) * NSEC_PER_MSEC);
	}
	(void)detector_tick(worker->detector, 66 * NSEC_PER_SEC);
	assert_true(worker_is_blocked(worker));
}

static void unblock(struct worker *worker)
{
	mark(worker, MARK_DATALOADER, 67 * NSEC_PER_SEC);
	assert_false(worker_is_blocked(worker));
}

static void count_where(void *arg, const struct bus_message *message)
{
	assert_int_equal(message->len, sizeof(struct wire_where));
	++*(unsigned *)arg;
}

static unsigned published_stacks(void)
{
	unsigned cnt = 0;
	struct bus_sub *sub;

	assert_int_equal(bus_sub(f.bus, SUBJECT_WHERE, count_where, &cnt, &sub), 0);
	blocked_stacks_publish(f.hostd);
	(void)bus_run(f.bus, clock_mono_ns());
	(void)bus_unsub(f.bus, sub);
	return cnt;
}

static void stacks_are_published_when_another_worker_blocks(void **state)
{
	struct worker *first, *second;

	(void)state;
	f.other_fd = connect_worker();
	first = &f.hostd->clients.data[0]->worker;
	second = &f.hostd->clients.data[1]->worker;
	assert_int_equal(published_stacks(), 0);
	block(first);
	assert_int_equal(published_stacks(), 2); /* of all workers */
	assert_int_equal(published_stacks(), 0); /* once */
	unblock(first);
	block(second);
	assert_int_equal(published_stacks(), 2); /* as many blocked as before, but another worker */
	unblock(second);
	assert_int_equal(published_stacks(), 0);
}

static struct wire_state last_state;

static void see_state(void *arg, const struct bus_message *message)
{
	(void)arg;
	memcpy(&last_state, message->data, sizeof(last_state));
}

/* A worker that ends with exit code 3, while a child of it, a loader, still holds its socket. */
static pid_t start_worker(int *ret_go)
{
	int fds[2];
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (pid == 0) {
		struct sockaddr_un addr = { .sun_family = AF_UNIX };
		int fd = socket(AF_UNIX, SOCK_SEQPACKET, 0);
		char byte;

		(void)close(fds[1]);
		(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f.socket);
		(void)connect(fd, (const struct sockaddr *)&addr, sizeof(addr));
		say(fd, (struct message){ .type = MSG_HELLO, .rank = 5 }, open_block());
		if (fork() == 0) {
			(void)!read(fds[0], &byte, 1);
			_exit(0);
		}
		_exit(3);
	}
	(void)close(fds[0]);
	*ret_go = fds[1];
	return pid;
}

static void remove_record(int rank)
{
	char path[128];

	(void)snprintf(path, sizeof(path), "%s/flight/rank%d.flight", f.dir, rank);
	assert_int_equal(unlink(path), 0);
	*strrchr(path, '/') = '\0';
	assert_int_equal(rmdir(path), 0);
}

static void the_end_of_a_process_is_seen_though_its_children_hold_the_socket(void **state)
{
	struct bus_sub *sub;
	int go;
	pid_t pid;

	(void)state;
	assert_int_equal(bus_sub(f.bus, SUBJECT_STATE, see_state, NULL, &sub), 0);
	pid = start_worker(&go);
	do {
		(void)uv_run(&f.loop, UV_RUN_ONCE);
		run();
	} while (last_state.rank != 5 || !last_state.exit_known);
	assert_int_equal(last_state.phase, PHASE_GONE);
	assert_int_equal(last_state.exit_status, 3 << 8);
	assert_int_equal(f.hostd->exits.cnt, 1); /* that of the first worker */
	(void)close(go);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	(void)bus_unsub(f.bus, sub);
	remove_record(5);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			the_end_of_a_process_is_seen_though_its_children_hold_the_socket, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(the_state_of_a_profile_is_published_at_every_tick,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(
			a_lost_message_of_the_end_is_repaired_by_the_next_tick, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(
			a_lost_cancel_of_an_order_is_repaired_by_the_next_tick, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(an_answer_to_another_client_does_not_end_a_profile,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(another_host_in_a_window_suspends_this_one,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(a_profile_that_runs_out_of_memory_reports_it,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(a_profile_without_a_trace_reports_it, open_all,
						close_all),
		cmocka_unit_test_setup_teardown(
			a_window_of_a_loop_without_a_loader_has_its_steps_as_iterations, open_all,
			close_all),
		cmocka_unit_test_setup_teardown(a_sidecar_that_cannot_be_written_is_reported,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(stacks_are_published_when_another_worker_blocks,
						open_all, close_all),
		cmocka_unit_test_setup_teardown(workers_are_watched_again_when_the_hub_is_silent,
						open_all, close_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
