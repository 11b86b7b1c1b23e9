/* SPDX-License-Identifier: Apache-2.0 */
/* Jobs of a store page by page, reports in folders, accused hosts, and the feed, on real files. */
#include "serve/archive.h"

#include "base/clock.h"
#include "base/file.h"
#include "serve/feed.h"
#include "serve/hostledger.h"

#include <errno.h>
#include <setjmp.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define JOB_CNT 1203 /* more than two batches */
#define START_NS (1700000000 * NSEC_PER_SEC)

static char folder[64], place[128];
static struct archive archive;
static struct err err;

static int set_up(void **state)
{
	static const char *const folders[] = { folder };

	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/archive_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	(void)snprintf(place, sizeof(place), "%s/store.db", folder);
	memset(&archive, 0, sizeof(archive));
	(void)snprintf(archive.place, sizeof(archive.place), "%s", place);
	archive.catalog = catalog_new(folders, 1);
	assert_non_null(archive.catalog);
	return 0;
}

static int tear_down(void **state)
{
	char command[128];

	(void)state;
	archive_done(&archive);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void write_text(const char *name, const char *text)
{
	char path[256];

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	assert_int_equal(file_replace(path, text, strlen(text), 0644), 0);
}

static void put_job(struct store *store, int i, int64_t seen_ns)
{
	char key[STORE_KEY_BYTES], name[32];

	(void)snprintf(key, sizeof(key), "%012x", (unsigned)i * 2654435761u);
	(void)snprintf(name, sizeof(name), i % 7 == 0 ? "GPT-%d" : "resnet-%d", i);
	assert_int_equal(store_put_job(store,
				       &(struct store_job){ .key = key,
							    .name = name,
							    .host = "a",
							    .owner = "b",
							    .folder = "/nowhere",
							    .started_ns = START_NS + i / 3,
							    .seen_ns = seen_ns,
							    .ended_ns = START_NS + i,
							    .state = "ended" },
				       &err),
			 0);
}

static void make_store(void)
{
	struct store *store = NULL;

	assert_int_equal(store_open(place, &store, &err), 0);
	assert_int_equal(store_begin(store, &err), 0);
	for (int i = 0; i < JOB_CNT; i++)
		put_job(store, i, START_NS);
	assert_int_equal(store_commit(store, &err), 0);
	(void)store_close(store);
}

struct seen {
	size_t cnt;
	struct store_job_place list[JOB_CNT + 1];
};

static int take(void *arg, const struct store_job *job)
{
	struct seen *seen = arg;

	assert_true(seen->cnt < JOB_CNT);
	seen->list[seen->cnt].started_ns = job->started_ns;
	(void)snprintf(seen->list[seen->cnt].key, STORE_KEY_BYTES, "%s", job->key);
	seen->cnt++;
	return 0;
}

static int take_filtered(void *arg, const struct store_job *job)
{
	return strncmp(job->name, "GPT", 3) == 0 ? take(arg, job) : 0;
}

/* Pages of any size, joined, are the whole list: the store's own list is the twin. */
static void check_pages(const char *text, size_t limit, store_job_fn twin)
{
	static struct seen paged, whole;
	struct archive_filter filter = { .text = text,
					 .after = { .started_ns = INT64_MAX },
					 .limit = limit };
	bool more = true;

	paged.cnt = whole.cnt = 0;
	while (more) {
		struct store_job_place last = filter.after;
		char cursor[48];

		assert_int_equal(
			archive_list_jobs(&archive, &filter, take, &paged, &more, &last, &err), 0);
		archive_print_place(&last, cursor);
		if (more)
			assert_int_equal(archive_parse_place(cursor, &filter.after), 0);
	}
	assert_int_equal(store_list_jobs(archive.store, 0, twin, &whole, &err), 0);
	assert_int_equal(paged.cnt, whole.cnt);
	assert_true(whole.cnt > 0);
	for (size_t i = 0; i < whole.cnt; i++)
		assert_string_equal(paged.list[i].key, whole.list[i].key);
}

static void pages_joined_are_the_whole_list(void **state)
{
	struct archive_filter filter = { .after = { .started_ns = INT64_MAX }, .limit = 10 };
	struct store_job_place last;
	static struct seen seen;
	bool more;

	(void)state;
	assert_int_equal(archive_list_jobs(&archive, &filter, take, &seen, &more, &last, &err),
			 -ENOENT);
	make_store();
	check_pages(NULL, 7, take);
	check_pages(NULL, 500, take);
	check_pages(NULL, 1000, take);
	check_pages(NULL, JOB_CNT, take);
	check_pages("gpt", 10, take_filtered);
	filter.state = "run";
	assert_int_equal(archive_list_jobs(&archive, &filter, take, &seen, &more, &last, &err), 0);
	assert_int_equal(seen.cnt, 0);
	assert_false(more);
}

static void wrong_cursors_and_ids_are_refused(void **state)
{
	static const char *const places[] = {
		"",	 "1",	"1-", "-abc", "1-xyz", "1-abcdef01234567", "9223372036854775808-a",
		"1-a-b", " 1-a"
	};
	static const char *const ids[] = { "",
					   "-1",
					   "abc",
					   "abc-",
					   "abc-0",
					   "abc-x",
					   "ABC-1",
					   "abc-1x",
					   "abc-99999999999999999999",
					   "abcdef0123456-1" };
	struct store_job_place at;
	char job[STORE_KEY_BYTES];
	uint64_t number;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(places); i++) {
		if (archive_parse_place(places[i], &at) != -EINVAL)
			fail_msg("%s is taken", places[i]);
	}
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++) {
		if (archive_parse_id(ids[i], job, &number) != -EINVAL)
			fail_msg("%s is taken", ids[i]);
	}
	assert_int_equal(archive_parse_id("abc-end", job, &number), 0);
	assert_int_equal(number, 0);
	assert_int_equal(archive_parse_id("abc-12", job, &number), 0);
	assert_int_equal(number, 12);
	assert_string_equal(job, "abc");
}

