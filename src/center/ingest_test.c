/* SPDX-License-Identifier: Apache-2.0 */
#include "center/ingest.h"

#include "base/test_random.h"
#include "format/fingerprint/funckey.h"
#include "report/formats.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define PROFILE 77
#define HOST_WORKERS 8
#define HOSTS 40
#define SLOW_HOST 13
#define FUNCTIONS 6
#define MAX_MESSAGES 200

static uint64_t rng = 1;

static double some(void)
{
	return test_uniform(&rng);
}

/* --- messages --- */

static const struct {
	const char *name;
	enum event_kind kind;
	enum event_class class;
	double beta;
} program[FUNCTIONS] = {
	{ "train.py(4): step", KIND_PYTHON, CLASS_HOST, 0.004 },
	{ "gemm", KIND_KERNEL, CLASS_COMPUTE, 0.4 },
	{ "norm", KIND_KERNEL, CLASS_COMPUTE, 0.2 },
	{ "optimizer.py(2): update", KIND_PYTHON, CLASS_HOST, 0.003 },
	{ "ncclAllReduce", KIND_KERNEL, CLASS_COMM, 0.1 },
	{ "memset", KIND_GPU_MEMOP, CLASS_MEMORY, 0.02 },
};

static bool all_well;	    /* no worker is slow */
static int lossy_rank = -1; /* lost most of its records; -1: no worker did */

static void fill_worker(struct fingerprint *fp, int rank, int64_t start_ns)
{
	struct str part = { 0 };

	fingerprint_init(fp);
	fp->job_id = "job";
	fp->host = arena_printf(&fp->arena, "host-%02d", rank / HOST_WORKERS);
	fp->source = fp->device_name = "";
	fp->host_stats.other_name = "";
	fp->rank = rank;
	fp->world_size = HOSTS * HOST_WORKERS;
	fp->drops.flight_lost = rank == lossy_rank ? 1000000 : 0;
	fp->window_start_wall_ns = start_ns;
	fp->window_ns = NSEC_PER_SEC;
	fp->has_device = fp->has_stacks = fp->iterations_known = true;
	fp->class_ns[CLASS_IDLE] = fp->window_ns;
	fp->iteration_cnt = 5;
	fp->iterations = arena_calloc(&fp->arena, 5, sizeof(*fp->iterations));
	for (int i = 0; i < 5; i++)
		fp->iterations[i] =
			(struct fp_iteration){ i, i * NSEC_PER_SEC / 5, NSEC_PER_SEC / 5 };
	fp->frame_cnt = fp->function_cnt = FUNCTIONS;
	fp->frames = arena_calloc(&fp->arena, FUNCTIONS, sizeof(*fp->frames));
	fp->functions = arena_calloc(&fp->arena, FUNCTIONS, sizeof(*fp->functions));
	for (uint32_t i = 0; i < FUNCTIONS; i++) {
		double beta = program[i].beta * (1 + 0.02 * some());

		if (rank / HOST_WORKERS == SLOW_HOST && i == 2 && !all_well)
			beta *= 2;
		part.len = 0;
		funckey_part(program[i].kind, program[i].name, &part);
		fp->frames[i] = (struct fp_frame){ funckey_under(NULL, str_borrow(&part)),
						   FRAME_NONE, program[i].kind, program[i].name };
		fp->functions[i] = (struct fp_function){
			.frame = i,
			.class = program[i].class,
			.resource = RESOURCE_CNT,
			.beta_frac = beta,
			.mu_frac = (double)NAN,
			.sigma_frac = (double)NAN,
			.executions = 10,
			.share_ns = (int64_t)(beta * (double)fp->window_ns),
			.elements = -1,
			.bytes = -1,
		};
	}
	str_done(&part);
}

/* All messages of a profile, in an order that tests change. */
struct mail {
	struct str letters[MAX_MESSAGES];
	size_t cnt;
};

static void write_host(struct mail *mail, int host, int64_t start_ns, bool names)
{
	struct fpwire_options options = { .profile = PROFILE, .names = names };
	struct fingerprint fps[HOST_WORKERS];
	const struct fingerprint *list[HOST_WORKERS];
	struct err err = { "" };

	for (int i = 0; i < HOST_WORKERS; i++) {
		fill_worker(&fps[i], host * HOST_WORKERS + i, start_ns);
		list[i] = &fps[i];
	}
	assert_true(mail->cnt < MAX_MESSAGES);
	assert_int_equal(
		fpwire_encode(list, HOST_WORKERS, &options, &mail->letters[mail->cnt++], &err), 0);
	for (int i = 0; i < HOST_WORKERS; i++)
		fingerprint_done(&fps[i]);
}

