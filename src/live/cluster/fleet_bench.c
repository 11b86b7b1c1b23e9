/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Leader and hub alone, for bench/fleet/run: one process plays all hosts of a job in memory.
 *
 *	fleet_bench HOSTS RANKS SECONDS [unpack]
 *		each host says the states of its ranks once a second; then one profile, which all ranks
 *		miss. Prints CPU times as one JSON object. unpack: the messages are unpacked, and that is
 *		all: what any receiver needs.
 */
#include "base/clock.h"
#include "base/log.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/hub/hub.h"
#include "live/hub/plan.h"
#include "live/hub/test_states.h"
#include "live/link/wire_request.h"
#include "live/run/options.h"

#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#define TICKS 10u /* a second */
#define RANKS_MAX 64u
#define STEP_NS (200 * NSEC_PER_MSEC)

static struct {
	struct bus *local, *net;
	struct hub *hub;
	struct leader *leader;
	uint32_t hosts, ranks;
	uint64_t order, seconds;
	bool unpack;	 /* nothing else */
	uint64_t *items; /* by host: number of the next item */
	int64_t now_ns;
} f;

static void die(const char *what)
{
	(void)fprintf(stderr, "fleet_bench: %s\n", what);
	exit(1);
}

static double cpu_ms(void)
{
	return (double)clock_now_ns(CLOCK_PROCESS_CPUTIME_ID) / 1e6;
}

static void note_order(void *arg, const struct bus_message *message)
{
	Cluster__Down *down = cluster__down__unpack(NULL, message->len, message->data);

	(void)arg;
	if (down != NULL && down->order != NULL)
		f.order = down->order->id;
	if (down != NULL)
		cluster__down__free_unpacked(down, NULL);
}

static void run_buses(void)
{
	while (bus_run(f.net, f.now_ns) + bus_run(f.local, f.now_ns) > 0)
		;
}

static void open_all(const char *dir)
{
	static struct run_options options;
	struct cluster_setup setup = { .job = "job", .id = "n0", .host = "head", .out_dir = dir };
	struct bus_sub *sub;

	options = run_options_preset();
	options.out_dir = dir;
	options.no_audit = true;
	if (bus_open("inproc:", NULL, NULL, &f.local) < 0 ||
	    bus_open("inproc:", NULL, NULL, &f.net) < 0)
		die("no bus");
	setup.local = f.local;
	setup.net = f.net;
	setup.no_workers = true;
	f.items = calloc(f.hosts, sizeof(*f.items));
	if (f.items == NULL || hub_open(f.local, &options, &f.hub) < 0 ||
	    leader_open(&setup, &f.leader) < 0 ||
	    bus_sub(f.net, "pt.v1.job.down", note_order, NULL, &sub) < 0)
		die("out of memory");
}

