/* SPDX-License-Identifier: Apache-2.0 */
/* On SQLite; also on the server that PERFTRACKER_TEST_POSTGRES names (tests/store). */
#include "store/store.h"

#include "base/base.h"
#include "base/clock.h"
#include "store/schema.h"
#include "store/sqldatabase.h"
#include "store/storelist.h"
#include "store/storeprune.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define START_S 1700000000LL
#define START_NS (START_S * NSEC_PER_SEC)

static char folder[64], where[256];
static struct store *store;
static struct err err;

static void empty_server(void)
{
	static const char *const tables[] = { "meta",	  "job",	 "report", "finding",
					      "document", "fingerprint", "pace",   "event" };
	struct database *database;
	char sql[64];

	assert_int_equal(database_open(where, false, &database, &err), 0);
	for (size_t i = 0; i < ARRAY_SIZE(tables); i++) {
		(void)snprintf(sql, sizeof(sql), "DROP TABLE IF EXISTS %s", tables[i]);
		assert_int_equal(database_do(database, sql, &err), 0);
	}
	(void)database_close(database);
}

static int set_up(void **state)
{
	const char *server = getenv("PERFTRACKER_TEST_POSTGRES");

	(void)state;
	(void)snprintf(folder, sizeof(folder), "/tmp/store_test.XXXXXX");
	assert_non_null(mkdtemp(folder));
	if (server != NULL) {
		(void)snprintf(where, sizeof(where), "%s", server);
		empty_server();
	} else {
		(void)snprintf(where, sizeof(where), "%s/a/b/store.db", folder);
	}
	if (store_open(where, &store, &err) < 0)
		fail_msg("%s", err.text);
	return 0;
}

static int tear_down(void **state)
{
	char command[96];

	(void)state;
	store = store_close(store);
	(void)snprintf(command, sizeof(command), "rm -rf %s", folder);
	return system(command);
}

static void put_job(const char *key, const char *name, int64_t started_ns)
{
	struct store_job job = { .key = key,
				 .name = name,
				 .host = "node1",
				 .owner = "ann",
				 .started_ns = started_ns,
				 .seen_ns = started_ns,
				 .state = "watching" };

	assert_int_equal(store_put_job(store, &job, &err), 0);
}

struct seen {
	size_t cnt;
	char keys[8][STORE_KEY_BYTES];
	struct store_job job; /* texts are not kept */
	struct store_pace pace[512];
	char text[256];
};

static int see_job(void *arg, const struct store_job *job)
{
	struct seen *seen = arg;

	(void)snprintf(seen->keys[seen->cnt++], STORE_KEY_BYTES, "%s", job->key);
	(void)snprintf(seen->text, sizeof(seen->text), "%s|%s|%s|%s", job->name, job->state,
		       job->verdict != NULL ? job->verdict : "-",
		       job->command != NULL ? job->command : "-");
	seen->job = *job;
	return 0;
}

static void a_job_is_added_once_and_brought_up_to_date(void **state)
{
	struct store_job job = { .key = "0123456789ab",
				 .name = "train",
				 .command = "python t.py",
				 .started_ns = START_NS,
				 .state = "watching",
				 .workers = 4 };
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(store_put_job(store, &job, &err), 0);
	job.ended_ns = START_NS + 5;
	job.state = "ended";
	job.exit_status = 1;
	job.verdict = "abnormal";
	job.lost = 7;
	assert_int_equal(store_put_job(store, &job, &err), 0);
	assert_int_equal(store_list_jobs(store, 0, see_job, &seen, &err), 0);
	assert_int_equal(seen.cnt, 1);
	assert_string_equal(seen.text, "train|ended|abnormal|python t.py");
	assert_int_equal(seen.job.exit_status, 1);
	assert_int_equal(seen.job.workers, 4);
	assert_int_equal(seen.job.lost, 7);
	assert_true(seen.job.ended_ns == START_NS + 5);
}

/* A command may hold any bytes: the job is kept on each kind of database. */
static void a_text_that_is_not_utf8_is_kept(void **state)
{
	struct store_job job = { .key = "0123456789ab",
				 .name = "train",
				 .command = "x \xff y",
				 .started_ns = START_NS,
				 .state = "watching" };
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(store_put_job(store, &job, &err), 0);
	assert_int_equal(store_list_jobs(store, 0, see_job, &seen, &err), 0);
	assert_int_equal(seen.cnt, 1);
	assert_memory_equal(seen.text, "train|watching|-|x ", 19);
}