static void write_names(struct mail *mail)
{
	struct fingerprint fp;
	const struct fingerprint *list = &fp;
	struct err err = { "" };

	fill_worker(&fp, 0, 0);
	assert_int_equal(fpwire_encode_names(&list, 1, NULL, 0, &mail->letters[mail->cnt++], &err),
			 0);
	fingerprint_done(&fp);
}

/* Most hosts once, some twice, with the same bytes or a later window; host 5 never. */
static void write_mail(struct mail *mail)
{
	*mail = (struct mail){ 0 };
	rng = 3;
	for (int host = 0; host < HOSTS; host++) {
		if (host == 5)
			continue;
		write_host(mail, host, 1000, false);
		if (host % 7 == 1)
			write_host(mail, host, 1000, false);
		if (host % 9 == 2)
			write_host(mail, host, 2000, false);
	}
	write_names(mail);
}

static void mail_done(struct mail *mail)
{
	for (size_t i = 0; i < mail->cnt; i++)
		str_done(&mail->letters[i]);
}

static void shuffle(struct mail *mail)
{
	for (size_t i = mail->cnt; i > 1; i--) {
		size_t k = (size_t)(some() * (double)i);
		struct str swap = mail->letters[i - 1];

		mail->letters[i - 1] = mail->letters[k];
		mail->letters[k] = swap;
	}
}

/* --- reports --- */

static struct ingest *deliver(const struct mail *mail, size_t copies)
{
	struct ingest *ingest;
	struct err err = { "" };

	assert_int_equal(ingest_open(PROFILE, &ingest), 0);
	for (size_t i = 0; i < mail->cnt * copies; i++) {
		const struct str *letter = &mail->letters[i % mail->cnt];

		if (ingest_add(ingest, letter->data, letter->len, &err) < 0)
			fail_msg("%s", err.text);
	}
	return ingest;
}

static void localize_all(struct ingest *ingest, size_t whole_max, struct report *ret)
{
	struct localize_options options = localize_defaults();
	struct err err = { "" };

	if (ingest_localize(ingest, &options, whole_max, ret, &err) < 0)
		fail_msg("%s", err.text);
}

static struct str json_of(const struct mail *mail, size_t copies, size_t whole_max)
{
	struct ingest *ingest = deliver(mail, copies);
	struct str out = { 0 };
	struct report report;

	localize_all(ingest, whole_max, &report);
	assert_int_equal(report_json(&report, &out), 0);
	report_done(&report);
	ingest_close(ingest);
	return out;
}

static void the_order_of_arrival_changes_no_byte(void **state)
{
	struct mail mail;

	(void)state;
	for (size_t whole_max = 0; whole_max <= 1000; whole_max += 1000) {
		struct str first, again;

		write_mail(&mail);
		first = json_of(&mail, 1, whole_max);
		for (int round = 0; round < 12; round++) {
			shuffle(&mail);
			again = json_of(&mail, 1 + (size_t)round % 3, whole_max);
			assert_string_equal(str_borrow(&first), str_borrow(&again));
			str_done(&again);
		}
		str_done(&first);
		mail_done(&mail);
	}
}

static void assert_slow_host(const struct report *report)
{
	const struct finding *f = &report->findings[0];

	assert_int_equal(report->verdict, VERDICT_ABNORMAL);
	assert_int_equal(report->finding_cnt, 1);
	assert_string_equal(f->name, "norm");
	assert_int_equal(f->rank_cnt, HOST_WORKERS);
	assert_int_equal(f->ranks[0], SLOW_HOST * HOST_WORKERS);
	assert_int_equal(f->host_cnt, 1);
	assert_string_equal(f->hosts[0], "host-13");
	assert_int_equal(report->workers_analyzed, (HOSTS - 1) * HOST_WORKERS);
	assert_int_equal(report->missing_cnt, HOST_WORKERS);
	assert_int_equal(report->missing[0], 5 * HOST_WORKERS);
}

