/* SPDX-License-Identifier: Apache-2.0 */
#include "read/dumps/dumps.h"

#include "base/test_alloc.h"
#include "read/dumps/dumps_parts.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct dumps dumps;
static struct err err;

static int open_dumps(void **state)
{
	(void)state;
	dumps_init(&dumps);
	err = (struct err){ "" };
	return 0;
}

static int close_dumps(void **state)
{
	(void)state;
	dumps_done(&dumps);
	return 0;
}

static int parse(const char *path, const char *text)
{
	return dumps_parse(path, text, strlen(text), &dumps, &err);
}

static const char pyspy[] = "Process 100: python train.py\nPython v3.11.2 (/usr/bin/python3.11)\n\n"
			    "Thread 99 (active): \"Thread-1\"\n    run (a.py:1)\n"
			    "Thread 100 (idle+gil): \"MainThread\"\n    wait (libc.so.6)\n"
			    "    read (data.py:12)\n        Arguments:\n            n: 3\n"
			    "    <module> (train (1).py:30)\n";

static void a_text_of_py_spy_has_the_main_thread_first(void **state)
{
	const struct stacks_process *process;

	(void)state;
	assert_int_equal(parse("/x/rank3.txt", pyspy), 0);
	assert_int_equal(dumps.records.cnt, 1);
	assert_int_equal(dumps.records.data[0].rank, 3);
	process = dumps.records.data[0].stacks;
	assert_int_equal(process->thread_cnt, 2);
	assert_int_equal(process->threads[0].tid, 100);
	assert_int_equal(process->threads[0].state, 'S');
	assert_int_equal(process->threads[0].gil, STACKS_GIL_HOLDS);
	assert_int_equal(process->threads[0].frame_cnt, 3);
	assert_int_equal(process->threads[0].frames[0].kind, STACKS_NATIVE);
	assert_string_equal(process->threads[0].frames[1].function, "read");
	assert_int_equal(process->threads[0].frames[1].line, 12);
	assert_string_equal(process->threads[0].frames[2].file, "1).py");
}

static void a_text_of_gdb_has_names_without_arguments(void **state)
{
	const struct stacks_thread *thread;

	(void)state;
	assert_int_equal(parse("gdb.2",
			       "[New LWP 7]\nThread 1 (Thread 0x7f (LWP 77) \"python\"):\n"
			       "#0  0x0 in std::map<int (*)(int), long>::at (this=0x1) from /l.so\n"
			       "#1  main (argc=1) at m.c:3\n#2  0x1 in ?? ()\n"
			       "  File \"train.py\", line 9, in step (x=1)\n"),
			 0);
	thread = &dumps.records.data[0].stacks->threads[0];
	assert_int_equal(dumps.records.data[0].rank, 2);
	assert_int_equal(thread->tid, 77);
	assert_string_equal(thread->name, "python");
	assert_int_equal(thread->frame_cnt, 4);
	assert_string_equal(thread->frames[0].function, "std::map<int (*)(int), long>::at");
	assert_string_equal(thread->frames[0].file, "/l.so");
	assert_string_equal(thread->frames[1].function, "main");
	assert_null(thread->frames[2].function);
	assert_string_equal(thread->frames[3].function, "step");
}

static void ranks_come_from_contents_then_names_then_order(void **state)
{
	static const struct {
		const char *path;
		int rank;
	} rows[] = { { "/a/_dump_12", 12 },  { "nccl_trace_rank_3", 3 }, { "rank7.2026.json", 7 },
		     { "/job9/stacks", -1 }, { "host2-rank-05.txt", 5 }, { "99999999999", -1 } };

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(rows); i++)
		assert_int_equal(dumpname_rank(rows[i].path), rows[i].rank);
	assert_int_equal(parse("b", pyspy), 0);
	assert_int_equal(parse("rank1", pyspy), 0);
	dumps_join(&dumps);
	assert_int_equal(dumps.records.cnt, 2);
	assert_int_equal(dumps.records.data[0].rank, 1);
	assert_int_equal(dumps.records.data[1].rank, 2);
	assert_int_equal(dumps.records.data[1].stacks->rank, 2);
}

