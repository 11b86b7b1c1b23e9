/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The contract of bus.h over a real nats-server (test_busconformance.h), and what only a broker has:
 * it goes away and comes back, it refuses. Skipped where no nats-server is found.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/subprocess.h"
#include "host/process/test_tree.h"
#include "live/link/broker.h"
#include "live/link/bus.h"
#include "live/link/jobcert.h"
#include "live/link/test_busconformance.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define WAIT_NS (20 * NSEC_PER_SEC)

static struct {
	const char *dir;
	unsigned port;
	char url[64];
	struct broker_setup setup;
	struct broker broker;
} f;

struct log {
	char text[256];
	unsigned calls;
};

static void record(void *arg, const struct bus_message *message)
{
	struct log *log = arg;
	size_t at = strlen(log->text);

	log->calls++;
	if (message->len < 32)
		(void)snprintf(log->text + at, sizeof(log->text) - at, "%.*s;", (int)message->len,
			       (const char *)message->data);
}

/* A port that nobody uses now. */
static unsigned free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &len), 0);
	(void)close(fd);
	return ntohs(address.sin_port);
}

static void start_broker(void)
{
	struct err err = { "" };

	if (broker_start(&f.setup, &f.broker, &err) < 0)
		fail_msg("%s", err.text);
}

static int open_all(void **state)
{
	if (make_root(state) < 0)
		return -1;
	f.dir = *state;
	f.port = free_port();
	(void)snprintf(f.url, sizeof(f.url), "nats://127.0.0.1:%u", f.port);
	f.setup = (struct broker_setup){ .dir = f.dir,
					 .address = "127.0.0.1",
					 .port = f.port,
					 .hub_password = "of-the-hub",
					 .host_password = "of-hosts",
					 .any_version = true };
	start_broker();
	return 0;
}

static int close_all(void **state)
{
	broker_stop(&f.broker);
	return remove_root(state);
}

static struct bus *connect_as(const char *user, const char *password)
{
	const struct bus_login login = {
		.url = f.url, .user = user, .password = password, .any_version = true
	};
	struct err err = { "" };
	struct bus *bus;

	if (bus_connect(&login, NULL, NULL, &bus, &err) < 0)
		fail_msg("%s", err.text);
	return bus;
}

static struct bus *connect_hub(void)
{
	struct bus *bus = connect_as(BROKER_HUB, "of-the-hub");
	char why[256];

	for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
	     !bus_is_connected(bus, why, sizeof(why)) && clock_mono_ns() < until_ns;)
		(void)usleep(1000);
	assert_true(bus_is_connected(bus, why, sizeof(why)));
	return bus;
}

/* For what is not to come: so long that it would have come. */
static void run_for(struct bus *a, struct bus *b, int64_t time_ns)
{
	for (int64_t until_ns = clock_mono_ns() + time_ns; clock_mono_ns() < until_ns;) {
		(void)bus_run(a, clock_mono_ns());
		(void)bus_run(b, clock_mono_ns());
		(void)usleep(1000);
	}
}

/* A daemon must end with its job, also when the broker's host hangs. */
static void a_broker_that_takes_nothing_delays_neither_publishing_nor_the_end(void **state)
{
	static char large[BUS_MESSAGE_MAX];
	struct bus *bus = connect_hub();
	int64_t from_ns;

	(void)state;
	assert_int_equal(subprocess_signal(f.broker.pid, SIGSTOP), 0);
	from_ns = clock_mono_ns();
	for (int i = 0; i < 64; i++)
		(void)bus_pub(bus, "a", large, sizeof(large));
	assert_true(clock_mono_ns() - from_ns < WAIT_NS);
	assert_true(bus_stats(bus).dropped > 0);
	from_ns = clock_mono_ns();
	(void)bus_close(bus);
	assert_true(clock_mono_ns() - from_ns < 3 * WAIT_NS);
	assert_int_equal(subprocess_signal(f.broker.pid, SIGCONT), 0);
}

