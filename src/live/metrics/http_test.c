/* SPDX-License-Identifier: Apache-2.0 */
/* A server on a free port of the loopback, and clients that behave badly. */
#include "live/metrics/http.h"

#include "base/clock.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PAGE_BYTES ((size_t)8 << 20) /* more than all buffers on the way hold */

static int render(void *arg, const char *accept, struct str *ret, const char **ret_type)
{
	char block[65536]; /* large, so that writing the page blocks */
	const size_t *bytes = arg;

	memset(block, 'x', sizeof(block) - 1);
	block[sizeof(block) - 1] = '\0';
	*ret_type = "text/plain";
	str_printf(ret, "accept=%s\n", accept != NULL ? accept : "");
	for (size_t i = 0; i < *bytes; i += sizeof(block) - 1)
		str_append(ret, block);
	return str_error(ret);
}

static struct http *serve(size_t *bytes)
{
	struct netaddress address = { .host = "127.0.0.1" };
	struct http_source source = { .render = render, .arg = bytes, .path = "/metrics" };
	struct http *http = NULL;
	struct err err = { "" };

	if (http_open(&address, &source, &http, &err) != 0)
		fail_msg("%s", err.text);
	return http;
}

static int connect_to(const struct http *http)
{
	struct sockaddr_in address = { .sin_family = AF_INET };
	struct timeval limit = { .tv_sec = 60 }; /* a test that hangs fails */
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	address.sin_port = htons((uint16_t)atoi(strchr(http_borrow_address(http), ':') + 1));
	assert_int_equal(inet_pton(AF_INET, "127.0.0.1", &address.sin_addr), 1);
	assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit)), 0);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static void say(int fd, const char *text)
{
	assert_int_equal(send(fd, text, strlen(text), MSG_NOSIGNAL), strlen(text));
}

/* All until the server closes. */
static struct str hear(int fd)
{
	struct str answer = { 0 };
	char buf[65536];
	ssize_t len;

	while ((len = recv(fd, buf, sizeof(buf), 0)) > 0)
		str_append_len(&answer, buf, (size_t)len);
	(void)close(fd);
	return answer;
}

static void expect_answer(const struct http *http, const char *request, const char *begin)
{
	int fd = connect_to(http);
	struct str answer;

	say(fd, request);
	answer = hear(fd);
	if (strncmp(str_borrow(&answer), begin, strlen(begin)) != 0)
		fail_msg("%s: expected %s found %.60s", request, begin, str_borrow(&answer));
	str_done(&answer);
}