static void files_of_one_rank_become_one_record(void **state)
{
	static const char nccl[] =
		"{\"version\": \"2.9\", \"pg_config\": {}, \"entries\": ["
		"{\"process_group\": [\"0\", \"dp\"], \"collective_seq_id\": 5,"
		"\"profiling_name\": \"nccl:all_reduce\", \"state\": \"scheduled\","
		"\"input_sizes\": [[2, 3]]}]}";

	(void)state;
	assert_int_equal(parse("nccl_rank4.json", nccl), 0);
	assert_int_equal(parse("pyspy_rank4.txt", pyspy), 0);
	dumps_join(&dumps);
	assert_int_equal(dumps.records.cnt, 1);
	assert_int_equal(dumps.records.data[0].entered_cnt, 1);
	assert_string_equal(dumps.records.data[0].entered[0].group, "0 (dp)");
	assert_int_equal(dumps.records.data[0].entered[0].elements, 6);
	assert_int_equal(dumps.records.data[0].entered[0].last_finished, 4);
	assert_non_null(dumps.records.data[0].stacks);
	assert_int_equal(dumps.records.data[0].pid, 100);
}

#define TRANSFERS                                                                                        \
	"{\"version\": \"2.9\", \"pg_config\": {\"7\": {\"desc\": \"pipe\", \"ranks\": \"[1, 4, 8]\"}}," \
	"\"entries\": ["
#define TRANSFER(number, name, state)                                                            \
	"{\"process_group\": [\"7\", \"pipe\"], \"collective_seq_id\": 2, \"is_p2p\": true,"     \
	"\"p2p_seq_id\": " number ", \"profiling_name\": \"nccl:" name "\", \"state\": \"" state \
	"\", \"time_created_ns\": " number "}"

static void a_transfer_that_is_open_has_both_ranks(void **state)
{
	const struct hang_entered *entered;

	(void)state;
	assert_int_equal(
		parse("rank1", TRANSFERS TRANSFER("5", "send 0->2", "completed") "," TRANSFER(
				       "6", "recv 0<-1", "scheduled") "]}"),
		0);
	assert_int_equal(
		parse("rank4", TRANSFERS TRANSFER("9", "send 1->2", "scheduled") "," TRANSFER(
				       "10", "recv 1<-0", "scheduled") "]}"),
		0);
	dumps_join(&dumps);
	entered = &dumps.records.data[0].entered[0];
	assert_true(entered->p2p);
	assert_int_equal(entered->open_from, 4);
	assert_int_equal(entered->open_to, 1);
	entered = &dumps.records.data[1].entered[0];
	assert_int_equal(entered->open_from, 4); /* the first that is open */
	assert_int_equal(entered->open_to, 8);
}

/* Their states are those of the whole. */
static void transfers_of_a_batch_have_no_ranks(void **state)
{
	static const char *const entries[] = {
		TRANSFER("5", "send 0->2", "scheduled") "," TRANSFER("5", "recv 0<-2", "scheduled"),
		TRANSFER("5", "send 0->2", "scheduled") "," TRANSFER("5", "coalesced", "completed"),
		TRANSFER("5", "send 0->9", "scheduled"), /* no such member */
		TRANSFER("5", "send 0", "scheduled"),
		TRANSFER("5", "send 0->", "scheduled"),
		TRANSFER("5", "send 0<-1", "scheduled"),
		TRANSFER("5", "send 99999999999999999999->1", "scheduled"),
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(entries); i++) {
		char path[16], text[900];

		(void)snprintf(path, sizeof(path), "rank%zu", i);
		(void)snprintf(text, sizeof(text), TRANSFERS "%s]}", entries[i]);
		assert_int_equal(parse(path, text), 0);
		assert_int_equal(dumps.records.data[i].entered_cnt >= 1, 1);
		assert_int_equal(dumps.records.data[i].entered[0].open_from,
				 dumps.records.data[i].entered[0].open_to);
	}
}

/* Members never end in a dump; the first two are over with their batch. */
static void a_batch_that_is_over_leaves_nothing_open(void **state)
{
	const struct hang_entered *entered;

	(void)state;
	assert_int_equal(
		parse("rank1", TRANSFERS TRANSFER("4", "send 0->2", "scheduled") "," TRANSFER(
				       "4", "coalesced", "completed") "]}"),
		0);
	assert_int_equal(
		parse("rank4",
		      TRANSFERS TRANSFER("4", "send 1->2", "scheduled") "," TRANSFER(
			      "4", "coalesced",
			      "completed") "," TRANSFER("6", "recv 1<-0",
							"scheduled") "," TRANSFER("6", "coalesced",
										  "started") "]}"),
		0);
	entered = &dumps.records.data[0].entered[0];
	assert_true(entered->ended);
	assert_null(entered->open_name);
	entered = &dumps.records.data[1].entered[0];
	assert_false(entered->ended);
	assert_string_equal(entered->open_name, "coalesced");
	assert_int_equal(entered->open, 6);
}