static void a_broker_that_comes_back_is_found_again(void **state)
{
	struct bus *from = connect_hub(), *to = connect_hub();
	struct log log = { .calls = 0 };
	unsigned tries = 0;

	(void)state;
	assert_int_equal(bus_sub(to, "a", record, &log, NULL), 0);
	(void)usleep(200000);
	assert_int_equal(subprocess_signal(f.broker.pid, SIGKILL), 0);
	while (broker_lives(&f.broker))
		(void)usleep(1000);
	for (int i = 0; i < 20000; i++) /* nothing blocks; what does not fit is counted */
		(void)bus_pub(from, "b", "x", 1);
	start_broker();
	/* A message may be lost with the old connection: at most once is the contract. */
	for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
	     log.calls == 0 && clock_mono_ns() < until_ns; tries++) {
		(void)bus_pub(from, "a", "again", 5);
		run_for(from, to, NSEC_PER_SEC / 10);
	}
	assert_true(log.calls > 0);
	assert_true(log.calls <= tries);
	assert_true(bus_stats(to).reconnects >= 1);
	(void)bus_close(from);
	(void)bus_close(to);
}

static void assert_never_connects(struct bus *bus, const char *expected)
{
	char why[256] = "";

	for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
	     why[0] == '\0' && clock_mono_ns() < until_ns;) {
		assert_false(bus_is_connected(bus, why, sizeof(why)));
		(void)usleep(1000);
	}
	if (strcasestr(why, expected) == NULL)
		fail_msg("expected \"%s\" in \"%s\"", expected, why);
	(void)bus_close(bus);
}

static void who_is_refused_is_told_why(void **state)
{
	(void)state;
	assert_never_connects(connect_as(BROKER_HUB, "wrong"), "authorization");
	assert_never_connects(connect_as(BROKER_HOST, "of-the-hub"), "authorization");
	assert_never_connects(connect_as(NULL, NULL), "authorization");
	broker_stop(&f.broker);
	assert_never_connects(connect_as(BROKER_HUB, "of-the-hub"), "no broker at 127.0.0.1 port");
}