#define REPORT(name, host)                                                                         \
	"{\"schema\": \"perftracker.report.v2\", \"verdict\": \"abnormal\", \"reason\": \"\","     \
	"\"job\": {\"id\": \"" name "\", \"world_size\": 4, \"iteration_ms\": 10.0},"              \
	"\"findings\": [{\"title\": \"T\", \"cause\": \"c\", \"ranks\": \"1\", \"hosts\": \"" host \
	"\", \"gain_ms_per_iteration\": 5.5, \"gain_pct\": 55.0, \"advice\": \"A\"}]}"

static void folders_are_read_and_copies_left_out(void **state)
{
	const struct catalog_report *report;
	int64_t now_ns =
		clock_mono_ns() + 1000 * NSEC_PER_SEC; /* so that only the test refreshes */
	struct str text = { 0 };

	(void)state;
	write_text("report-1.json", REPORT("gpt", "node3"));
	write_text("report.json", REPORT("gpt", "node3"));
	write_text("report-1.html", "<p>");
	write_text("trace.json", "{\"traceEvents\": []}");
	write_text("broken.json", "{\"schema\": \"perftracker.report.v2\", ");
	assert_int_equal(catalog_refresh(archive.catalog, now_ns), 0);
	report = catalog_borrow(archive.catalog, 0);
	assert_non_null(report);
	assert_non_null(strstr(report->path, "/report-1.json"));
	assert_string_equal(report->title, "T");
	assert_true(report->gain_ms == 5.5);
	assert_non_null(report->html);
	assert_null(catalog_borrow(archive.catalog, 1));
	assert_int_equal(catalog_left_out(archive.catalog), 1);
	assert_ptr_equal(catalog_find(archive.catalog, report->id), report);
	assert_int_equal(archive_get_report(&archive, report->id, "html", &text, &err), 0);
	assert_string_equal(str_borrow(&text), "<p>");
	str_done(&text);
	assert_int_equal(archive_get_report(&archive, "f000000000000", "json", &text, &err),
			 -ENOENT);
	write_text("report-1.json", REPORT("changed", "node3"));
	assert_int_equal(catalog_refresh(archive.catalog, now_ns + NSEC_PER_SEC),
			 0); /* too early */
	assert_string_equal(catalog_borrow(archive.catalog, 0)->job, "gpt");
	assert_int_equal(catalog_refresh(archive.catalog, now_ns + 3 * NSEC_PER_SEC), 0);
	assert_non_null(catalog_borrow(archive.catalog, 1));
}

static void put_report(struct store *store, int job, uint64_t number, const char *hosts)
{
	char key[STORE_KEY_BYTES];

	(void)snprintf(key, sizeof(key), "%012x", (unsigned)job * 2654435761u);
	assert_int_equal(
		store_put_report(store,
				 &(struct store_report){ .job = key,
							 .number = number,
							 .made_ns = START_NS + (int64_t)number,
							 .why = "slowdown",
							 .verdict = "abnormal",
							 .reason = "" },
				 &(struct store_finding){ .title = "T", .hosts = hosts }, 1, &err),
		0);
}

static void hosts_are_counted_by_jobs(void **state)
{
	struct hostledger ledger = { 0 };
	struct store *store = NULL;

	(void)state;
	assert_int_equal(store_open(place, &store, &err), 0);
	for (int i = 0; i < 3; i++)
		put_job(store, i, START_NS);
	put_report(store, 0, 1, "node3,node4");
	put_report(store, 0, 2, "node4");
	put_report(store, 1, 1, "node3");
	put_report(store, 2, 1, "");
	(void)store_close(store);
	write_text("report.json", REPORT("gpt", "node3"));
	assert_int_equal(hostledger_read(&archive, &ledger, &err), 0);
	assert_int_equal(ledger.hosts.cnt, 2);
	assert_string_equal(ledger.hosts.data[0].name, "node3");
	assert_int_equal(ledger.hosts.data[0].job_cnt, 3);
	assert_int_equal(ledger.hosts.data[0].finding_cnt, 3);
	assert_string_equal(ledger.hosts.data[1].name, "node4");
	assert_int_equal(ledger.hosts.data[1].job_cnt, 1);
	assert_int_equal(ledger.hosts.data[1].finding_cnt, 2);
	assert_non_null(strstr(ledger.hosts.data[1].accusations.data[0].report, "-2"));
	hostledger_done(&ledger);
}