static enum dump_kind kind(const char *text)
{
	return dumps_kind(text, strlen(text));
}

static void traces_with_words_of_dumps_are_no_dumps(void **state)
{
	static const char trace[] =
		"{\n  \"schemaVersion\": 1,\n  \"deviceProperties\": [{\"id\": 0}],\n"
		"  \"distributedInfo\": {\"backend\": \"nccl\", \"rank\": 0, \"pg_config\":"
		" [{\"pg_name\": \"0\", \"ranks\": [0, 1]}], \"pg_status\": {}},\n"
		"  \"traceEvents\": [{\"name\": \"\nThread 1 \\\"(LWP \", \"args\": {\"frames\": [],"
		" \"short_filename\": 1, \"entries\": [], \"collective_seq_id\": 3}}]}";

	(void)state;
	for (size_t len = 0; len < sizeof(trace); len++)
		assert_int_equal(dumps_kind(trace, len), DUMP_NONE);
	assert_int_equal(kind("[{\"ph\": \"X\", \"args\": {\"frames\": 1, \"owns_gil\": 0}}]"),
			 DUMP_NONE);
	assert_int_equal(kind("{\"a\": {\"pg_config\": {}}}"), DUMP_NONE);
	assert_int_equal(kind("{\"a\": \"pg_config\"}"), DUMP_NONE);
	assert_int_equal(kind("{\"a\\\"\": {}, \"pg_config\" : {"), DUMP_NCCL_JSON);
	assert_int_equal(kind("{\"entries\": [{\"collective_seq_id\": 3, \"st"), DUMP_NCCL_JSON);
	assert_int_equal(kind(" [{\"pid\": 1, \"owns_gil\": true, \"frames\": ["), DUMP_PYSPY_JSON);
}

static void what_is_no_dump_is_told_in_one_line(void **state)
{
	(void)state;
	assert_int_equal(dumps_kind("{\"traceEvents\": []}", 19), DUMP_NONE);
	assert_int_equal(dumps_kind("", 0), DUMP_NONE);
	assert_int_equal(parse("f", "hello"), -EINVAL);
	assert_string_equal(err.text,
			    "f: offset 0: expected a dump of a flight recorder, of stacks, "
			    "py-spy or gdb, found something else");
	assert_int_equal(parse("f", "{\"schema\": \"perftracker.hang.v1\", \"records\": 3}"),
			 -EINVAL);
	assert_string_equal(err.text, "f: offset 0: expected a list \"records\", found none");
	assert_int_equal(parse("f", "{\"schema\": \"perftracker.hang.v1\", "), -EINVAL);
	assert_non_null(strstr(err.text, "f: line 1, offset "));
	assert_int_equal(parse("f", "Process 1: x\nPython v3.8\n"), -EINVAL);
	assert_int_equal(dumps.records.cnt, 0);
	assert_int_equal(dumps_read("/nonexistent/x", &dumps, &err), -ENOENT);
	assert_string_equal(err.text, "/nonexistent/x: No such file or directory");
}

static void allocations_that_fail_are_told(void **state)
{
	int error = -ENOMEM;

	(void)state;
	for (long n = 0; error == -ENOMEM && n < 1000; n++) {
		allocations_left = n;
		error = parse("rank0", pyspy);
		allocations_left = -1;
	}
	assert_int_equal(error, 0);
	assert_int_equal(dumps.records.cnt, 1);
}

int main(void)
{
#define TEST(f) cmocka_unit_test_setup_teardown(f, open_dumps, close_dumps)
	const struct CMUnitTest tests[] = {
		TEST(a_text_of_py_spy_has_the_main_thread_first),
		TEST(a_text_of_gdb_has_names_without_arguments),
		TEST(ranks_come_from_contents_then_names_then_order),
		TEST(files_of_one_rank_become_one_record),
		TEST(a_transfer_that_is_open_has_both_ranks),
		TEST(transfers_of_a_batch_have_no_ranks),
		TEST(a_batch_that_is_over_leaves_nothing_open),
		TEST(traces_with_words_of_dumps_are_no_dumps),
		TEST(what_is_no_dump_is_told_in_one_line),
		TEST(allocations_that_fail_are_told),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
