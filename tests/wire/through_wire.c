/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Linked in front of localize() (ld --wrap), so that the tests of src/localize run on
 * fingerprints that went over the wire: hosts of a few workers, sent without names,
 * heard in reverse, names asked for. Their report must accuse the same workers as that of the
 * original fingerprints, for the same causes. The tests judge the original.
 */
#include "center/wire/fpwire.h"
#include "localize/localize.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define HOST_WORKERS 3u

int __real_localize(const struct fingerprint *const *fps, size_t cnt,
		    const struct localize_options *options, struct report *ret, struct err *err);
int __wrap_localize(const struct fingerprint *const *fps, size_t cnt,
		    const struct localize_options *options, struct report *ret, struct err *err);

/* The center: what it heard, and what became of it. */
struct center {
	struct fpnames names;
	struct fpwire *messages;
	size_t message_cnt;
	struct fingerprint *fps;
	const struct fingerprint **list;
	size_t cnt;
};

static void center_done(struct center *c)
{
	for (size_t i = 0; i < c->cnt; i++)
		fingerprint_done(&c->fps[i]);
	for (size_t i = 0; i < c->message_cnt; i++)
		fpwire_done(&c->messages[i]);
	fpnames_done(&c->names);
	free(c->messages);
	free(c->fps);
	free(c->list);
}

static int hear_names(struct center *c, const struct fingerprint *const *fps, size_t cnt,
		      const struct fpwire *m, struct err *err)
{
	struct str question = { 0 }, answer = { 0 };
	struct fpwire asked = { 0 }, answered = { 0 };
	int ret = fpwire_ask(&c->names, m, 1, &question);

	if (ret > 0)
		ret = fpwire_decode(&asked, question.data, question.len, NULL, err);
	if (ret == 0)
		ret = fpwire_encode_names(fps, cnt, asked.asked.data, asked.asked.cnt, &answer,
					  err);
	if (ret == 0)
		ret = fpwire_decode(&answered, answer.data, answer.len, &c->names, err);
	str_done(&question);
	str_done(&answer);
	fpwire_done(&asked);
	fpwire_done(&answered);
	return ret;
}

static int hear_host(struct center *c, const struct fingerprint *const *fps, size_t cnt,
		     struct fpwire *m, struct err *err)
{
	struct fpwire_options options = { .profile = 1, .detail = FPWIRE_LEADS };
	struct str message = { 0 };
	int ret = fpwire_encode(fps, cnt, &options, &message, err);

	if (ret == 0)
		ret = fpwire_decode(m, message.data, message.len, &c->names, err);
	if (ret == 0)
		ret = hear_names(c, fps, cnt, m, err);
	str_done(&message);
	return ret;
}

static int hear_all(struct center *c, const struct fingerprint *const *fps, size_t cnt,
		    struct err *err)
{
	size_t message_cnt = (cnt + HOST_WORKERS - 1) / HOST_WORKERS;
	int ret = 0;

	c->messages = calloc(message_cnt + 1, sizeof(*c->messages));
	c->fps = calloc(cnt + 1, sizeof(*c->fps));
	c->list = calloc(cnt + 1, sizeof(*c->list));
	if (c->messages == NULL || c->fps == NULL || c->list == NULL)
		return -ENOMEM;
	c->message_cnt = message_cnt;
	for (size_t i = message_cnt; i > 0 && ret == 0; i--) {
		size_t first = (i - 1) * HOST_WORKERS;

		ret = hear_host(c, fps + first, MIN(cnt - first, (size_t)HOST_WORKERS),
				&c->messages[i - 1], err);
	}
	for (size_t i = 0; i < cnt && ret == 0; i++) {
		ret = fpwire_rebuild(&c->messages[i / HOST_WORKERS], i % HOST_WORKERS, &c->names,
				     &c->fps[i], NULL);
		c->list[i] = &c->fps[i];
		c->cnt += ret == 0;
	}
	return ret;
}

static void assert_same_ranks(const int *a, size_t a_cnt, const int *b, size_t b_cnt)
{
	assert_int_equal(a_cnt, b_cnt);
	for (size_t i = 0; i < a_cnt; i++)
		assert_int_equal(a[i], b[i]);
}

static void assert_alike(const struct report *a, const struct report *b)
{
	assert_int_equal(a->verdict, b->verdict);
	assert_int_equal(a->finding_cnt, b->finding_cnt);
	for (size_t i = 0; i < a->finding_cnt; i++) {
		const struct finding *f = &a->findings[i], *g = &b->findings[i];

		assert_string_equal(f->id, g->id);
		assert_string_equal(f->key, g->key);
		assert_string_equal(f->name, g->name);
		assert_int_equal(f->class, g->class);
		assert_int_equal(f->confidence, g->confidence);
		assert_int_equal(f->all_workers, g->all_workers);
		assert_same_ranks(f->ranks, f->rank_cnt, g->ranks, g->rank_cnt);
		assert_same_ranks(f->victims, f->victim_cnt, g->victims, g->victim_cnt);
		assert_int_equal(f->stack_cnt, g->stack_cnt);
		for (size_t k = 0; k < f->stack_cnt; k++)
			assert_string_equal(f->stack[k], g->stack[k]);
	}
}

int __wrap_localize(const struct fingerprint *const *fps, size_t cnt,
		    const struct localize_options *options, struct report *ret, struct err *err)
{
	struct center center = { 0 };
	struct report original, wired;
	int result = __real_localize(fps, cnt, options, &original, err);

	if (result < 0)
		return result;
	result = hear_all(&center, fps, cnt, err);
	if (result == -EINVAL)
		fail_msg("%s", err->text);
	if (result == 0)
		result = __real_localize(center.list, cnt, options, &wired, err);
	center_done(&center);
	if (result < 0) {
		report_done(&original);
		return result;
	}
	assert_alike(&original, &wired);
	report_done(&wired);
	*ret = original;
	return 0;
}
