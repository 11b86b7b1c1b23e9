/* SPDX-License-Identifier: Apache-2.0 */
/* What is refused before a broker is asked; versions of brokers. */
#include "base/err.h"
#include "base/str.h"
#include "live/link/broker.h"
#include "live/link/brokerurl.h"
#include "live/link/bus.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static int connect_to(const char *url, bool insecure, struct err *err)
{
	const struct bus_login login = { .url = url, .insecure = insecure };
	struct bus *bus;
	int ret = bus_connect(&login, NULL, NULL, &bus, err);

	if (ret == 0)
		(void)bus_close(bus);
	return ret;
}

static void plain_text_to_other_hosts_is_refused_unless_allowed(void **state)
{
	static const char *const near[] = { "nats://127.0.0.1:1", "nats://localhost:1",
					    "nats://[::1]:1", "nats://127.1.2.3,nats://localhost" };
	static const char *const far[] = { "nats://10.0.0.1:1", "nats://example.org:1",
					   "nats://127.example.org:1",
					   "nats://127.0.0.1:1,nats://10.0.0.1:1",
					   "nats://[::2]:1" };
	struct err err = { "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(near); i++)
		assert_int_equal(connect_to(near[i], false, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(far); i++) {
		assert_int_equal(connect_to(far[i], false, &err), -EPERM);
		assert_non_null(strstr(err.text, "--insecure"));
		assert_int_equal(connect_to(far[i], true, &err), 0);
	}
	assert_int_equal(connect_to("http://127.0.0.1:1", true, &err), -EINVAL);
	assert_non_null(strstr(err.text, "nats://HOST:PORT"));
}

static void a_text_that_is_no_address_of_a_broker_is_refused(void **state)
{
	static const char *const bad[] = {
		"",
		"127.0.0.1:4222",
		"http://127.0.0.1:1",
		"nats://",
		"nats://:1",
		"nats://h:",
		"nats://h:0",
		"nats://h:65536",
		"nats://h:1x",
		"nats://h:1/",
		"nats://::1",
		"nats://[::1",
		"nats://[::1]1",
		"nats://h:1,",
		"nats://127.0.0.1:1,tls://127.0.0.1:1",
		"nats://h h:1",
	};
	struct str many = { 0 };
	struct brokerurl url;
	struct err err = { "" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(bad); i++) {
		assert_int_equal(brokerurl_parse(bad[i], &url, &err), -EINVAL);
		assert_non_null(strstr(err.text, "nats://HOST:PORT"));
	}
	str_append(&many, "nats://h");
	for (size_t i = 0; i < BROKERURL_MAX; i++)
		str_append(&many, ",nats://h");
	assert_int_equal(brokerurl_parse(str_borrow(&many), &url, &err), -EINVAL);
	str_done(&many);
	assert_int_equal(brokerurl_parse("nats://user:secret@h:1", &url, &err), -EINVAL);
	assert_null(strstr(err.text, "secret"));
}

static void addresses_are_parsed(void **state)
{
	struct brokerurl url;

	(void)state;
	assert_int_equal(
		brokerurl_parse("tls://a.example:1,tls://[fe80::1%eth0]:65535,tls://b", &url, NULL),
		0);
	assert_true(url.tls);
	assert_int_equal(url.cnt, 3);
	assert_string_equal(url.addresses[0].host, "a.example");
	assert_string_equal(url.addresses[0].port, "1");
	assert_string_equal(url.addresses[1].host, "fe80::1%eth0");
	assert_string_equal(url.addresses[1].port, "65535");
	assert_string_equal(url.addresses[2].port, "4222");
	assert_false(brokerurl_is_local(&url));
}

static void versions_are_compared_as_numbers(void **state)
{
	static const char *const recent[] = { "2.12.7", "2.12.10", "2.15.1", "3.0.0", "10.0.0" };
	static const char *const old[] = { "2.9.10", "2.12.6", "1.99.99", "", "new", "2.12" };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(recent); i++)
		assert_true(brokerversion_is_recent(recent[i]));
	for (size_t i = 0; i < ARRAY_SIZE(old); i++)
		assert_false(brokerversion_is_recent(old[i]));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_text_to_other_hosts_is_refused_unless_allowed),
		cmocka_unit_test(a_text_that_is_no_address_of_a_broker_is_refused),
		cmocka_unit_test(addresses_are_parsed),
		cmocka_unit_test(versions_are_compared_as_numbers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
