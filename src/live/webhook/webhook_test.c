/* SPDX-License-Identifier: Apache-2.0 */
/* The file of webhooks and the bodies; sending is tests/live/webhook_test.py. */
#include "live/webhook/webhook.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct webhookfile file;
static struct err err;

static int parse(const char *text)
{
	err.text[0] = '\0';
	return webhookfile_parse("hooks", text, strlen(text), &file, &err);
}

static void each_url_begins_another_webhook(void **state)
{
	(void)state;
	assert_int_equal(parse("# c\n\nurl https://a.example/x?secret\n  format\tslack \r\n"
			       "url http://127.0.0.1:9/y\nwhen all\ntoken-file /t"),
			 0);
	assert_int_equal(file.cnt, 2);
	assert_int_equal(file.hooks[0].format, WEBHOOK_SLACK);
	assert_false(file.hooks[0].all);
	assert_string_equal(file.hooks[0].url, "https://a.example/x?secret");
	assert_string_equal(file.hooks[0].place, "https://a.example");
	assert_true(file.hooks[1].all);
	assert_int_equal(file.hooks[1].format, WEBHOOK_JSON);
	assert_string_equal(file.hooks[1].token_path, "/t");
}

static void what_is_wrong_is_named_with_its_line(void **state)
{
	static const char *const rows[][2] = {
		{ "", "hooks: expected lines such as `url https://...`, found none" },
		{ "format slack\n", "hooks:1: expected url first, found 'format'" },
		{ "\nurl ftp://x/",
		  "hooks:2: expected an http:// or https:// URL without a user or a "
		  "quote, found 'another scheme'" },
		{ "url https:///x",
		  "hooks:1: expected an http:// or https:// URL without a user or a "
		  "quote, found 'something else'" },
		{ "url https://a:b@c/",
		  "hooks:1: expected an http:// or https:// URL without a user or "
		  "a quote, found 'something else'" },
		{ "url https://a\nformat xml",
		  "hooks:2: expected json, slack or alertmanager, found "
		  "'xml'" },
		{ "url https://a\nwhen never", "hooks:2: expected bad or all, found 'never'" },
		{ "url https://a\ncolor red",
		  "hooks:2: expected url, format, token-file or when, found "
		  "'color'" },
		{ "url https://a\nwhen", "hooks:2: expected a word and a value, found 'when'" },
		{ "url http://a.example\ntoken-file /t", "hooks:2: expected an https:// URL, for a "
							 "token, found 'http://'" },
		{ "url http://localhost.evil/\ntoken-file /t",
		  "hooks:2: expected an https:// URL, for a "
		  "token, found 'http://'" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		assert_true(parse(rows[i][0]) < 0);
		assert_string_equal(err.text, rows[i][1]);
		/* The log must not have what may be a secret. */
		assert_null(strstr(err.text, "a:b@"));
	}
}

static void more_webhooks_than_are_kept_are_an_error(void **state)
{
	struct str text = { 0 };

	(void)state;
	for (unsigned i = 0; i <= WEBHOOKFILE_HOOKS_MAX; i++)
		str_append(&text, "url https://a/\n");
	assert_int_equal(parse(str_borrow(&text)), -E2BIG);
	str_done(&text);
}

static void write_file(const char *path, const char *text, mode_t mode)
{
	FILE *out = fopen(path, "we");

	assert_non_null(out);
	assert_true(fputs(text, out) >= 0);
	assert_int_equal(fclose(out), 0);
	assert_int_equal(chmod(path, mode), 0);
}

static void a_file_that_others_can_read_is_refused_and_a_token_is_read(void **state)
{
	char folder[] = "/tmp/webhook_test.XXXXXX", path[64], token[64], text[256];
	struct webhookfile *read = NULL;

	(void)state;
	assert_non_null(mkdtemp(folder));
	(void)snprintf(path, sizeof(path), "%s/hooks", folder);
	(void)snprintf(token, sizeof(token), "%s/token", folder);
	(void)snprintf(text, sizeof(text), "url https://a/\ntoken-file %s\n", token);
	write_file(path, text, 0644);
	assert_int_equal(webhookfile_read(path, &read, &err), -EPERM);
	write_file(path, text, 0600);
	assert_int_equal(webhookfile_read(path, &read, &err), -ENOENT);
	write_file(token, "two words", 0600);
	assert_int_equal(webhookfile_read(path, &read, &err), -EINVAL);
	write_file(token, "secret\n", 0600);
	assert_int_equal(webhookfile_read(path, &read, &err), 0);
	assert_string_equal(read->hooks[0].token, "secret");
	free(read);
	assert_int_equal(unlink(path) + unlink(token) + rmdir(folder), 0);
	assert_int_equal(webhookfile_read(path, &read, &err), -ENOENT);
}

static const struct webhookbody_about about = { .job = "gpt <x>",
						.key = "3fa9d1e0b2c4",
						.host = "node1",
						.folder = "/out",
						.number = 2,
						.made_ns = 1700000000LL * NSEC_PER_SEC };

static json_t *body(enum webhook_format format)
{
	const struct finding finding = { .id = "PT-101",
					 .cause = "host-stall",
					 .title = "rank 1: \"stall\" & <b>",
					 .advice = "look <there>",
					 .gain_ms_per_iteration = 12.5 };
	const struct report report = { .verdict = VERDICT_SLOW,
				       .reason = "1.0 -> 2.0 ms",
				       .iteration_ms = 2,
				       .findings = &finding,
				       .finding_cnt = 1 };
	struct str out = { 0 };
	json_t *ret;

	assert_int_equal(webhookbody_print(format, &report, &about, &out), 0);
	ret = json_loadb(str_borrow(&out), out.len, 0, NULL);
	assert_non_null(ret);
	str_done(&out);
	return ret;
}

static void the_own_form_has_the_finding(void **state)
{
	json_t *root = body(WEBHOOK_JSON);
	const json_t *finding = json_array_get(json_object_get(root, "findings"), 0);

	(void)state;
	assert_string_equal(json_string_value(json_object_get(root, "report")), "3fa9d1e0b2c4/2");
	assert_string_equal(json_string_value(json_object_get(root, "made")),
			    "2023-11-14T22:13:20Z");
	assert_string_equal(json_string_value(json_object_get(root, "sentence")), "1.0 -> 2.0 ms");
	assert_string_equal(json_string_value(json_object_get(finding, "title")),
			    "rank 1: \"stall\" & <b>");
	json_decref(root);
}

static void slack_gets_no_markup_of_the_job(void **state)
{
	json_t *root = body(WEBHOOK_SLACK);
	const char *text = json_string_value(json_object_get(root, "text"));

	(void)state;
	assert_non_null(strstr(text, "job gpt &lt;x&gt; on node1 is slow: 1.0 -&gt; 2.0 ms"));
	assert_non_null(strstr(text, "Advice: look &lt;there&gt;"));
	assert_null(strpbrk(text, "<>"));
	json_decref(root);
}

static void alertmanager_gets_one_alert_a_cause(void **state)
{
	json_t *root = body(WEBHOOK_ALERTMANAGER);
	const json_t *labels = json_object_get(json_array_get(root, 0), "labels");

	(void)state;
	assert_int_equal(json_array_size(root), 1);
	assert_string_equal(json_string_value(json_object_get(labels, "alertname")), "PerfTracker");
	assert_string_equal(json_string_value(json_object_get(labels, "cause")), "host-stall");
	assert_string_equal(json_string_value(json_object_get(labels, "severity")), "warning");
	json_decref(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(each_url_begins_another_webhook),
		cmocka_unit_test(what_is_wrong_is_named_with_its_line),
		cmocka_unit_test(more_webhooks_than_are_kept_are_an_error),
		cmocka_unit_test(a_file_that_others_can_read_is_refused_and_a_token_is_read),
		cmocka_unit_test(the_own_form_has_the_finding),
		cmocka_unit_test(slack_gets_no_markup_of_the_job),
		cmocka_unit_test(alertmanager_gets_one_alert_a_cause),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