static void few_and_many_workers_are_judged_alike(void **state)
{
	struct mail mail;

	(void)state;
	write_mail(&mail);
	for (size_t whole_max = 0; whole_max <= 1000; whole_max += 1000) {
		struct ingest *ingest = deliver(&mail, 1);
		struct report report;

		localize_all(ingest, whole_max, &report);
		assert_slow_host(&report);
		assert_int_equal(ingest_counts(ingest).messages, mail.cnt);
		assert_int_equal(ingest_counts(ingest).repeated,
				 (mail.cnt - 1 - (HOSTS - 1)) * HOST_WORKERS);
		assert_int_equal(ingest_counts(ingest).unresolved, 0);
		report_done(&report);
		ingest_close(ingest);
	}
	mail_done(&mail);
}

static void the_latest_window_counts(void **state)
{
	struct mail mail = { 0 };

	(void)state;
	for (int host = 0; host < HOSTS; host++)
		write_host(&mail, host, 1000, true);
	all_well = true;
	write_host(&mail, SLOW_HOST, 2000, true);
	all_well = false;
	for (int round = 0; round < 4; round++) {
		struct ingest *ingest = deliver(&mail, 1);
		struct report report;

		assert_int_equal(ingest_counts(ingest).repeated, HOST_WORKERS);
		localize_all(ingest, 0, &report);
		assert_int_equal(report.verdict, VERDICT_HEALTHY);
		report_done(&report);
		ingest_close(ingest);
		shuffle(&mail);
	}
	mail_done(&mail);
}

static void a_job_that_lost_much_is_not_called_healthy(void **state)
{
	struct mail mail = { 0 };

	(void)state;
	all_well = true;
	lossy_rank = 100;
	for (int host = 0; host < HOSTS; host++)
		write_host(&mail, host, 1000, true);
	all_well = false;
	lossy_rank = -1;
	for (size_t whole_max = 0; whole_max <= 1000; whole_max += 1000) {
		struct ingest *ingest = deliver(&mail, 1);
		struct report report;

		localize_all(ingest, whole_max, &report);
		assert_int_equal(report.verdict, VERDICT_INCONCLUSIVE);
		assert_non_null(strstr(report.reason, "rank 100 lost 100 % of what"));
		report_done(&report);
		ingest_close(ingest);
	}
	mail_done(&mail);
}

static void functions_without_names_are_compared(void **state)
{
	struct mail mail = { 0 };
	struct ingest *ingest;
	struct str question = { 0 };
	struct report report;

	(void)state;
	for (int host = 0; host < HOSTS; host++)
		write_host(&mail, host, 1000, false);
	ingest = deliver(&mail, 1);
	assert_int_equal(ingest_ask(ingest, 1, &question), FUNCTIONS);
	localize_all(ingest, 0, &report);
	assert_int_equal(ingest_counts(ingest).unresolved, FUNCTIONS);
	assert_int_equal(report.finding_cnt, 1);
	assert_string_equal(report.findings[0].name, "unresolved");
	assert_int_equal(report.findings[0].rank_cnt, HOST_WORKERS);
	report_done(&report);
	ingest_close(ingest);
	str_done(&question);
	mail_done(&mail);
}

static void damaged_and_foreign_messages_are_left_out(void **state)
{
	struct mail mail = { 0 };
	struct localize_options options = localize_defaults();
	struct ingest *ingest;
	struct err err = { "" };
	struct report report;

	(void)state;
	write_host(&mail, 0, 1000, true);
	assert_int_equal(ingest_open(PROFILE + 1, &ingest), 0);
	assert_int_equal(ingest_add(ingest, mail.letters[0].data, mail.letters[0].len, &err), 0);
	mail.letters[0].data[20] ^= 1;
	assert_int_equal(ingest_add(ingest, mail.letters[0].data, mail.letters[0].len, &err),
			 -EINVAL);
	assert_int_equal(ingest_counts(ingest).foreign, 1);
	assert_int_equal(ingest_counts(ingest).damaged, 1);
	assert_int_equal(ingest_localize(ingest, &options, 0, &report, &err), -ENODATA);
	assert_int_equal(ingest_localize(ingest, &options, 0, &report, &err), -EINVAL);
	ingest_close(ingest);
	mail_done(&mail);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_order_of_arrival_changes_no_byte),
		cmocka_unit_test(few_and_many_workers_are_judged_alike),
		cmocka_unit_test(the_latest_window_counts),
		cmocka_unit_test(a_job_that_lost_much_is_not_called_healthy),
		cmocka_unit_test(functions_without_names_are_compared),
		cmocka_unit_test(damaged_and_foreign_messages_are_left_out),
	};

	return cmocka_run_group_tests_name("ingest", tests, NULL, NULL);
}
