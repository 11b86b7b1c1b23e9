/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader and hub with many hosts over real sockets, for bench/fleet/run.
 *
 *	fleetsockets_bench URL PORT HOSTS [plain]
 *		A child plays all hosts, each with a connection of its own to the nats-server at PORT: the
 *		states of one rank once a second, and on an order its result, 4 KB. The parent is the
 *		leader and the hub, connected to URL. Prints one JSON object: how long after the hub's
 *		order the hosts had it, and until all results were taken. plain: the parent is a client
 *		that publishes the order and counts what comes, which is what any receiver needs.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/subprocess.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/cluster/fleetsockets_parts.h"
#include "live/hub/hub.h"
#include "live/link/wire_request.h"
#include "live/run/options.h"

#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_NS (90 * NSEC_PER_SEC)
#define TICK_NS (100 * NSEC_PER_MSEC)
#define SETTLE_NS (5 * NSEC_PER_SEC) /* after the last host has come */
#define NET_SLICE 128u
#define NET_SLICES 64u
#define RESULT_BYTES 1024u /* a message that is longer has a result */

static struct {
	struct bus *local, *net;
	struct hub *hub;
	struct leader *leader;
	struct fleetsockets *shared;
	uint32_t hosts, heard, results;
	int wake_fd;
	pid_t child; /* of this process; 0: none yet */
	bool plain;
	uint8_t *seen; /* by host: 1: it was heard, 2: its result came */
} f;

static void die(const char *what)
{
	(void)fprintf(stderr, "fleetsockets_bench: %s\n", what);
	if (f.child > 0)
		(void)subprocess_signal(f.child, SIGKILL);
	exit(1);
}

static void wake(void *arg)
{
	const uint64_t one = 1;

	(void)arg;
	(void)!write(f.wake_fd, &one, sizeof(one));
}

/* --- what comes --- */

static void note_order(void *arg, const struct bus_message *message)
{
	(void)arg;
	(void)message;
	if (f.shared->order_ns == 0)
		f.shared->order_ns = clock_mono_ns();
}

static void note_answer(void *arg, const struct bus_message *message)
{
	(void)arg;
	f.results += ((const struct wire_answer *)message->data)->outcome == OUTCOME_SUMMARIZED;
}

static void note_up(void *arg, const struct bus_message *message)
{
	uint32_t host = (uint32_t)strtoul(strrchr(message->subject, '-') + 1, NULL, 10);
	uint8_t what = message->len > RESULT_BYTES ? 2 : 1;

	(void)arg;
	if (host >= f.hosts || (f.seen[host] & what) != 0)
		return;
	f.seen[host] |= what;
	*(what == 1 ? &f.heard : &f.results) += 1;
}

/* --- begin --- */

static void open_net(const char *url)
{
	const struct bus_login login = { .url = url, .insecure = true };
	struct err err;
	char why[256];

	if (bus_connect(&login, wake, NULL, &f.net, &err) < 0)
		die(err.text);
	for (int i = 0; i < 100 && !bus_is_connected(f.net, why, sizeof(why)); i++)
		(void)poll(NULL, 0, 50);
}

static void open_hub(const char *dir)
{
	static struct run_options options;
	char path[64];
	struct cluster_setup setup = { .job = "job", .id = "n0", .host = "head", .out_dir = dir };
	struct bus_sub *subs[2];

	(void)snprintf(path, sizeof(path), "%s/fingerprints", dir);
	if (mkdir(path, 0700) != 0)
		die("no folder");
	options = run_options_preset();
	options.out_dir = dir;
	options.no_audit = options.no_checkup = options.quiet = true;
	if (bus_open("inproc:", wake, NULL, &f.local) < 0)
		die("no bus");
	setup.local = f.local;
	setup.net = f.net;
	setup.no_workers = true;
	if (hub_open(f.local, &options, &f.hub) < 0 || leader_open(&setup, &f.leader) < 0 ||
	    bus_sub(f.local, SUBJECT_ORDER, note_order, NULL, &subs[0]) < 0 ||
	    bus_sub(f.local, SUBJECT_ANSWER, note_answer, NULL, &subs[1]) < 0)
		die("out of memory");
	leader_tick(f.leader, clock_mono_ns());
}

/* --- while it runs --- */

static void run_once(int64_t *tick_ns)
{
	struct pollfd poll_fd = { .fd = f.wake_fd, .events = POLLIN };
	int64_t now_ns;
	uint64_t woken;

	if (poll(&poll_fd, 1, 10) == 1)
		(void)!read(f.wake_fd, &woken, sizeof(woken));
	now_ns = clock_mono_ns();
	if (f.plain) {
		(void)bus_run(f.net, now_ns);
		return;
	}
	for (size_t i = 0, cnt = NET_SLICE; i < NET_SLICES && cnt == NET_SLICE; i++) {
		cnt = bus_run_some(f.net, now_ns, NET_SLICE); /* as hosts_run() does */
		(void)bus_run(f.local, now_ns);
	}
	if (now_ns < *tick_ns)
		return;
	*tick_ns = now_ns + TICK_NS;
	leader_tick(f.leader, now_ns);
	hub_tick(f.hub, now_ns);
	f.heard = (uint32_t)leader_hosts(f.leader);
}