/* One message of a host: all its states, and answers to the order if there is one. */
static void say(uint32_t host, uint64_t order)
{
	static Cluster__State states[RANKS_MAX], *state_pointers[RANKS_MAX];
	static Cluster__Answer answers[RANKS_MAX];
	static Cluster__Item items[RANKS_MAX], *item_pointers[RANKS_MAX];
	static uint8_t bytes[RANKS_MAX * 1024];
	char subject[BUS_SUBJECT_MAX], name[32];
	Cluster__Up up;
	size_t len;

	cluster__up__init(&up);
	(void)snprintf(name, sizeof(name), "gpu-%u", host);
	(void)snprintf(subject, sizeof(subject), "pt.v1.job.up.%s", name);
	for (uint32_t i = 0; i < f.ranks; i++) {
		struct wire_state state =
			test_worker((int)(host * f.ranks + i),
				    10 + f.seconds * NSEC_PER_SEC / STEP_NS, STEP_NS);

		state.worker = i + 1;
		state.world_size = (int32_t)(f.hosts * f.ranks);
		state.last_ns = f.now_ns;
		convert_state_out(&state, &states[i]);
		state_pointers[i] = &states[i];
		cluster__answer__init(&answers[i]);
		answers[i].worker = i + 1;
		answers[i].outcome = OUTCOME_MISSED;
		answers[i].order = order;
		answers[i].text = (char *)(uintptr_t) "none is recorded";
		cluster__item__init(&items[i]);
		items[i].answer = &answers[i];
		item_pointers[i] = &items[i];
	}
	up.version = CLUSTER_VERSION;
	up.host = name;
	up.program = (char *)(uintptr_t)PT_VERSION;
	up.boot = host + 1;
	up.node_rank = host;
	up.sent_ns = clock_mono_ns();
	up.states = state_pointers;
	up.n_states = f.ranks;
	up.oldest = f.items[host] + 1;
	for (uint32_t i = 0; order != 0 && i < f.ranks; i++)
		items[i].number = ++f.items[host];
	up.items = item_pointers;
	up.n_items = order != 0 ? f.ranks : 0;
	if (cluster__up__get_packed_size(&up) > sizeof(bytes))
		die("the message is too long");
	len = cluster__up__pack(&up, bytes);
	if (f.unpack)
		cluster__up__free_unpacked(cluster__up__unpack(NULL, len, bytes), NULL);
	else if (bus_pub(f.net, subject, bytes, len) < 0)
		die("the bus is full");
	run_buses();
}

/* All hosts speak once, in turn over the second, and the daemon ticks meanwhile. */
static void pass_second(uint64_t order)
{
	for (uint32_t host = 0; host < f.hosts; host++) {
		say(host, order);
		if (host % (f.hosts / TICKS + 1) != 0)
			continue;
		f.now_ns += NSEC_PER_SEC / TICKS;
		hub_tick(f.hub, f.now_ns);
		leader_tick(f.leader, f.now_ns);
		run_buses();
	}
	f.seconds++;
}

static long peak_mb(void)
{
	struct rusage usage;

	(void)getrusage(RUSAGE_SELF, &usage);
	return usage.ru_maxrss / 1024;
}

int main(int argc, char **argv)
{
	const struct wire_ask ask = { .client = 1, .window_ns = NSEC_PER_SEC, .kind = ASK_PROFILE };
	char dir[] = "/tmp/fleet_bench.XXXXXX";
	double begin_ms, join_ms, beat_ms, answer_ms;
	uint64_t seconds = argc >= 4 ? strtoul(argv[3], NULL, 10) : 0;

	if (seconds == 0)
		die("expected HOSTS RANKS SECONDS [unpack]");
	f.unpack = argc > 4 && strcmp(argv[4], "unpack") == 0;
	f.hosts = (uint32_t)strtoul(argv[1], NULL, 10);
	f.ranks = (uint32_t)MIN(strtoul(argv[2], NULL, 10), RANKS_MAX);
	f.now_ns = clock_mono_ns();
	if (f.hosts == 0 || f.ranks == 0 || mkdtemp(dir) == NULL ||
	    freopen("/dev/null", "w", stderr) == NULL)
		die("expected HOSTS RANKS SECONDS [unpack]");
	open_all(dir);
	begin_ms = cpu_ms();
	pass_second(0);
	join_ms = cpu_ms() - begin_ms;
	begin_ms = cpu_ms();
	for (uint64_t i = 0; i < seconds; i++)
		pass_second(0);
	beat_ms = (cpu_ms() - begin_ms) / (double)seconds;
	if (bus_pub(f.local, SUBJECT_ASK, &ask, sizeof(ask)) < 0)
		die("the bus is full");
	while (f.order == 0 && !f.unpack)
		pass_second(0);
	begin_ms = cpu_ms();
	pass_second(f.order);
	answer_ms = cpu_ms() - begin_ms;
	printf("{\"hosts\": %u, \"ranks\": %u, \"join_ms\": %.1f, \"second_ms\": %.1f, "
	       "\"answers_ms\": %.1f, \"peak_mb\": %ld}\n",
	       f.hosts, f.ranks, join_ms, beat_ms, answer_ms, peak_mb());
	return 0;
}