static void a_job_is_found_by_its_key_its_beginning_or_its_name(void **state)
{
	char key[STORE_KEY_BYTES];

	(void)state;
	put_job("aaaa00000001", "train", START_NS);
	put_job("aaaa00000002", "train", START_NS + 1);
	put_job("bbbb00000003", "aaaa", START_NS + 2);
	assert_int_equal(store_find_job(store, "aaaa00000001", key, &err), 0);
	assert_string_equal(key, "aaaa00000001");
	assert_int_equal(store_find_job(store, "b", key, &err), 0);
	assert_string_equal(key, "bbbb00000003");
	assert_int_equal(store_find_job(store, "train", key, &err), 0);
	assert_string_equal(key, "aaaa00000002"); /* the newest of the name */
	assert_int_equal(store_find_job(store, "aaaa", key, &err), -ENOTUNIQ);
	assert_int_equal(store_find_job(store, "other", key, &err), -ENOENT);
	assert_non_null(strstr(err.text, "perftracker jobs"));
	assert_int_equal(store_find_job(store, "", key, &err), -ENOENT);
}

static int see_pace(void *arg, const struct store_pace *pace)
{
	struct seen *seen = arg;

	seen->pace[seen->cnt++] = *pace;
	return 0;
}

/* Against a sum over the seconds by hand: minutes hold what their seconds hold. */
static void tiers_of_pace_hold_the_same_times(void **state)
{
	struct seen seconds = { 0 }, minutes = { 0 }, hours = { 0 };
	int64_t sum_ns = 0, least_ns = INT64_MAX, most_ns = 0;

	(void)state;
	srand(7);
	for (int i = 0; i < 150; i++) {
		int64_t a_ns = 1 + rand() % 1000, b_ns = a_ns + rand() % 1000;
		struct store_pace pace = { .at_s = START_S + i,
					   .step = (uint64_t)i,
					   .cnt = 2,
					   .sum_ns = a_ns + b_ns,
					   .min_ns = a_ns,
					   .max_ns = b_ns };

		sum_ns += pace.sum_ns;
		least_ns = MIN(least_ns, a_ns);
		most_ns = MAX(most_ns, b_ns);
		assert_int_equal(store_add_pace(store, "j", &pace, &err), 0);
	}
	assert_int_equal(store_list_pace(store, "j", 1, see_pace, &seconds, &err), 0);
	assert_int_equal(store_list_pace(store, "j", 60, see_pace, &minutes, &err), 0);
	assert_int_equal(store_list_pace(store, "j", 3600, see_pace, &hours, &err), 0);
	assert_int_equal(seconds.cnt, 150);
	assert_int_equal(hours.cnt, 1);
	assert_int_equal(hours.pace[0].cnt, 300);
	assert_int_equal(hours.pace[0].sum_ns, sum_ns);
	assert_int_equal(hours.pace[0].min_ns, least_ns);
	assert_int_equal(hours.pace[0].max_ns, most_ns);
	assert_int_equal(hours.pace[0].step, 149);
	for (size_t m = 0; m < minutes.cnt; m++) {
		int64_t minute_ns = 0;

		assert_int_equal(minutes.pace[m].at_s % 60, 0);
		for (size_t s = 0; s < seconds.cnt; s++) {
			if (seconds.pace[s].at_s / 60 == minutes.pace[m].at_s / 60)
				minute_ns += seconds.pace[s].sum_ns;
		}
		assert_int_equal(minutes.pace[m].sum_ns, minute_ns);
	}
}

static int see_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct seen *seen = arg;

	(void)snprintf(seen->text, sizeof(seen->text), "%llu %s %.1f %zu",
		       (unsigned long long)report->number, report->verdict, report->iteration_ms,
		       finding_cnt);
	seen->cnt++;
	return 0;
}

static int see_finding(void *arg, const struct store_finding *finding)
{
	struct seen *seen = arg;

	(void)snprintf(seen->text, sizeof(seen->text), "%s %s %s %.1f", finding->id,
		       finding->function, finding->ranks, finding->gain_ms);
	seen->cnt++;
	return 0;
}

