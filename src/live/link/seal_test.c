/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/seal.h"

#include "base/file.h"
#include "base/test_random.h"
#include "host/process/test_tree.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Of RFC 8032, 7.1, test 1, as deploy/nats/make-users writes them. */
#define SEED "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
#define PUBLIC "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"
#define OTHER_PUBLIC "UATHPFHHSBHDIALPVABIJAXPG7FKMCRTEST6GP42YKIPAON7A6ZF72HG"

#define SUBJECT "pt.v1.job.down"

static struct seal *of_secret(const char *secret)
{
	struct seal *ret;
	struct err err = { "" };

	assert_int_equal(seal_of_secret(secret, &ret, &err), 0);
	return ret;
}

static struct seal *of_public(const char *text)
{
	struct seal *ret;
	struct err err = { "" };

	assert_int_equal(seal_of_public_key(text, &ret, &err), 0);
	return ret;
}

static int read_seed(const char *dir, const char *line, struct seal **ret, struct err *err)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/orders.seed", dir);
	assert_int_equal(file_replace(path, line, strlen(line), 0600), 0);
	return seal_of_seed_file(path, ret, err);
}

static void a_hub_signs_with_the_seed_and_hosts_check_with_the_public_key(void **state)
{
	struct seal *hub, *host = of_public(PUBLIC), *other = of_public(OTHER_PUBLIC);
	uint8_t message[5 + SEAL_BYTES] = "order";
	struct err err = { "" };

	assert_int_equal(read_seed(*state, SEED "\n", &hub, &err), 0);
	assert_int_equal(seal_add(hub, SUBJECT, message, 5), 0);
	assert_memory_equal(message, "order", 5);
	assert_true(seal_is_valid(host, SUBJECT, message, sizeof(message)));
	assert_false(seal_is_valid(other, SUBJECT, message, sizeof(message)));
	assert_int_equal(seal_add(host, SUBJECT, message, 5), -EIO); /* it has no seed */
	(void)seal_close(hub);
	(void)seal_close(host);
	(void)seal_close(other);
}

static void hosts_with_the_same_secret_trust_each_other_and_no_others(void **state)
{
	struct seal *one = of_secret("secret"), *same = of_secret("secret"),
		    *other = of_secret("Secret");
	uint8_t message[5 + SEAL_BYTES] = "order";

	(void)state;
	assert_int_equal(seal_add(one, SUBJECT, message, 5), 0);
	assert_true(seal_is_valid(same, SUBJECT, message, sizeof(message)));
	assert_false(seal_is_valid(other, SUBJECT, message, sizeof(message)));
	(void)seal_close(one);
	(void)seal_close(same);
	(void)seal_close(other);
}

static void what_was_said_to_one_job_or_host_is_valid_for_no_other(void **state)
{
	struct seal *seal = of_secret("secret");
	uint8_t message[5 + SEAL_BYTES] = "order";

	(void)state;
	assert_int_equal(seal_add(seal, SUBJECT, message, 5), 0);
	assert_false(seal_is_valid(seal, "pt.v1.other.down", message, sizeof(message)));
	assert_false(seal_is_valid(seal, "", message, sizeof(message)));
	(void)seal_close(seal);
}

static void a_message_of_which_anything_was_changed_is_refused(void **state)
{
	struct seal *seal = of_secret("secret");
	uint8_t message[40 + SEAL_BYTES + 1] = "an order for iterations 700 to 720";
	uint64_t random = 5;

	(void)state;
	assert_int_equal(seal_add(seal, SUBJECT, message, 40), 0);
	for (unsigned i = 0; i < 2000; i++) {
		size_t at = test_random(&random) % (sizeof(message) - 1);
		uint8_t was = message[at];

		message[at] ^= (uint8_t)(1 + test_random(&random) % 255);
		assert_false(seal_is_valid(seal, SUBJECT, message, sizeof(message) - 1));
		message[at] = was;
	}
	for (size_t len = 0; len < sizeof(message) - 1; len++)
		assert_false(seal_is_valid(seal, SUBJECT, message, len));
	assert_false(seal_is_valid(seal, SUBJECT, message, sizeof(message)));
	assert_true(seal_is_valid(seal, SUBJECT, message, sizeof(message) - 1));
	(void)seal_close(seal);
}

static void what_is_no_key_is_refused_with_a_line(void **state)
{
	static const char *const no_seeds[] = { "\n", "SUAN\n", PUBLIC "\n", SEED "A\n" };
	static const char *const no_keys[] = { "", "U", SEED, PUBLIC "A", "hub" };
	struct seal *seal;
	struct err err;

	for (size_t i = 0; i < ARRAY_SIZE(no_seeds); i++) {
		err.text[0] = '\0';
		assert_int_equal(read_seed(*state, no_seeds[i], &seal, &err), -EINVAL);
		assert_non_null(strstr(err.text, "orders.seed: expected the seed of an NKey"));
	}
	for (size_t i = 0; i < ARRAY_SIZE(no_keys); i++) {
		assert_int_equal(seal_of_public_key(no_keys[i], &seal, &err), -EINVAL);
		assert_non_null(strstr(err.text, "expected the public key of an NKey"));
	}
	assert_int_equal(seal_of_seed_file("/nowhere/orders.seed", &seal, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_hub_signs_with_the_seed_and_hosts_check_with_the_public_key, make_root,
			remove_root),
		cmocka_unit_test(hosts_with_the_same_secret_trust_each_other_and_no_others),
		cmocka_unit_test(what_was_said_to_one_job_or_host_is_valid_for_no_other),
		cmocka_unit_test(a_message_of_which_anything_was_changed_is_refused),
		cmocka_unit_test_setup_teardown(what_is_no_key_is_refused_with_a_line, make_root,
						remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
