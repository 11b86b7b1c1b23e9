/* SPDX-License-Identifier: Apache-2.0 */
/* What a thread of the test says as if it were a broker, and what becomes of it. */
#include "live/link/greeting.h"

#include "live/link/bus.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct server {
	int fd;
	const char *says;
	pthread_t thread;
	struct brokerurl url;
};

static void *serve(void *arg)
{
	struct server *server = arg;
	int fd = accept(server->fd, NULL, NULL);

	(void)!write(fd, server->says, strlen(server->says));
	(void)close(fd);
	return NULL;
}

static void listen_at_loopback(struct server *server)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t len = sizeof(address);
	struct broker_address *to = &server->url.addresses[0];

	server->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(server->fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(listen(server->fd, 4), 0);
	assert_int_equal(getsockname(server->fd, (struct sockaddr *)&address, &len), 0);
	server->url.cnt = 1;
	(void)snprintf(to->host, sizeof(to->host), "127.0.0.1");
	(void)snprintf(to->port, sizeof(to->port), "%u", ntohs(address.sin_port));
}

/* Checks a broker that says this, and that the line about it has a text. */
static void check(const char *says, bool tls, bool any_version, int expected, const char *text)
{
	struct server server = { .says = says };
	struct err err = { "" };

	listen_at_loopback(&server);
	server.url.tls = tls;
	assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
	assert_int_equal(greeting_check(&server.url, any_version, &err), expected);
	if (strstr(err.text, text) == NULL)
		fail_msg("expected \"%s\" in \"%s\"", text, err.text);
	(void)pthread_join(server.thread, NULL);
	(void)close(server.fd);
}

#define GOOD "\"version\":\"2.15.1\",\"max_payload\":1048576"

static void a_broker_that_can_be_used_passes(void **state)
{
	(void)state;
	check("INFO {" GOOD "} \r\n", false, false, 0, "");
	check("INFO {" GOOD ",\"tls_required\":true}\r\n", true, false, 0, "");
	check("INFO {" GOOD ",\"tls_available\":true}\r\n", true, false, 0, "");
	check("INFO {\"version\":\"2.9.10\",\"max_payload\":1048576}\r\n", false, true, 0, "");
}

static void what_cannot_be_used_is_told_in_a_line(void **state)
{
	(void)state;
	check("INFO {\"version\":\"2.9.10\",\"max_payload\":1048576}\r\n", false, false, -ENOTSUP,
	      "nats-server 2.9.10");
	check("INFO {" GOOD ",\"tls_required\":true}\r\n", false, false, -ENOTSUP, "use tls://");
	check("INFO {" GOOD "}\r\n", true, false, -ENOTSUP, "has no TLS");
	check("INFO {\"version\":\"2.15.1\",\"max_payload\":1000}\r\n", false, false, -ENOTSUP,
	      "max_payload 1000");
}

static void what_is_no_broker_is_told(void **state)
{
	static const char *const others[] = { "SSH-2.0-OpenSSH_9.2\r\n",
					      "",
					      "INFO {\r\n",
					      "INFO {\"version\":7}\r\n",
					      "INFO []\r\n",
					      ("INFO {" GOOD "}") };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(others); i++)
		check(others[i], false, false, -EPROTO, "no NATS broker");
}

static void of_several_addresses_the_first_that_answers_counts(void **state)
{
	struct server away = { .fd = -1 }, server = { .says = "INFO {" GOOD "}\r\n" };
	struct err err = { "" };

	(void)state;
	listen_at_loopback(&away);
	(void)close(away.fd);
	assert_int_equal(greeting_check(&away.url, false, &err), -ECONNREFUSED);
	assert_non_null(strstr(err.text, "no broker at 127.0.0.1 port"));
	listen_at_loopback(&server);
	away.url.addresses[away.url.cnt++] = server.url.addresses[0];
	assert_int_equal(pthread_create(&server.thread, NULL, serve, &server), 0);
	assert_int_equal(greeting_check(&away.url, false, &err), 0);
	(void)pthread_join(server.thread, NULL);
	(void)close(server.fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_broker_that_can_be_used_passes),
		cmocka_unit_test(what_cannot_be_used_is_told_in_a_line),
		cmocka_unit_test(what_is_no_broker_is_told),
		cmocka_unit_test(of_several_addresses_the_first_that_answers_counts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