static int see_bytes(void *arg, int rank, const void *data, size_t len)
{
	struct seen *seen = arg;

	(void)snprintf(seen->text, sizeof(seen->text), "%d %zu %.20s", rank, len,
		       len > 0 ? (const char *)data : "");
	seen->cnt++;
	return 0;
}

static void put_report(const char *job, uint64_t number, int64_t made_ns)
{
	struct store_report report = { .job = job,
				       .number = number,
				       .made_ns = made_ns,
				       .why = "slowdown",
				       .verdict = "abnormal",
				       .reason = "rank 2",
				       .iteration_ms = 33.5 };
	struct store_finding finding = { .id = "PT-102",
					 .cause = "slow-data-loading",
					 .title = "t",
					 .function = "receive",
					 .ranks = "2",
					 .gain_ms = 82.1,
					 .confidence = "high" };

	assert_int_equal(store_put_report(store, &report, &finding, 1, &err), 0);
	assert_int_equal(store_put_document(store, job, number, "json", "{\"a\":1}", 7, &err), 0);
	assert_int_equal(store_put_fingerprint(store, job, number, 3, "\0\1\2", 3, &err), 0);
}

static void a_report_comes_back_with_findings_and_documents(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	put_report("j", 4, START_NS);
	put_report("j", 4, START_NS); /* sent again: the same row */
	assert_int_equal(store_list_reports(store, "j", see_report, &seen, &err), 0);
	assert_int_equal(seen.cnt, 1);
	assert_string_equal(seen.text, "4 abnormal 33.5 1");
	assert_int_equal(store_list_findings(store, "j", 4, see_finding, &seen, &err), 0);
	assert_string_equal(seen.text, "PT-102 receive 2 82.1");
	assert_int_equal(store_get_document(store, "j", 4, "json", see_bytes, &seen, &err), 0);
	assert_string_equal(seen.text, "-1 7 {\"a\":1}");
	assert_int_equal(store_list_fingerprints(store, "j", 4, see_bytes, &seen, &err), 0);
	assert_memory_equal(seen.text, "3 3 ", 4);
	assert_int_equal(store_get_document(store, "j", 5, "json", see_bytes, &seen, &err),
			 -ENOENT);
	assert_non_null(strstr(err.text, "perftracker history j"));
}

static int see_event(void *arg, const struct store_event *event)
{
	struct seen *seen = arg;

	(void)snprintf(seen->text + strlen(seen->text), 64, "%s=%s;", event->kind, event->text);
	seen->cnt++;
	return 0;
}

static void an_event_that_is_sent_twice_is_kept_once(void **state)
{
	struct store_event event = { .kind = "slow", .text = "10 -> 30 ms", .place = 1 };
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(store_put_event(store, "j", &event, &err), 0);
	assert_int_equal(store_put_event(store, "j", &event, &err), 0);
	event = (struct store_event){ .kind = "order", .text = "", .place = 2 };
	assert_int_equal(store_put_event(store, "j", &event, &err), 0);
	assert_int_equal(store_list_events(store, "j", see_event, &seen, &err), 0);
	assert_string_equal(seen.text, "slow=10 -> 30 ms;order=;");
}

static void what_is_not_committed_is_not_there(void **state)
{
	struct seen seen = { 0 };

	(void)state;
	assert_int_equal(store_begin(store, &err), 0);
	put_job("aaaa00000001", "train", START_NS);
	store_rollback(store);
	assert_int_equal(store_begin(store, &err), 0);
	put_job("aaaa00000002", "train", START_NS);
	assert_int_equal(store_commit(store, &err), 0);
	assert_int_equal(store_list_jobs(store, 0, see_job, &seen, &err), 0);
	assert_int_equal(seen.cnt, 1);
	assert_string_equal(seen.keys[0], "aaaa00000002");
}

static size_t document_cnt(const char *job)
{
	struct seen seen = { 0 };

	(void)!store_get_document(store, job, 1, "json", see_bytes, &seen, &err);
	return seen.cnt;
}

