/* SPDX-License-Identifier: Apache-2.0 */
/* What is no message, or a false one, and want of memory. */
#include "base/test_alloc.h"
#include "base/test_random.h"
#include "center/wire/test_fphost.h"

#include <endian.h>
#include <errno.h>
#include <string.h>
#include <xxhash.h>

static void a_fingerprint_that_lies_is_refused(void **state)
{
	struct host host;
	struct str out = { 0 };
	struct err err;

	(void)state;
	host_init(&host, 5);
	make_short(&host.fps[0]);
	host.fps[0].shares[1].function = 2;
	assert_int_equal(fpwire_encode(host.list, host.cnt, &complete, &out, &err), -EINVAL);
	assert_string_equal(err.text, "fingerprint of rank 20: a share without a function");
	host.fps[0].shares[1].function = 1;
	host.fps[0].frames[0].parent = 0;
	assert_int_equal(fpwire_encode(host.list, host.cnt, &complete, &out, &err), -EINVAL);
	host.fps[0].frames[0].parent = FRAME_NONE;
	host.fps[0].collectives[1].lead_cnt = 3;
	assert_int_equal(fpwire_encode(host.list, host.cnt, &complete, &out, &err), -EINVAL);
	assert_int_equal(out.len, 0);
	assert_int_equal(fpwire_encode(host.list, FPWIRE_WORKER_MAX + 1, &complete, &out, &err),
			 -EINVAL);
	str_done(&out);
	host_done(&host);
}

static void every_truncation_and_every_flipped_bit_is_noticed(void **state)
{
	struct host host;
	struct fpwire m = { 0 };
	struct str message;
	struct err err;

	(void)state;
	host_init(&host, 4);
	message = encode(&host, &complete);
	for (size_t len = 0; len < message.len; len++) {
		char *exact = malloc(len + 1); /* so that the sanitizer sees an overrun */

		assert_non_null(exact);
		memcpy(exact + 1, message.data, len);
		assert_int_equal(fpwire_decode(&m, exact + 1, len, NULL, &err), -EINVAL);
		assert_int_equal(m.workers.cnt, 0);
		free(exact);
	}
	for (size_t bit = 0; bit < 8 * message.len; bit++) {
		message.data[bit / 8] ^= (char)(1 << bit % 8);
		assert_int_equal(fpwire_decode(&m, message.data, message.len, NULL, &err), -EINVAL);
		assert_int_equal(strncmp(err.text, "message:", 8), 0);
		message.data[bit / 8] ^= (char)(1 << bit % 8);
	}
	str_done(&message);
	host_done(&host);
	fpwire_done(&m);
}

static void seal(struct str *message)
{
	uint64_t hash = htole64(XXH3_64bits(message->data, message->len - sizeof(hash)));

	memcpy(message->data + message->len - sizeof(hash), &hash, sizeof(hash));
}

static void assert_sound(const struct fpwire *m)
{
	for (size_t row = 0; row < m->entry_of.cnt; row++) {
		uint16_t mu = m->columns[FPWIRE_MU].data[row];

		assert_true(m->entry_of.data[row] < m->entries.cnt);
		assert_true(m->columns[FPWIRE_SHARE].data[row] <= CODE16_TOP);
		assert_true(m->columns[FPWIRE_BETA].data[row] <= CODE16_ONE);
		assert_true(mu <= CODE16_ONE || mu == CODE16_ABSENT);
	}
}

static void a_well_sealed_lie_is_an_error_or_a_fingerprint(void **state)
{
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct err err;
	size_t refused = 0, taken = 0;

	(void)state;
	for (uint64_t seed = 0; seed < 40; seed++) {
		struct host host;
		struct str message;

		host_init(&host, seed);
		message = encode(&host, &complete);
		for (int k = 0; k < 100; k++) {
			size_t at = (size_t)test_below(&host.rng,
						       (int64_t)(message.len - sizeof(uint64_t)));
			char before = message.data[at];
			int ret;

			message.data[at] = (char)test_random(&host.rng);
			seal(&message);
			ret = fpwire_decode(&m, message.data, message.len, &names, &err);
			assert_true(ret == 0 || ret == -EINVAL);
			if (ret == 0)
				assert_sound(&m);
			for (size_t i = 0; ret == 0 && i < m.workers.cnt; i++) {
				struct fingerprint fp = rebuild(&m, i, &names);

				fingerprint_done(&fp);
			}
			refused += ret < 0;
			taken += ret == 0;
			message.data[at] = before;
		}
		str_done(&message);
		host_done(&host);
	}
	assert_true(refused > 100 && taken > 100);
	fpnames_done(&names);
	fpwire_done(&m);
}

