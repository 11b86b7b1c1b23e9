/* SPDX-License-Identifier: Apache-2.0 */
/*
 * deploy/nats with a real nats-server: users by NKeys over TLS, and who may publish and hear what,
 * cell by cell. Skipped where no nats-server or openssl is found.
 */
#include "base/clock.h"
#include "base/err.h"
#include "base/subprocess.h"
#include "host/process/test_tree.h"
#include "live/link/broker.h"
#include "live/link/bus.h"
#include "live/link/jobcert.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define WAIT_NS (20 * NSEC_PER_SEC)
#define USERS 3 /* "hub", "n1", "n2" */

static const char *const users[USERS] = { "hub", "n1", "n2" };

/* Which subjects each user may publish and subscribe. */
static const struct cell {
	const char *subject;
	bool publish[USERS], subscribe[USERS];
} cells[] = {
	{ "pt.v1.job.up.n1", { false, true, false }, { true, false, false } },
	{ "pt.v1.job.up.n2", { false, false, true }, { true, false, false } },
	{ "pt.v1.other.up.n1", { false, true, false }, { true, false, false } },
	{ "pt.v1.job.down", { true, false, false }, { false, true, true } },
	{ "pt.v1.job.to.n1", { true, false, false }, { false, true, false } },
	{ "pt.v1.job.to.n2", { true, false, false }, { false, false, true } },
	{ "pt.v1.job.up.n1.x", { false }, { true, false, false } },
	{ "pt.v1.fleet.up.n1", { false, true, false }, { true, false, false } },
	{ "pt.v1.fleet.down", { true, false, false }, { true, true, true } },
	{ "pt.v2.job.up.n1", { false }, { false } },
	{ "_INBOX.x.1", { false }, { false } },
	{ "anything", { false }, { false } },
};

static struct {
	char server[4096], url[64], certificate[512];
	const char *dir;
	pid_t pid;
} f;

static int call(const char *const *argv)
{
	int status;
	pid_t pid;

	if (subprocess_start(argv, (int[]){ SUBPROCESS_NULL, SUBPROCESS_NULL, SUBPROCESS_INHERIT },
			     &pid) < 0 ||
	    waitpid(pid, &status, 0) != pid)
		return -1;
	return status;
}

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

/* The folder as an administrator has it, and the configuration as it is but for the port. */
static int open_all(void **state)
{
	static const char source[] = PT_SOURCE "/deploy/nats/nats-server.conf";
	static const char make_users[] = PT_SOURCE "/deploy/nats/make-users";
	char config[512], tls[512], key[600], port[8];
	struct err err = { "" };

	if (make_root(state) < 0)
		return -1;
	f.dir = *state;
	assert_int_equal(call((const char *const[]){ make_users, f.dir, "n1", "n2", NULL }), 0);
	(void)snprintf(config, sizeof(config), "%s/nats-server.conf", f.dir);
	assert_int_equal(call((const char *const[]){ "cp", source, config, NULL }), 0);
	(void)snprintf(tls, sizeof(tls), "%s/tls", f.dir);
	assert_int_equal(mkdir(tls, 0700), 0);
	(void)snprintf(f.certificate, sizeof(f.certificate), "%s/tls/server.crt", f.dir);
	(void)snprintf(key, sizeof(key), "%s/server.key", tls);
	assert_int_equal(jobcert_write("secret", f.certificate, key, &err), 0);
	(void)snprintf(port, sizeof(port), "%u", free_port());
	(void)snprintf(f.url, sizeof(f.url), "tls://127.0.0.1:%s", port);
	/* TLS files are relative to the folder where the server starts. */
	return subprocess_start((const char *const[]){ "env", "-C", f.dir, "setpriv", "--pdeathsig",
						       "KILL", f.server, "-c", config, "-a",
						       "127.0.0.1", "-p", port, NULL },
				(int[]){ SUBPROCESS_NULL, SUBPROCESS_NULL, SUBPROCESS_NULL },
				&f.pid);
}

static int close_all(void **state)
{
	int status;

	(void)subprocess_signal(f.pid, SIGKILL);
	(void)waitpid(f.pid, &status, 0);
	return remove_root(state);
}

/* A user, with the seed of another if that is named. The login's texts live as long as the bus. */
struct client {
	char public[64], seed_file[600];
	struct bus *bus;
};

