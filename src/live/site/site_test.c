/* SPDX-License-Identifier: Apache-2.0 */
#include "live/site/site.h"

#include "base/test_alloc.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct fixture {
	struct site site;
	struct site_problems problems;
};

static int open_site(void **state)
{
	static struct fixture f;

	f = (struct fixture){ .problems = { .cnt = 0 } };
	*state = &f;
	return site_init(&f.site);
}

static int close_site(void **state)
{
	struct fixture *f = *state;

	site_done(&f->site);
	site_problems_done(&f->problems);
	return 0;
}

static void take(struct fixture *f, const char *text)
{
	site_take_text(&f->site, "site.yaml", text, strlen(text), &f->problems);
}

static void assert_lines(const struct fixture *f, const char *lines)
{
	assert_string_equal(str_borrow(&f->problems.lines), lines);
}

static void a_file_sets_keys_and_the_rest_has_defaults(void **state)
{
	struct fixture *f = *state;
	const struct site_values *v = &f->site.values;

	take(f, "# our site\n"
		"cluster: gpu-east\n"
		"bus:\n"
		"  url: [tls://a:4222, tls://b:4222]\n"
		"  user: h1\n"
		"  password_file: /etc/pt/password\n"
		"hub: {max_jobs: 7, store: none}\n"
		"jobs:\n"
		"  enable: all\n"
		"  audit: off\n"
		"hostd:\n");
	site_check(&f->site, &f->problems);
	assert_lines(f, "");
	assert_string_equal(v->cluster, "gpu-east");
	assert_string_equal(v->bus_url, "tls://a:4222,tls://b:4222");
	assert_int_equal(v->hub_max_jobs, 7);
	assert_string_equal(v->hub_store, "none");
	assert_int_equal(v->jobs_enable, SITE_ENABLE_ALL);
	assert_false(v->jobs_audit);
	assert_int_equal(v->hostd_max_jobs, 64);
	assert_string_equal(v->hostd_socket, SITE_DEFAULT_SOCKET);
}

/* A page that others reach without tokens is refused before the hub starts. */
static void a_page_needs_a_store_and_tokens_where_others_reach_it(void **state)
{
	static const struct {
		const char *hub, *said; /* NULL: it is right */
	} rows[] = {
		{ "{ui: 8790}", NULL },
		{ "{ui: \"unix:/run/pt.sock\"}", NULL },
		{ "{ui: \"0.0.0.0:80\", ui_token_file: /etc/pt/tokens}", NULL },
		{ "{ui: \"0.0.0.0:80\"}", "hub.ui: expected hub.ui_token_file" },
		{ "{ui: \"[::]:80\"}", "hub.ui: expected hub.ui_token_file" },
		{ "{ui: 8790, store: none}", "hub.ui: expected a store" },
		{ "{ui: \"a.b:80\"}", "hub.ui: " },
		{ "{ui_token_file: /etc/pt/tokens}", "hub.ui_token_file: expected hub.ui" },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++) {
		struct site_problems problems = { .cnt = 0 };
		struct site site;
		char text[256];

		assert_int_equal(site_init(&site), 0);
		(void)snprintf(text, sizeof(text),
			       "host: h1\nbus: {url: \"nats://127.0.0.1:4222\"}\nhub: %s\n",
			       rows[i].hub);
		site_take_text(&site, "site.yaml", text, strlen(text), &problems);
		site_check(&site, &problems);
		if (rows[i].said == NULL
			    ? problems.cnt != 0
			    : strstr(str_borrow(&problems.lines), rows[i].said) == NULL)
			fail_msg("%s: %s", rows[i].hub, str_borrow(&problems.lines));
		site_problems_done(&problems);
		site_done(&site);
	}
}

static void each_problem_has_a_place_and_says_what_was_expected(void **state)
{
	struct fixture *f = *state;

	take(f, "cluster: a\n"
		"buss:\n"
		"  url: x\n"
		"hostd:\n"
		"  max_jobs: lots\n"
		"  sokket: /run/x\n"
		"  folder: here\n"
		"jobs: {enable: some, enable: all}\n"
		"hub: 3\n"
		"bus: {insecure: maybe}\n");
	assert_int_equal(f->problems.cnt, 8);
	assert_lines(
		f,
		"site.yaml:2:1: expected a key of the configuration, found 'buss': docs/fleet.md "
		"lists them\n"
		"site.yaml:5:13: hostd.max_jobs: expected a number from 1 to 1024, found 'lots'\n"
		"site.yaml:6:3: expected a key of the configuration, found 'hostd.sokket': did you "
		"mean 'hostd.socket'?\n"
		"site.yaml:7:11: hostd.folder: expected an absolute path, found 'here'\n"
		"site.yaml:8:16: jobs.enable: expected one of environment|all, found 'some'\n"
		"site.yaml:8:22: jobs.enable: expected it once, found it again\n"
		"site.yaml:9:6: hub: expected the keys of this section, indented, found a value\n"
		"site.yaml:10:17: bus.insecure: expected yes or no, found 'maybe'\n");
	assert_int_equal(f->site.values.hostd_max_jobs, 64);
}