static void order_plainly(void)
{
	Cluster__Down down;
	Cluster__Order order;
	uint8_t bytes[256];

	cluster__down__init(&down);
	cluster__order__init(&order);
	down.version = CLUSTER_VERSION;
	down.epoch = order.id = 1;
	down.order = &order;
	f.shared->order_ns = clock_mono_ns();
	if (bus_pub(f.net, "pt.v1.job.down", bytes, cluster__down__pack(&down, bytes)) < 0)
		die("the bus is full");
}

static void ask(void)
{
	const struct wire_ask ask = { .client = 1, .window_ns = NSEC_PER_SEC, .kind = ASK_PROFILE };

	if (f.plain)
		order_plainly();
	else if (bus_pub(f.local, SUBJECT_ASK, &ask, sizeof(ask)) < 0)
		die("the bus is full");
}

/* --- figures --- */

static int by_time(const void *a, const void *b)
{
	int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

	return (x > y) - (x < y);
}

static double late_ms(double frac)
{
	int64_t *times = f.shared->heard_ns;
	size_t i = MIN((size_t)(frac * f.hosts), (size_t)f.hosts - 1);

	return (double)(times[i] - f.shared->order_ns) / NSEC_PER_MSEC;
}

static void print(int64_t all_ns, double cpu_ms)
{
	struct rusage usage;
	struct bus_stats stats = bus_stats(f.net);

	(void)getrusage(RUSAGE_SELF, &usage);
	qsort(f.shared->heard_ns, f.hosts, sizeof(int64_t), by_time);
	printf("{\"hosts\": %u, \"order_p50_ms\": %.1f, \"order_p99_ms\": %.1f, "
	       "\"order_max_ms\": %.1f, \"results_ms\": %.0f, \"second_ms\": %.1f, "
	       "\"peak_mb\": %ld, \"dropped\": %llu, \"resent\": %u}\n",
	       f.hosts, late_ms(0.5), late_ms(0.99), late_ms(1),
	       (double)(all_ns - f.shared->order_ns) / NSEC_PER_MSEC, cpu_ms,
	       usage.ru_maxrss / 1024, (unsigned long long)stats.dropped, f.shared->resent);
}

static double cpu_ms(void)
{
	return (double)clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

static void measure(void)
{
	int64_t begin_ns = clock_mono_ns(), tick_ns = 0, settled_ns = 0;
	double begin_ms = 0, second_ms = 0;
	bool asked = false;

	while (f.results < f.hosts) {
		run_once(&tick_ns);
		if (clock_mono_ns() - begin_ns > LIMIT_NS) {
			printf("{\"hosts\": %u, \"heard\": %u, \"results\": %u, \"ordered\": %d, "
			       "\"dropped\": %llu}\n",
			       f.hosts, f.heard, f.results, f.shared->order_ns != 0,
			       (unsigned long long)bus_stats(f.net).dropped);
			die("not all hosts came, or not all results");
		}
		if (settled_ns == 0 && f.heard >= f.hosts) {
			settled_ns = clock_mono_ns() + SETTLE_NS;
			begin_ms = cpu_ms();
		}
		if (settled_ns == 0 || asked || clock_mono_ns() < settled_ns)
			continue;
		second_ms = (cpu_ms() - begin_ms) * NSEC_PER_SEC / SETTLE_NS;
		ask();
		asked = true;
	}
	print(clock_mono_ns(), second_ms);
}

int main(int argc, char **argv)
{
	const struct rlimit files = { 1u << 20, 1u << 20 };
	char dir[] = "/tmp/fleetsockets.XXXXXX", command[64];
	size_t size;

	f.hosts = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 0;
	if (f.hosts == 0)
		die("expected URL PORT HOSTS [plain]");
	f.plain = argc > 4;
	(void)setrlimit(RLIMIT_NOFILE, &files); /* where it may */
	size = sizeof(*f.shared) + f.hosts * sizeof(int64_t);
	f.shared = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	f.seen = calloc(f.hosts, 1);
	if (f.shared == MAP_FAILED || f.seen == NULL || mkdtemp(dir) == NULL)
		die("out of memory");
	f.child = fork();
	if (f.child < 0)
		die("fork");
	if (f.child == 0)
		fleetsockets_play(f.shared, (unsigned)strtoul(argv[2], NULL, 10), f.hosts);
	f.wake_fd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	open_net(argv[1]);
	if (f.plain && bus_sub(f.net, "pt.v1.job.up.>", note_up, NULL, NULL) < 0)
		die("out of memory");
	if (!f.plain && freopen("/dev/null", "w", stderr) != NULL)
		open_hub(dir);
	measure();
	(void)fflush(stdout);
	(void)subprocess_signal(f.child, SIGKILL);
	(void)waitpid(f.child, NULL, 0);
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command) == 0 ? 0 : 1;
}