static void open_client(struct client *client, const char *user, const char *seed_of)
{
	struct bus_login login = { .url = f.url,
				   .ca_file = f.certificate,
				   .broker_name = JOBCERT_NAME,
				   .any_version = true };
	struct err err = { "" };
	char path[600];
	FILE *file;

	if (user != NULL) {
		(void)snprintf(path, sizeof(path), "%s/keys/%s.pub", f.dir, user);
		file = fopen(path, "re");
		assert_non_null(file);
		assert_int_equal(fscanf(file, "%63s", client->public), 1);
		(void)fclose(file);
		(void)snprintf(client->seed_file, sizeof(client->seed_file), "%s/keys/%s.seed",
			       f.dir, seed_of);
		login.nkey_public = client->public;
		login.nkey_seed_file = client->seed_file;
	}
	if (bus_connect(&login, NULL, NULL, &client->bus, &err) < 0)
		fail_msg("%s", err.text);
}

/* Waits for a connection, or for the text in why there is none. */
static void await(struct client *client, const char *why_not)
{
	char why[256] = "";
	bool connected = false;

	for (int64_t until_ns = clock_mono_ns() + WAIT_NS; clock_mono_ns() < until_ns;) {
		connected = bus_is_connected(client->bus, why, sizeof(why));
		if (connected || (why_not != NULL && strcasestr(why, why_not) != NULL))
			break;
		(void)usleep(1000);
	}
	if (connected != (why_not == NULL))
		fail_msg("connected=%d why=\"%s\"", connected, why);
}

struct heard {
	unsigned from[USERS];
};

/* A message is the number of the user who published it. */
static void record(void *arg, const struct bus_message *message)
{
	unsigned char user = *(const unsigned char *)message->data;

	assert_true(user < USERS);
	((struct heard *)arg)->from[user]++;
}

static void run_for(struct client clients[static USERS], int64_t time_ns)
{
	for (int64_t until_ns = clock_mono_ns() + time_ns; clock_mono_ns() < until_ns;) {
		for (size_t i = 0; i < USERS; i++)
			(void)bus_run(clients[i].bus, clock_mono_ns());
		(void)usleep(1000);
	}
}

static void each_user_publishes_and_hears_only_its_own(void **state)
{
	struct heard heard[USERS][ARRAY_SIZE(cells)] = { { { { 0 } } } };
	struct client clients[USERS];

	(void)state;
	for (size_t user = 0; user < USERS; user++) {
		open_client(&clients[user], users[user], users[user]);
		await(&clients[user], NULL);
		for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
			assert_int_equal(bus_sub(clients[user].bus, cells[i].subject, record,
						 &heard[user][i], NULL),
					 0);
	}
	run_for(clients, NSEC_PER_SEC / 2);
	for (unsigned char user = 0; user < USERS; user++) {
		for (size_t i = 0; i < ARRAY_SIZE(cells); i++)
			assert_int_equal(bus_pub(clients[user].bus, cells[i].subject, &user, 1), 0);
	}
	run_for(clients, NSEC_PER_SEC);
	for (size_t to = 0; to < USERS; to++) {
		for (size_t i = 0; i < ARRAY_SIZE(cells); i++) {
			for (size_t from = 0; from < USERS; from++) {
				unsigned expected =
					cells[i].publish[from] && cells[i].subscribe[to];

				if (heard[to][i].from[from] != expected)
					fail_msg("%s: %s heard %u from %s", cells[i].subject,
						 users[to], heard[to][i].from[from], users[from]);
			}
		}
	}
	for (size_t user = 0; user < USERS; user++)
		(void)bus_close(clients[user].bus);
}

static void strangers_get_nothing(void **state)
{
	struct client nobody, thief;

	(void)state;
	open_client(&nobody, NULL, NULL);
	await(&nobody, "authorization");
	open_client(&thief, "hub", "n1"); /* the name of the hub with the secret of a host */
	await(&thief, "authorization");
	(void)bus_close(nobody.bus);
	(void)bus_close(thief.bus);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_all, close_all)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(each_user_publishes_and_hears_only_its_own),
		TEST(strangers_get_nothing),
	};
	char version[32], openssl[4096];
	struct err err = { "" };

	if (broker_find(version, f.server, sizeof(f.server), &err) < 0 ||
	    subprocess_find("openssl", openssl, sizeof(openssl)) < 0) {
		(void)fprintf(stderr, "skipped: no openssl, or %s\n", err.text);
		return 77;
	}
	return cmocka_run_group_tests(tests, NULL, NULL);
}