static void requests_get_what_they_ask_for(void **state)
{
	size_t bytes = 100;
	struct http *http = serve(&bytes);
	int fd = connect_to(http);
	struct str answer;

	(void)state;
	say(fd, "GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\nAccept: text/plain\r\n\r\n");
	answer = hear(fd);
	assert_non_null(strstr(answer.data, "HTTP/1.1 200"));
	assert_non_null(strstr(answer.data, "\r\nConnection: close"));
	assert_non_null(strstr(answer.data, "\r\n\r\naccept=text/plain\n"));
	str_done(&answer);
	expect_answer(http, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200");
	expect_answer(http, "GET /etc/passwd HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 404");
	expect_answer(http, "HEAD /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200");
	expect_answer(http, "DELETE /metrics HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 405");
	expect_answer(http, "nonsense\r\n\r\n", ""); /* an answer or none, but an end */
	(void)http_close(http);
}

static void a_body_or_long_headers_are_refused(void **state)
{
	size_t bytes = 0;
	struct http *http = serve(&bytes);
	int fd = connect_to(http);
	struct str answer;

	(void)state;
	expect_answer(http, "POST /metrics HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc",
		      "HTTP/1.1 405");
	say(fd, "GET /metrics HTTP/1.1\r\nHost: a\r\n");
	for (unsigned i = 0; i < HTTP_REQUEST_BYTES; i += 64) {
		static const char line[] =
			"X-Long: 0123456789012345678901234567890123456789012345678901234567\r\n";

		if (send(fd, line, strlen(line), MSG_NOSIGNAL) < 0)
			break; /* it has closed already */
	}
	answer = hear(fd);
	assert_null(strstr(str_borrow(&answer), " 200 "));
	str_done(&answer);
	(void)http_close(http);
}

/*
 * Clients that connect and say nothing, or ask for a large page and don't read it, hold up
 * neither the one that asks beside them nor http_tick(); and when they are old they are cut.
 */
static void slow_clients_delay_no_other_and_are_cut(void **state)
{
	size_t bytes = PAGE_BYTES;
	struct http *http = serve(&bytes);
	int slow[HTTP_CONNECTION_MAX - 2];
	struct str answer;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		slow[i] = connect_to(http);
		if (i % 2 == 0)
			say(slow[i], "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	}
	http_tick(http, clock_mono_ns()); /* no connection is old */
	expect_answer(http, "GET / HTTP/1.1\r\nHost: a\r\n\r\n", "HTTP/1.1 200");
	http_tick(http, clock_mono_ns() + HTTP_AGE_MAX_NS);
	for (size_t i = 0; i < ARRAY_SIZE(slow); i++) {
		answer = hear(slow[i]); /* ends, and not by the time limit */
		assert_true(answer.len < PAGE_BYTES);
		str_done(&answer);
	}
	(void)http_close(http);
}

static void more_connections_than_allowed_wait_and_are_served_later(void **state)
{
	size_t bytes = 0;
	struct http *http = serve(&bytes);
	int idle[HTTP_CONNECTION_MAX], fd;
	struct str answer;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		idle[i] = connect_to(http);
	fd = connect_to(http);
	say(fd, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	for (size_t i = 0; i < ARRAY_SIZE(idle); i++)
		(void)close(idle[i]);
	answer = hear(fd);
	assert_non_null(strstr(str_borrow(&answer), "HTTP/1.1 200"));
	str_done(&answer);
	(void)http_close(http);
}

static void closing_does_not_wait_for_clients(void **state)
{
	size_t bytes = PAGE_BYTES;
	struct http *http = serve(&bytes);
	int fd = connect_to(http);

	(void)state;
	say(fd, "GET /metrics HTTP/1.1\r\nHost: a\r\n\r\n");
	(void)http_close(http);
	(void)close(fd);
}

static void addresses_are_checked(void **state)
{
	static const struct {
		const char *text, *host;
		uint16_t port;
	} good[] = {
		{ "9400", "127.0.0.1", 9400 },	       { "0", "127.0.0.1", 0 },
		{ "0.0.0.0:65535", "0.0.0.0", 65535 }, { "[::1]:80", "::1", 80 },
		{ "localhost:1", "127.0.0.1", 1 },     { "[::]:0", "::", 0 },
	};
	static const char *const bad[] = { "",	      ":9400",	  "a",
					   "1.2.3.4", "65536",	  "1.2.3:1",
					   "::1:80",  "[::1]80",  "host:1",
					   "[]:1",    "1.2.3.4:", "1.2.3.4:-1",
					   "[1:1",    "9400 ",	  "99999999999999999999" };
	struct err err;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(good); i++) {
		struct netaddress address;

		assert_int_equal(netaddress_parse(good[i].text, &address, &err), 0);
		assert_string_equal(address.host, good[i].host);
		assert_int_equal(address.port, good[i].port);
	}
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		struct netaddress address = { .host = "untouched" };

		if (netaddress_parse(bad[i], &address, &err) != -EINVAL)
			fail_msg("%s is taken", bad[i]);
		assert_string_equal(address.host, "untouched");
	}
}

static void a_port_in_use_is_reported(void **state)
{
	size_t bytes = 0;
	struct http *http = serve(&bytes), *second = NULL;
	struct http_source source = { .render = render, .arg = &bytes, .path = "/metrics" };
	struct netaddress address;
	struct err err;

	(void)state;
	assert_int_equal(netaddress_parse(http_borrow_address(http), &address, &err), 0);
	assert_int_equal(http_open(&address, &source, &second, &err), -EADDRINUSE);
	assert_non_null(strstr(err.text, "127.0.0.1 port"));
	assert_null(second);
	(void)http_close(http);
}

/* Not even a library can be opened in the child. */
static int open_without_files(void)
{
	const struct rlimit none = { 0 };
	struct netaddress address = { .host = "127.0.0.1" };
	struct http_source source = { .render = render, .path = "/metrics" };
	struct http *http = NULL;
	struct err err = { "" };

	if (setrlimit(RLIMIT_NOFILE, &none) != 0)
		return 1;
	if (http_open(&address, &source, &http, &err) != -ENOPKG || http != NULL)
		return 2;
	return strstr(err.text, "install libmicrohttpd") != NULL ? 0 : 3;
}

/* The first test: a library loaded once stays. */
static void a_missing_library_is_reported_with_its_package(void **state)
{
	pid_t child = fork();
	int status = -1;

	(void)state;
	if (child == 0)
		_exit(open_without_files());
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_missing_library_is_reported_with_its_package),
		cmocka_unit_test(requests_get_what_they_ask_for),
		cmocka_unit_test(a_body_or_long_headers_are_refused),
		cmocka_unit_test(slow_clients_delay_no_other_and_are_cut),
		cmocka_unit_test(more_connections_than_allowed_wait_and_are_served_later),
		cmocka_unit_test(closing_does_not_wait_for_clients),
		cmocka_unit_test(addresses_are_checked),
		cmocka_unit_test(a_port_in_use_is_reported),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