static void age_removes_data_and_keeps_findings(void **state)
{
	struct store_pace pace = {
		.at_s = START_S, .cnt = 1, .sum_ns = 1, .min_ns = 1, .max_ns = 1
	};
	const int64_t later_ns = START_NS + 100 * 86400LL * NSEC_PER_SEC;
	struct seen seen = { 0 };

	(void)state;
	put_job("j", "train", later_ns);
	put_report("j", 1, START_NS);
	put_report("j", 2, later_ns);
	assert_int_equal(store_add_pace(store, "j", &pace, &err), 0);
	if (store_prune(store, &store_default_limits, later_ns, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(document_cnt("j"), 0);
	assert_int_equal(store_get_document(store, "j", 2, "json", see_bytes, &seen, &err), 0);
	assert_int_equal(store_list_findings(store, "j", 1, see_finding, &seen, &err), 0);
	assert_int_equal(seen.cnt, 2);
	seen.cnt = 0;
	assert_int_equal(store_list_pace(store, "j", 1, see_pace, &seen, &err), 0);
	assert_int_equal(store_list_pace(store, "j", 60, see_pace, &seen, &err), 0);
	assert_int_equal(seen.cnt, 0);
	assert_int_equal(store_list_pace(store, "j", 3600, see_pace, &seen, &err), 0);
	assert_int_equal(seen.cnt, 1);
}

/* The oldest jobs lose their data first, and the file shrinks. */
static void bytes_are_bounded(void **state)
{
	struct store_limits limits = store_default_limits;
	_cleanup_free_ char *noise = malloc(1 << 20);
	char key[STORE_KEY_BYTES];

	(void)state;
	if (getenv("PERFTRACKER_TEST_POSTGRES") != NULL)
		skip();
	assert_non_null(noise);
	for (size_t i = 0; i < 1 << 20; i++)
		noise[i] = (char)rand();
	for (int i = 0; i < 6; i++) {
		(void)snprintf(key, sizeof(key), "job%d", i);
		put_job(key, "train", START_NS + i);
		assert_int_equal(store_put_document(store, key, 1, "json", noise, 1 << 20, &err),
				 0);
	}
	limits.bytes_max = 3 << 20;
	assert_int_equal(store_prune(store, &limits, START_NS, &err), 0);
	assert_int_equal(document_cnt("job0"), 0);
	assert_int_equal(document_cnt("job3"), 0);
	assert_int_equal(document_cnt("job4"), 1);
	assert_int_equal(document_cnt("job5"), 1);
}

static void a_newer_store_is_refused(void **state)
{
	struct database *database;
	struct store *other = NULL;

	(void)state;
	assert_int_equal(database_open(where, false, &database, &err), 0);
	assert_int_equal(database_do(database, "UPDATE meta SET schema_version = 99", &err), 0);
	(void)database_close(database);
	assert_int_equal(store_open(where, &other, &err), -EPROTO);
	assert_int_equal(store_open_to_read(where, &other, &err), -EPROTO);
	assert_non_null(strstr(err.text, "version 99"));
	assert_null(other);
}

static void what_is_no_store_is_refused(void **state)
{
	struct store *other = NULL;
	char path[128];
	int fd;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/none.db", folder);
	assert_int_equal(store_open_to_read(path, &other, &err), -ENOENT);
	fd = open(path, O_CREAT | O_WRONLY, 0644);
	assert_int_equal(write(fd, "this is a text and not a database at all, is it?", 48), 48);
	(void)close(fd);
	assert_int_equal(store_open_to_read(path, &other, &err), -EUCLEAN);
	assert_int_equal(store_open(path, &other, &err), -EUCLEAN);
	assert_non_null(strstr(err.text, "none.db"));
}

/* A file that is cut or changed anywhere: an error, or rows, and never a crash. */
static void a_damaged_file_is_an_error(void **state)
{
	static char bytes[1 << 17], changed[1 << 17];
	char path[128];
	FILE *file;
	size_t len;

	(void)state;
	if (getenv("PERFTRACKER_TEST_POSTGRES") != NULL)
		skip();
	put_job("j", "train", START_NS);
	put_report("j", 1, START_NS);
	store = store_close(store); /* merges the journal */
	file = fopen(where, "rb");
	len = fread(bytes, 1, sizeof(bytes), file);
	(void)fclose(file);
	assert_in_range(len, 4096, sizeof(bytes) - 1);
	(void)snprintf(path, sizeof(path), "%s/damaged.db", folder);
	for (int i = 0; i < 300; i++) {
		size_t cut = i % 3 == 0 ? (size_t)rand() % len : len;
		struct seen seen = { 0 };

		memcpy(changed, bytes, len);
		for (int k = 0; k < 8; k++)
			changed[(size_t)rand() % len] ^= (char)(1 << rand() % 8);
		file = fopen(path, "wb");
		assert_int_equal(fwrite(changed, 1, cut, file), cut);
		(void)fclose(file);
		if (store_open_to_read(path, &store, &err) < 0)
			continue;
		(void)!store_list_jobs(store, 0, see_job, &seen, &err);
		(void)!store_list_reports(store, "j", see_report, &seen, &err);
		(void)!store_get_document(store, "j", 1, "json", see_bytes, &seen, &err);
		store = store_close(store);
	}
}

static void keys_are_hex_and_differ(void **state)
{
	char a[STORE_KEY_BYTES], b[STORE_KEY_BYTES];

	(void)state;
	assert_int_equal(store_draw_key(a), 0);
	assert_int_equal(store_draw_key(b), 0);
	assert_int_equal(strspn(a, "0123456789abcdef"), 12);
	assert_string_not_equal(a, b);
}

static void the_place_is_what_the_user_says_first(void **state)
{
	char place[256];

	(void)state;
	assert_int_equal(setenv("HOME", "/h", 1), 0);
	assert_int_equal(unsetenv("XDG_STATE_HOME"), 0);
	assert_int_equal(unsetenv("PERFTRACKER_STORE"), 0);
	store_place(NULL, place, sizeof(place));
	assert_string_equal(place, "/h/.local/state/perftracker/store.db");
	assert_int_equal(setenv("XDG_STATE_HOME", "/s", 1), 0);
	store_place(NULL, place, sizeof(place));
	assert_string_equal(place, "/s/perftracker/store.db");
	assert_int_equal(setenv("PERFTRACKER_STORE", "none", 1), 0);
	store_place(NULL, place, sizeof(place));
	assert_string_equal(place, "");
	store_place("x.db", place, sizeof(place));
	assert_string_equal(place, "x.db");
}

#define in_store(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

static int count_job(void *arg, const struct store_job *job)
{
	struct seen *seen = arg;

	(void)snprintf(seen->text + strlen(seen->text), sizeof(seen->text) - strlen(seen->text),
		       "%s ", job->key);
	return 0;
}

static int count_window(void *arg, uint64_t number, size_t fingerprint_cnt)
{
	struct seen *seen = arg;

	seen->cnt = seen->cnt * 100 + (size_t)number * 10 + fingerprint_cnt;
	return 0;
}

static int see_named_finding(void *arg, const struct store_named_finding *finding)
{
	struct seen *seen = arg;

	(void)snprintf(seen->text + strlen(seen->text), sizeof(seen->text) - strlen(seen->text),
		       "%s/%d %s %s %.0f of %.0f;", finding->job, (int)finding->number,
		       finding->cause, finding->function_key, finding->gain_ms,
		       finding->iteration_ms);
	return 0;
}

static void put_named_finding(const char *job, uint64_t number, const char *key)
{
	const struct store_report report = { .job = job,
					     .number = number,
					     .made_ns = START_NS + (int64_t)number,
					     .iteration_ms = 71 };
	const struct store_finding finding = { .cause = "gpu-slow",
					       .function_key = key,
					       .gain_ms = 5 };

	assert_int_equal(store_put_report(store, &report, &finding, 1, &err), 0);
}

static void earlier_runs_of_a_name_are_found_with_their_findings(void **state)
{
	const struct store_event slower = { .kind = "slower", .text = "2x", .place = 1 };
	struct seen seen = { 0 };

	(void)state;
	put_job("aaaaaaaaaaaa", "train", START_NS);
	put_job("bbbbbbbbbbbb", "train", START_NS + 10);
	put_job("cccccccccccc", "other", START_NS + 10);
	put_job("dddddddddddd", "train", START_NS + 30);
	assert_int_equal(
		store_list_jobs_named(store, "train", START_NS + 30, 9, count_job, &seen, &err), 0);
	assert_string_equal(seen.text, "bbbbbbbbbbbb aaaaaaaaaaaa ");
	seen.text[0] = '\0';
	/* Each ended when it began: that is within the time, or not. */
	assert_int_equal(store_list_jobs_beside(store, "node1", "bbbbbbbbbbbb", START_NS + 5,
						START_NS + 20, count_job, &seen, &err),
			 0);
	assert_string_equal(seen.text, "cccccccccccc ");
	seen.text[0] = '\0';
	put_named_finding("aaaaaaaaaaaa", 1, "k1");
	put_named_finding("aaaaaaaaaaaa", 2, "k2");
	put_named_finding("cccccccccccc", 3, "k3");
	assert_int_equal(store_list_named_findings(store, "train", START_NS + 5, 9,
						   see_named_finding, &seen, &err),
			 0);
	assert_string_equal(seen.text, "aaaaaaaaaaaa/2 gpu-slow k2 5 of 71;"
				       "aaaaaaaaaaaa/1 gpu-slow k1 5 of 71;");
	seen.text[0] = '\0';
	assert_int_equal(store_put_event(store, "dddddddddddd", &slower, &err), 0);
	assert_int_equal(store_list_jobs_with_event(store, "slower", count_job, &seen, &err), 0);
	assert_string_equal(seen.text, "dddddddddddd ");
	for (int rank = 0; rank < 2; rank++)
		assert_int_equal(
			store_put_fingerprint(store, "aaaaaaaaaaaa", 1, rank, "x", 1, &err), 0);
	assert_int_equal(store_put_fingerprint(store, "aaaaaaaaaaaa", 4, 0, "x", 1, &err), 0);
	assert_int_equal(store_list_windows(store, "aaaaaaaaaaaa", count_window, &seen, &err), 0);
	assert_int_equal(seen.cnt, 1241); /* window 1 has 2, window 4 has 1 */
}

static void pruning_says_what_goes_and_a_dry_run_removes_nothing(void **state)
{
	struct store_limits limits = store_default_limits;
	struct store_size sizes[2];
	int64_t now_ns = START_NS + 100 * 86400LL * NSEC_PER_SEC;

	(void)state;
	put_job("aaaaaaaaaaaa", "train", START_NS);
	put_job("bbbbbbbbbbbb", "train", now_ns);
	put_named_finding("aaaaaaaaaaaa", 1, "k1");
	assert_int_equal(store_put_document(store, "aaaaaaaaaaaa", 1, "json", "{}", 2, &err), 0);
	limits.job_s = 50 * 86400;
	for (int dry = 1; dry >= 0; dry--) {
		assert_int_equal(store_prune_counted(store, &limits, now_ns, dry != 0, sizes, &err),
				 0);
		assert_int_equal(sizes[0].job_cnt, 2);
		assert_int_equal(sizes[1].job_cnt, 1);
		assert_int_equal(sizes[0].finding_cnt + sizes[0].document_cnt, 2);
		assert_int_equal(sizes[1].finding_cnt + sizes[1].document_cnt, 0);
	}
	assert_int_equal(store_prune_counted(store, &limits, now_ns, true, sizes, &err), 0);
	assert_int_equal(sizes[0].job_cnt, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_store(a_job_is_added_once_and_brought_up_to_date),
		in_store(a_text_that_is_not_utf8_is_kept),
		in_store(a_job_is_found_by_its_key_its_beginning_or_its_name),
		in_store(tiers_of_pace_hold_the_same_times),
		in_store(a_report_comes_back_with_findings_and_documents),
		in_store(an_event_that_is_sent_twice_is_kept_once),
		in_store(what_is_not_committed_is_not_there),
		in_store(age_removes_data_and_keeps_findings),
		in_store(bytes_are_bounded),
		in_store(a_newer_store_is_refused),
		in_store(what_is_no_store_is_refused),
		in_store(a_damaged_file_is_an_error),
		cmocka_unit_test(keys_are_hex_and_differ),
		cmocka_unit_test(the_place_is_what_the_user_says_first),
		cmocka_unit_test_setup_teardown(
			earlier_runs_of_a_name_are_found_with_their_findings, set_up, tear_down),
		cmocka_unit_test_setup_teardown(
			pruning_says_what_goes_and_a_dry_run_removes_nothing, set_up, tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