static void a_host_says_only_what_hosts_may_say(void **state)
{
	static const struct {
		const char *subject;
		bool allowed;
	} cells[] = {
		{ "pt.v1.job.up.n1", true },	{ "pt.v1.other.up.n1", true },
		{ "pt.v1.job.down", false },	{ "pt.v1.job.to.n1", false },
		{ "pt.v1.job.up.n1.x", false }, { "pt.v1.job.up", false },
		{ "pt.v2.job.up.n1", false },	{ "anything", false },
	};
	struct bus *hub = connect_hub(), *host = connect_as(BROKER_HOST, "of-hosts");
	struct log heard[ARRAY_SIZE(cells)] = { { .calls = 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		assert_int_equal(bus_sub(hub, cells[i].subject, record, &heard[i], NULL), 0);
	(void)usleep(200000);
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		assert_int_equal(bus_pub(host, cells[i].subject, "x", 1), 0);
	run_for(hub, host, NSEC_PER_SEC);
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		assert_int_equal(heard[i].calls, cells[i].allowed);
	(void)bus_close(hub);
	(void)bus_close(host);
}

static void a_host_hears_only_what_the_hub_says(void **state)
{
	static const struct {
		const char *subject, *pattern;
		bool allowed;
	} cells[] = {
		{ "pt.v1.job.down", "pt.v1.job.down", true },
		{ "pt.v1.job.to.n1", "pt.v1.job.to.n1", true },
		{ "pt.v1.job.up.n2", "pt.v1.job.up.n2", false },
		{ "pt.v1.job.up.n3", "pt.v1.job.up.>", false },
		{ "else", "else", false },
	};
	struct bus *hub = connect_hub(), *host = connect_as(BROKER_HOST, "of-hosts");
	struct log heard[ARRAY_SIZE(cells)] = { { .calls = 0 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		assert_int_equal(bus_sub(host, cells[i].pattern, record, &heard[i], NULL), 0);
	(void)usleep(300000);
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		assert_int_equal(bus_pub(hub, cells[i].subject, "x", 1), 0);
	run_for(hub, host, NSEC_PER_SEC);
	for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
		assert_int_equal(heard[i].calls, cells[i].allowed);
	(void)bus_close(hub);
	(void)bus_close(host);
}

static void make_certificates(const char *secret, char certificate[256], char key[256])
{
	struct err err = { "" };

	(void)snprintf(certificate, 256, "%s/%s.crt", f.dir, secret);
	(void)snprintf(key, 256, "%s/%s.key", f.dir, secret);
	assert_int_equal(jobcert_write(secret, certificate, key, &err), 0);
}

static struct bus *connect_tls(const char *ca_file, const char *broker_name)
{
	const struct bus_login login = { .url = f.url,
					 .user = BROKER_HUB,
					 .password = "of-the-hub",
					 .ca_file = ca_file,
					 .broker_name = broker_name,
					 .any_version = true };
	struct err err = { "" };
	struct bus *bus;

	assert_int_equal(bus_connect(&login, NULL, NULL, &bus, &err), 0);
	return bus;
}

static void only_a_broker_with_the_certificate_of_the_secret_is_trusted(void **state)
{
	char certificate[256], key[256], other[256], other_key[256], why[256];
	struct bus *bus;

	(void)state;
	broker_stop(&f.broker);
	make_certificates("right", certificate, key);
	make_certificates("wrong", other, other_key);
	f.setup.certificate_file = certificate;
	f.setup.key_file = key;
	start_broker();
	(void)snprintf(f.url, sizeof(f.url), "tls://127.0.0.1:%u", f.port);
	bus = connect_tls(certificate, JOBCERT_NAME);
	for (int64_t until_ns = clock_mono_ns() + WAIT_NS;
	     !bus_is_connected(bus, why, sizeof(why)) && clock_mono_ns() < until_ns;)
		(void)usleep(1000);
	assert_true(bus_is_connected(bus, why, sizeof(why)));
	(void)bus_close(bus);
	assert_never_connects(connect_tls(other, JOBCERT_NAME), "certificate");
	assert_never_connects(connect_tls(certificate, "other"), "mismatch");
	assert_never_connects(connect_tls(NULL, JOBCERT_NAME), "certificate");
	(void)snprintf(f.url, sizeof(f.url), "nats://127.0.0.1:%u", f.port);
	assert_never_connects(connect_as(BROKER_HUB, "of-the-hub"), "wants TLS: use tls://");
}

static void a_port_in_use_is_told(void **state)
{
	struct broker second;
	struct err err = { "" };

	(void)state;
	assert_int_equal(broker_start(&f.setup, &second, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "in use"));
}

#ifdef __SANITIZE_THREAD__
/*
 * A thread of libnats that finds the connection shut down by another writes TLS's last alert into
 * the buffer that the other has sent. The socket orders them, which the sanitizer cannot see.
 */
const char *__tsan_default_suppressions(void);
const char *__tsan_default_suppressions(void)
{
	return "race:libssl.so\nrace:libcrypto.so\n";
}
#endif

/* Two connections to one broker of all tests of the contract. */
static int open_pair(void **state)
{
	static struct test_buses buses;

	buses = (struct test_buses){ .from = connect_hub(), .to = connect_hub() };
	*state = &buses;
	return 0;
}

static int close_pair(void **state)
{
	test_buses_close(*state);
	return 0;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest contract[] = BUS_CONFORMANCE(open_pair, close_pair);
	const struct CMUnitTest tests[] = {
		TEST(a_broker_that_takes_nothing_delays_neither_publishing_nor_the_end),
		TEST(a_broker_that_comes_back_is_found_again),
		TEST(who_is_refused_is_told_why),
		TEST(a_host_says_only_what_hosts_may_say),
		TEST(a_host_hears_only_what_the_hub_says),
		TEST(only_a_broker_with_the_certificate_of_the_secret_is_trusted),
		TEST(a_port_in_use_is_told),
	};
	char version[32], path[4096];
	struct err err = { "" };

	if (broker_find(version, path, sizeof(path), &err) < 0) {
		(void)fprintf(stderr, "skipped: %s\n", err.text);
		return 77;
	}
	return cmocka_run_group_tests_name("contract", contract, open_all, close_all) +
	       cmocka_run_group_tests_name("broker", tests, NULL, NULL);
}