static void what_is_no_yaml_or_more_than_one_mapping_is_refused(void **state)
{
	static const char *const texts[][2] = {
		{ "bus: {url: [1, 2\nb: 3\n", "expected YAML: " },
		{ "- cluster\n",
		  "site.yaml:1:1: expected one mapping of keys, found another value\n" },
		{ "cluster: a\n---\ncluster: b\n", "found another document\n" },
		{ "cluster: &x a\nhost: *x\n",
		  "site.yaml:2:7: host: expected one value, found an alias\n" },
		{ "cluster: [[[[[a]]]]]\n", "cluster: expected one value, found a list\n" },
		{ "[a, b]: c\n", "expected a key, found a list\n" },
		{ "\tcluster: a\n", "expected YAML: " },
		{ "cluster: \"a\\0b\"\n", "found a text with a zero byte\n" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct fixture *f = *state;

		take(f, texts[i][0]);
		assert_non_null(strstr(str_borrow(&f->problems.lines), texts[i][1]));
		assert_int_equal(f->problems.cnt, 1);
		(void)close_site(state);
		assert_int_equal(open_site(state), 0);
	}
}

static void an_empty_file_sets_nothing(void **state)
{
	struct fixture *f = *state;

	take(f, "# nothing\n");
	take(f, "");
	assert_lines(f, "");
}

static void many_problems_are_counted_and_the_first_are_shown(void **state)
{
	struct fixture *f = *state;
	struct str text = { 0 };
	size_t lines = 0;

	for (int i = 0; i < 500; i++)
		str_printf(&text, "zzz%d: 1\n", i);
	take(f, str_borrow(&text));
	str_done(&text);
	assert_int_equal(f->problems.cnt, 500);
	for (const char *c = str_borrow(&f->problems.lines); *c != '\0'; c++)
		lines += *c == '\n';
	assert_int_equal(lines, SITE_PROBLEMS_MAX);
}

static const char *environment(const char *name)
{
	if (strcmp(name, "PERFTRACKER_BUS_URL") == 0)
		return "nats://127.0.0.1:1";
	return strcmp(name, "PERFTRACKER_HUB_MAX_JOBS") == 0 ? "9" : NULL;
}

static void the_command_line_is_over_the_environment_and_that_over_the_file(void **state)
{
	struct fixture *f = *state;
	struct str text = { 0 };

	take(f, "bus: {url: 'tls://file:1'}\nhub: {max_jobs: 1}\ncluster: east\n");
	site_take_environment(&f->site, environment, &f->problems);
	site_take_option(&f->site, "hub.max_jobs=11", &f->problems);
	assert_string_equal(f->site.values.bus_url, "nats://127.0.0.1:1");
	assert_int_equal(f->site.values.hub_max_jobs, 11);
	site_describe(&f->site, &text);
	assert_non_null(strstr(str_borrow(&text), "site.yaml:3\n"));
	assert_non_null(strstr(str_borrow(&text), "PERFTRACKER_BUS_URL\n"));
	assert_non_null(strstr(str_borrow(&text), "--set\n"));
	str_done(&text);
	site_take_option(&f->site, "hub.max_job=11", &f->problems);
	site_take_option(&f->site, "hub", &f->problems);
	assert_lines(f, "--set: expected a key of the configuration, found 'hub.max_job': did you "
			"mean 'hub.max_jobs'?\n"
			"--set: expected KEY=VALUE, found 'hub'\n");
}

static void what_belongs_together_is_checked(void **state)
{
	static const char *const texts[][2] = {
		{ "cluster: a\n", "bus.url: expected the address" },
		{ "bus: {url: 'nats://far:4222'}\n", "site.yaml:1:12: bus.url: expected tls://" },
		{ "bus: {url: 'http://a'}\n", "site.yaml:1:12: bus.url: " },
		{ "bus: {url: 'tls://a', user: x}\n", "bus.user: expected bus.password_file" },
		{ "bus: {url: 'tls://a', certificate: /x}\n", "bus.certificate: expected bus.key" },
		{ "bus: {url: 'tls://a', nkey_file: /x}\n", "expected bus.nkey_seed_file" },
		{ "bus: {url: 'tls://a', nkey_file: /x, nkey_seed_file: /y, credentials: /z}\n",
		  "expected one of bus.user, bus.credentials and bus.nkey_file, found 2" },
		{ "bus: {url: 'tls://a'}\norders: {key: hub}\n",
		  "site.yaml:2:15: orders.key: expected the public key of an NKey" },
		{ "bus: {url: 'tls://a'}\norders: {seed_file: /x}\n",
		  "expected orders.key beside it" },
		{ "bus: {url: 'tls://a'}\nhost: a.b\n", "site.yaml:2:7: host: expected 1 to 24" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct fixture *f = *state;

		site_take_option(&f->site, "host=h1", &f->problems);
		take(f, texts[i][0]);
		site_check(&f->site, &f->problems);
		if (strstr(str_borrow(&f->problems.lines), texts[i][1]) == NULL)
			fail_msg("%s: %s", texts[i][0], str_borrow(&f->problems.lines));
		assert_int_equal(f->problems.cnt, 1);
		(void)close_site(state);
		assert_int_equal(open_site(state), 0);
	}
}

static void a_missing_file_is_named(void **state)
{
	struct fixture *f = *state;

	site_take_file(&f->site, "/nowhere/site.yaml", &f->problems);
	assert_lines(f, "/nowhere/site.yaml: No such file or directory: name the site's file with "
			"--config\n");
}

static void a_login_has_the_password_of_its_file(void **state)
{
	struct fixture *f = *state;
	char path[] = "/tmp/site_test.XXXXXX", pair[64];
	int fd = mkstemp(path);
	struct bus_login login;
	struct err err = { "" };

	assert_true(fd >= 0);
	take(f, "bus: {url: 'tls://a', user: h1}\n");
	(void)snprintf(pair, sizeof(pair), "bus.password_file=%s", path);
	site_take_option(&f->site, pair, &f->problems);
	assert_int_equal(site_login(&f->site, &login, &err), -22);
	assert_non_null(strstr(err.text, "expected the password, found an empty file"));
	assert_int_equal(write(fd, "sesame\n", 7), 7);
	assert_int_equal(site_login(&f->site, &login, &err), 0);
	assert_string_equal(login.password, "sesame");
	assert_string_equal(login.user, "h1");
	assert_null(login.ca_file);
	(void)close(fd);
	(void)unlink(path);
	assert_int_equal(site_login(&f->site, &login, &err), -2);
}

/* The pair of RFC 8032, 7.1, test 1, as deploy/nats/make-users writes it. */
#define ORDERS_SEED "SUAJ2YNRTXX72WTAXKCEV5ES5QWMIRCJYVUXWMTJDFYDXLADDSXH6YALCA"
#define ORDERS_KEY "UDLVVGABQKYQVN6VJP7NHSLEA45A5YLS6PNKMIZFV4BBU2HXA5IRUVAL"
#define OTHER_KEY "UATHPFHHSBHDIALPVABIJAXPG7FKMCRTEST6GP42YKIPAON7A6ZF72HG"

static void a_hub_needs_the_seed_that_its_hosts_expect(void **state)
{
	struct fixture *f = *state;
	char path[] = "/tmp/site_test.XXXXXX", pair[80];
	int fd = mkstemp(path);
	struct seal *seal;
	struct err err = { "" };

	assert_true(fd >= 0 && write(fd, ORDERS_SEED "\n", 59) == 59);
	assert_int_equal(site_seal(&f->site, true, &seal, &err), 0);
	assert_null(seal);
	site_take_option(&f->site, "orders.key=" ORDERS_KEY, &f->problems);
	assert_int_equal(site_seal(&f->site, false, &seal, &err), 0);
	seal = seal_close(seal);
	assert_int_equal(site_seal(&f->site, true, &seal, &err), -22);
	assert_non_null(strstr(err.text, "orders.seed_file: expected the seed of orders.key"));
	(void)snprintf(pair, sizeof(pair), "orders.seed_file=%s", path);
	site_take_option(&f->site, pair, &f->problems);
	assert_int_equal(site_seal(&f->site, true, &seal, &err), 0);
	seal = seal_close(seal);
	site_take_option(&f->site, "orders.key=" OTHER_KEY, &f->problems);
	assert_int_equal(site_seal(&f->site, true, &seal, &err), -22);
	assert_non_null(strstr(err.text, "found that of another key"));
	assert_int_equal(f->problems.cnt, 0);
	(void)close(fd);
	(void)unlink(path);
}

static void without_memory_nothing_is_taken(void **state)
{
	static const char text[] = "cluster: east\nbus: {url: [tls://a, tls://b]}\n";
	int error = -1;

	for (int n = 0; error != 0; n++) {
		struct fixture *f = *state;

		(void)close_site(state);
		*f = (struct fixture){ .problems = { .cnt = 0 } };
		allocations_left = n;
		error = site_init(&f->site);
		if (error == 0)
			take(f, text);
		allocations_left = -1;
		if (error == 0 && f->problems.cnt > 0)
			error = -1;
	}
	assert_string_equal(((struct fixture *)*state)->site.values.cluster, "east");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_site, close_site)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_file_sets_keys_and_the_rest_has_defaults),
		cmocka_unit_test(a_page_needs_a_store_and_tokens_where_others_reach_it),
		TEST(each_problem_has_a_place_and_says_what_was_expected),
		TEST(what_is_no_yaml_or_more_than_one_mapping_is_refused),
		TEST(an_empty_file_sets_nothing),
		TEST(many_problems_are_counted_and_the_first_are_shown),
		TEST(the_command_line_is_over_the_environment_and_that_over_the_file),
		TEST(what_belongs_together_is_checked),
		TEST(a_missing_file_is_named),
		TEST(a_login_has_the_password_of_its_file),
		TEST(a_hub_needs_the_seed_that_its_hosts_expect),
		TEST(without_memory_nothing_is_taken),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