/* --- the feed --- */

static void news_is_what_changed_since_the_first_look(void **state)
{
	struct feed *feed;
	struct store *store = NULL;
	struct str out = { 0 };
	uint64_t after;
	bool gap;

	(void)state;
	assert_int_equal(store_open(place, &store, &err), 0);
	put_job(store, 0, START_NS);
	feed = feed_new(place, START_NS);
	assert_false(feed_look(feed, START_NS));
	after = feed_begin(feed, NULL, &gap);
	assert_false(gap);
	assert_false(feed_look(feed, START_NS));
	put_job(store, 0, START_NS + 1);
	put_report(store, 0, 1, "");
	assert_int_equal(store_put_event(store, "000000000000",
					 &(struct store_event){ .kind = "slow", .text = "<b>" },
					 &err),
			 0);
	assert_true(feed_look(feed, START_NS));
	feed_follow(feed, &after, 1 << 20, &out);
	assert_non_null(strstr(str_borrow(&out), "event: job\ndata: {\"job\":\"000000000000\""));
	assert_non_null(strstr(str_borrow(&out), "event: event\n"));
	assert_non_null(strstr(str_borrow(&out), "event: report\n"));
	assert_false(feed_look(feed, START_NS));
	str_done(&out);
	(void)feed_free(feed);
	(void)store_close(store);
}

/* Makes a table unreadable, and readable again. */
static void execute(const char *statement)
{
	sqlite3 *base = NULL;

	assert_int_equal(sqlite3_open(place, &base), SQLITE_OK);
	assert_int_equal(sqlite3_exec(base, statement, NULL, NULL, NULL), SQLITE_OK);
	(void)sqlite3_close(base);
}

static void news_that_could_not_be_read_comes_with_the_next_look(void **state)
{
	struct feed *feed = feed_new(place, START_NS);
	struct store *store = NULL;
	struct str out = { 0 };
	uint64_t after;
	bool gap;

	(void)state;
	assert_int_equal(store_open(place, &store, &err), 0);
	assert_false(feed_look(feed, START_NS));
	after = feed_begin(feed, NULL, &gap);
	put_job(store, 0, START_NS);
	put_report(store, 0, 1, "");
	(void)store_close(store);
	execute("ALTER TABLE report RENAME TO elsewhere");
	assert_true(feed_look(feed, START_NS)); /* of the job */
	execute("ALTER TABLE elsewhere RENAME TO report");
	assert_true(feed_look(feed, START_NS));
	feed_follow(feed, &after, 1 << 20, &out);
	assert_non_null(strstr(str_borrow(&out), "event: report\n"));
	str_done(&out);
	(void)feed_free(feed);
}

static void a_client_that_comes_back_gets_what_it_missed(void **state)
{
	struct feed *feed = feed_new("", 7 * NSEC_PER_MSEC);
	struct str out = { 0 };
	uint64_t after;
	bool gap;

	(void)state;
	feed_push(feed, "a", "1");
	feed_push(feed, "a", "2");
	after = feed_begin(feed, "7.1", &gap);
	assert_false(gap);
	feed_follow(feed, &after, 1 << 20, &out);
	assert_string_equal(str_borrow(&out), "id: 7.2\nevent: a\ndata: 2\n\n");
	str_done(&out);
	(void)feed_begin(feed, "6.1", &gap); /* of an earlier server */
	assert_true(gap);
	(void)feed_begin(feed, "7.9", &gap); /* of the future */
	assert_true(gap);
	(void)feed_begin(feed, "x", &gap);
	assert_true(gap);
	for (unsigned i = 0; i < FEED_RING_MAX; i++)
		feed_push(feed, "b", "{}");
	(void)feed_begin(feed, "7.1", &gap); /* too old */
	assert_true(gap);
	after = 1;
	out = (struct str){ 0 };
	feed_follow(feed, &after, 100, &out);
	assert_memory_equal(str_borrow(&out), "event: gap\n", 11);
	assert_true(out.len < 400);
	str_done(&out);
	(void)feed_free(feed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)
		TEST(pages_joined_are_the_whole_list),
		TEST(wrong_cursors_and_ids_are_refused),
		TEST(folders_are_read_and_copies_left_out),
		TEST(hosts_are_counted_by_jobs),
		TEST(news_is_what_changed_since_the_first_look),
		TEST(news_that_could_not_be_read_comes_with_the_next_look),
		TEST(a_client_that_comes_back_gets_what_it_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
