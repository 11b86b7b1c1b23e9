/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/jobearlier.h"

#include "base/clock.h"
#include "serve/jobwords.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* The texts of the job's row, which are gone when the next query runs. */
struct subject {
	char *name, *command, *host;
	struct store_job job;
};

static int copy_job(void *arg, const struct store_job *job)
{
	struct subject *subject = arg;

	subject->job = *job;
	subject->name = strdup(job->name);
	subject->host = strdup(job->host);
	subject->command = job->command != NULL ? strdup(job->command) : NULL;
	return subject->name == NULL || subject->host == NULL ? -ENOMEM : 0;
}

static int compare(struct store *store, const char *key, const struct subject *subject,
		   struct earlier_answer *ret, struct err *err)
{
	struct store_job job = subject->job;
	struct earlier_subject own = { .key = key,
				       .name = subject->name,
				       .command = subject->command,
				       .host = subject->host,
				       .started_ns = job.started_ns,
				       .now_ns = clock_wall_ns() };
	struct earlier earlier = { .runs = { 0 } };
	struct runpace_sum pace;
	char machine[256];
	size_t beside = 0;
	bool flagged;
	int r;

	job.key = key;
	r = earlier_read_pace(store, &job, &pace, machine, &flagged, err);
	own.machine = machine;
	if (r == 0)
		r = earlier_count_beside(store, own.host, key, job.started_ns, job.seen_ns, &beside,
					 err);
	if (r == 0)
		r = earlier_read(store, &own, &earlier, err);
	if (r == 0)
		earlier_judge(&earlier, job.workers, &pace, beside > 0, ret);
	earlier_done(&earlier);
	return r;
}

int jobearlier_read(struct store *store, const char *key, struct earlier_answer *ret,
		    struct err *err)
{
	struct subject subject = { .name = NULL };
	int r = store_get_job(store, key, copy_job, &subject, err);

	if (r == 0)
		r = compare(store, key, &subject, ret, err);
	free(subject.name);
	free(subject.command);
	free(subject.host);
	return r == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : r;
}

static void put_ms(struct json_writer *w, json_t *to, const char *key, double ns)
{
	jsonwriter_put(w, to, key, ns > 0 ? jsonwriter_number(ns / NSEC_PER_MSEC) : json_null());
}

static json_t *whys_object(struct json_writer *w, const struct earlier_answer *answer)
{
	json_t *ret = json_array();

	for (int i = 1; i < EARLIER_WHY_CNT; i++) {
		json_t *item;

		if (answer->whys[i] == 0)
			continue;
		item = json_object();
		jsonwriter_put_text(w, item, "why", earlier_why_name((enum earlier_why)i));
		jsonwriter_put(w, item, "runs", json_integer((json_int_t)answer->whys[i]));
		jsonwriter_push(w, ret, item);
	}
	return ret;
}

json_t *jobearlier_object(struct json_writer *w, const struct earlier_answer *answer)
{
	struct str clause = { 0 };
	char since[32];
	json_t *ret;

	if (answer->verdict == EARLIER_NONE)
		return json_null();
	ret = json_object();
	jsonwriter_put_text(w, ret, "verdict", earlier_verdict_name(answer->verdict));
	if (answer->verdict != EARLIER_UNKNOWN)
		earlier_append_clause(answer, &clause);
	else
		earlier_append_whys(answer, &clause);
	jsonwriter_put_text(w, ret, "text", str_borrow(&clause));
	str_done(&clause);
	jsonwriter_put(w, ret, "runs", json_integer((json_int_t)answer->run_cnt));
	jsonwriter_put(w, ret, "compared", json_integer((json_int_t)answer->used_cnt));
	jobwords_iso(answer->since_ns, since);
	jsonwriter_put_text(w, ret, "since", answer->used_cnt > 0 ? since : NULL);
	put_ms(w, ret, "iteration_ms", answer->pace.known ? (double)answer->pace.median_ns : 0);
	put_ms(w, ret, "earlier_ms", answer->median_ns);
	put_ms(w, ret, "earlier_least_ms", answer->least_ns);
	put_ms(w, ret, "earlier_most_ms", answer->most_ns);
	jsonwriter_put(w, ret, "factor",
		       answer->factor > 0 ? jsonwriter_number(answer->factor) : json_null());
	jsonwriter_put_text(w, ret, "like", answer->like[0] != '\0' ? answer->like : NULL);
	jsonwriter_put(w, ret, "left_out", whys_object(w, answer));
	return ret;
}