static void other_versions_and_types_are_refused(void **state)
{
	struct host host;
	struct fpwire m = { 0 };
	struct str message;
	struct err err;

	(void)state;
	host_init(&host, 5);
	message = encode(&host, &complete);
	message.data[4] = FPWIRE_VERSION + 1;
	seal(&message);
	assert_int_equal(fpwire_decode(&m, message.data, message.len, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "message:4: expected version 2, found 3"));
	message.data[4] = FPWIRE_VERSION;
	message.data[5] = 9;
	seal(&message);
	assert_int_equal(fpwire_decode(&m, message.data, message.len, NULL, &err), -EINVAL);
	str_done(&message);
	host_done(&host);
	fpwire_done(&m);
}

static void a_number_has_one_spelling(void **state)
{
	struct host host;
	struct fpwire m = { 0 };
	struct str message, longer = { 0 };
	struct err err;

	(void)state;
	host_init(&host, 5);
	message = encode(&host, &complete);
	/* The number of the profile, 0, as two bytes. */
	str_append_len(&longer, message.data, 6);
	str_append_len(&longer, "\x80\0", 2);
	str_append_len(&longer, message.data + 7, message.len - 7);
	seal(&longer);
	assert_int_equal(fpwire_decode(&m, longer.data, longer.len, NULL, &err), -EINVAL);
	assert_non_null(strstr(err.text, "message:6: expected a number of at most 64 bits"));
	str_done(&message);
	str_done(&longer);
	host_done(&host);
	fpwire_done(&m);
}

/* Thousands of frames that share one long text: a few bytes each, and kilobytes in memory. */
static void a_small_message_cannot_fill_the_memory(void **state)
{
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct str message = { 0 };
	struct err err;

	(void)state;
	str_append_len(&message, "PTFW\2\2", 6);     /* names */
	str_append_len(&message, "\1\0\xff\x1f", 4); /* one text of 4095 bytes */
	for (int i = 0; i < 4095; i++)
		str_append_char(&message, 'x');
	str_append_len(&message, "\x88\x27", 2); /* 5000 frames */
	for (int i = 0; i < 5000; i++)
		str_append_len(&message, i > 0 ? "\0\1\0" : "\0\0\0", 3);
	str_append_len(&message, "12345678", 8);
	seal(&message);
	assert_int_equal(fpwire_decode(&m, message.data, message.len, &names, &err), -EINVAL);
	assert_non_null(strstr(err.text, "expected shorter names"));
	assert_int_equal(names.list.cnt, 0);
	str_done(&message);
	fpnames_done(&names);
	fpwire_done(&m);
}

static int use_everything(const struct host *host)
{
	struct fpwire m = { 0 };
	struct fpnames names = { 0 };
	struct str message = { 0 }, other = { 0 };
	struct fingerprint fp;
	struct err err;
	int ret = fpwire_encode(host->list, host->cnt, &nameless, &message, &err);

	if (ret == 0)
		ret = fpwire_decode(&m, message.data, message.len, &names, &err);
	if (ret == 0)
		ret = fpwire_ask(&names, &m, 1, &other);
	other.len = 0;
	if (ret > 0)
		ret = fpwire_encode_names(host->list, host->cnt, NULL, 0, &other, &err);
	str_done(&message);
	if (ret == 0)
		ret = fpwire_encode(host->list, host->cnt, &complete, &message, &err);
	if (ret == 0)
		ret = fpwire_decode(&m, message.data, message.len, &names, &err);
	if (ret == 0)
		ret = fpwire_rebuild(&m, 0, &names, &fp, NULL);
	if (ret == 0)
		fingerprint_done(&fp);
	str_done(&message);
	str_done(&other);
	fpnames_done(&names);
	fpwire_done(&m);
	return ret;
}

static void each_allocation_may_fail(void **state)
{
	struct host host;
	int ret = -ENOMEM;

	(void)state;
	host_init(&host, 3);
	for (int limit = 0; ret < 0 && limit < 5000; limit++) {
		allocations_left = limit;
		ret = use_everything(&host);
		allocations_left = -1;
		assert_true(ret == 0 || ret == -ENOMEM);
	}
	assert_int_equal(ret, 0);
	host_done(&host);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fingerprint_that_lies_is_refused),
		cmocka_unit_test(every_truncation_and_every_flipped_bit_is_noticed),
		cmocka_unit_test(a_well_sealed_lie_is_an_error_or_a_fingerprint),
		cmocka_unit_test(other_versions_and_types_are_refused),
		cmocka_unit_test(a_number_has_one_spelling),
		cmocka_unit_test(a_small_message_cannot_fill_the_memory),
		cmocka_unit_test(each_allocation_may_fail),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
