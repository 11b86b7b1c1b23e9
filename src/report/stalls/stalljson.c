/* SPDX-License-Identifier: Apache-2.0 */
#include "report/jsonwriter.h"
#include "report/stalls/stallforms.h"

#include <stdio.h>
#include <string.h>

static json_t *number(uint64_t value)
{
	return json_integer((json_int_t)MIN(value, (uint64_t)INT64_MAX));
}

static json_t *ms(int64_t ns)
{
	return jsonwriter_number((double)ns / NSEC_PER_MSEC);
}

/* NULL for "". */
static const char *some(const char *text)
{
	return text != NULL && text[0] != '\0' ? text : NULL;
}

static const char *text_of(const struct stall_verdict *verdict, uint32_t id)
{
	return some(strtab_text(&verdict->recording->texts, id));
}

static const char *kind_word(enum stall_kind kind)
{
	static const char *const WORDS[] = {
		[STALL_KIND_STALL] = "stall",
		[STALL_KIND_WAIT] = "wait",
		[STALL_KIND_KERNEL] = "kernel",
	};

	return WORDS[kind];
}

static json_t *chain_array(struct json_writer *w, const char *chain)
{
	json_t *array = json_array();

	for (const char *name = chain; *name != '\0';) {
		const size_t len = strcspn(name, "<");
		char one[128];

		(void)snprintf(one, sizeof(one), "%.*s", (int)MIN(len, sizeof(one) - 1), name);
		jsonwriter_push(w, array, jsonwriter_text(one));
		name += len + (name[len] == '<');
	}
	return array;
}

static json_t *culprit_array(struct json_writer *w, const struct stall_verdict *verdict,
			     const struct stall_finding *finding)
{
	json_t *array = json_array();

	for (size_t i = 0; i < finding->culprit_cnt; i++) {
		const struct stall_culprit *culprit = &finding->culprits[i];
		json_t *object = json_object();

		jsonwriter_put(w, object, "pid", number(culprit->pid));
		jsonwriter_put(w, object, "tid",
			       culprit->tid != 0 ? number(culprit->tid) : json_null());
		jsonwriter_put_text(w, object, "name", text_of(verdict, culprit->name));
		jsonwriter_put_text(w, object, "command", text_of(verdict, culprit->command));
		jsonwriter_put(w, object, "ms", ms(culprit->ns));
		jsonwriter_put(w, object, "own_process", json_boolean(culprit->same));
		jsonwriter_put(w, object, "perftracker", json_boolean(culprit->own));
		jsonwriter_push(w, array, object);
	}
	return array;
}

static json_t *thread_ids(struct json_writer *w, const struct stall_verdict *verdict, uint64_t bits)
{
	json_t *array = json_array();

	for (size_t i = 0; i < verdict->recording->threads.cnt; i++)
		if ((bits >> i & 1) != 0)
			jsonwriter_push(w, array, number(verdict->recording->threads.data[i].tid));
	return array;
}

static json_t *finding_object(struct json_writer *w, const struct stall_verdict *verdict,
			      const struct stall_finding *finding)
{
	const struct stall_class_about *about = stallclass_about(finding->class);
	_cleanup_(str_done) struct str sentence = { 0 };
	json_t *object = json_object();

	jsonwriter_put_text(w, object, "cause", about->word);
	jsonwriter_put_text(w, object, "kind", kind_word(about->kind));
	jsonwriter_put(w, object, "matters", json_boolean(finding->matters));
	jsonwriter_put_text(w, object, "text", about->text);
	stallforms_sentence(verdict, finding, &sentence);
	if (str_error(&sentence) < 0)
		w->error = str_error(&sentence);
	jsonwriter_put_text(w, object, "summary", str_borrow(&sentence));
	jsonwriter_put_text(w, object, "function", some(finding->function));
	jsonwriter_put(w, object, "total_ms", ms(finding->total_ns));
	jsonwriter_put(w, object, "count", number(finding->cnt));
	jsonwriter_put(w, object, "longest_ms", ms(finding->longest_ns));
	jsonwriter_put(w, object, "median_ms", ms(finding->median_ns));
	jsonwriter_put(w, object, "bursts", number(finding->burst_cnt));
	jsonwriter_put(w, object, "period_ms",
		       finding->period_ns > 0 ? ms(finding->period_ns) : json_null());
	jsonwriter_put(w, object, "in_turn", json_boolean(finding->in_turn));
	jsonwriter_put(w, object, "threads", thread_ids(w, verdict, finding->thread_bits));
	jsonwriter_put(w, object, "culprits", culprit_array(w, verdict, finding));
	jsonwriter_put(w, object, "culprits_more", number(finding->culprits_more));
	jsonwriter_put(w, object, "culprits_likely", json_boolean(finding->likely));
	jsonwriter_put_text(w, object, "culprit_function", some(finding->holder));
	jsonwriter_put_text(w, object, "culprit_did", some(finding->did));
	jsonwriter_put_text(w, object, "file", text_of(verdict, finding->file));
	jsonwriter_put(w, object, "kernel",
		       chain_array(w, strtab_text(&verdict->recording->texts, finding->chain)));
	if (finding->class == STALL_QUOTA) {
		jsonwriter_put(w, object, "quota_us", number(finding->quota_us));
		jsonwriter_put(w, object, "quota_period_us", number(finding->period_us));
		jsonwriter_put(w, object, "throttled_periods", number(finding->throttled_cnt));
		jsonwriter_put(w, object, "throttled_ms", ms((int64_t)finding->throttled_ns));
	}
	if (finding->class == STALL_FAULTS) {
		jsonwriter_put(w, object, "minor_faults", number(finding->minor_faults));
		jsonwriter_put(w, object, "major_faults", number(finding->major_faults));
	}
	if (finding->cpu_frac > 0)
		jsonwriter_put(w, object, "cpu_frac", jsonwriter_number(finding->cpu_frac));
	jsonwriter_put_text(w, object, "advice", some(stallforms_advice(finding)));
	return object;
}

static json_t *thread_object(struct json_writer *w, const struct stall_verdict *verdict,
			     size_t index)
{
	const struct stall_thread *thread = &verdict->recording->threads.data[index];
	const struct stall_account *account = &verdict->accounts.data[index];
	json_t *object = json_object();

	jsonwriter_put(w, object, "tid", number(thread->tid));
	jsonwriter_put(w, object, "pid", number(thread->pid));
	jsonwriter_put_text(w, object, "name", text_of(verdict, thread->name));
	jsonwriter_put(w, object, "judged", json_boolean(account->judged));
	jsonwriter_put(w, object, "exact", json_boolean(account->exact));
	jsonwriter_put(w, object, "running_ms", ms(account->running_ns));
	jsonwriter_put(w, object, "runnable_ms", ms(account->runnable_ns));
	jsonwriter_put(w, object, "blocked_ms", ms(account->blocked_ns));
	jsonwriter_put(w, object, "waited_ms", ms(account->waited_ns));
	jsonwriter_put(w, object, "lost_ms", ms(account->lost_ns));
	jsonwriter_put(w, object, "explained_ms", ms(account->explained_ns));
	return object;
}

static json_t *process_array(struct json_writer *w, const struct stall_verdict *verdict)
{
	json_t *array = json_array();

	vec_foreach(process, &verdict->recording->processes) {
		json_t *object;

		if (!process->watched)
			continue;
		object = json_object();
		jsonwriter_put(w, object, "pid", number(process->pid));
		jsonwriter_put_text(w, object, "name", text_of(verdict, process->name));
		jsonwriter_put_text(w, object, "command", text_of(verdict, process->command));
		jsonwriter_push(w, array, object);
	}
	return array;
}

static json_t *source_array(struct json_writer *w, uint32_t sources)
{
	static const char *const WORDS[] = { "switches", "stacks",  "states", "wakers",
					     "cpus",	 "samples", "looks",  "counters" };
	json_t *array = json_array();

	for (size_t i = 0; i < ARRAY_SIZE(WORDS); i++)
		if ((sources >> i & 1) != 0)
			jsonwriter_push(w, array, json_string(WORDS[i]));
	return array;
}

int stallforms_json(const struct stall_verdict *verdict, struct str *out)
{
	const struct stall_recording *recording = verdict->recording;
	struct json_writer w = { 0 };
	json_t *root = json_object(), *threads = json_array(), *findings = json_array(),
	       *notes = json_array();

	jsonwriter_put_text(&w, root, "schema", "perftracker.stalls.v1");
	jsonwriter_put_text(&w, root, "verdict",
			    verdict->stall_cnt > 0 ? "stalls"
			    : verdict->incomplete  ? "inconclusive"
						   : "no_stall");
	jsonwriter_put(&w, root, "window_ms", ms(recording->end_ns - recording->begin_ns));
	jsonwriter_put(&w, root, "processes", process_array(&w, verdict));
	for (size_t i = 0; i < recording->threads.cnt; i++)
		jsonwriter_push(&w, threads, thread_object(&w, verdict, i));
	jsonwriter_put(&w, root, "threads", threads);
	vec_foreach(finding, &verdict->findings)
		jsonwriter_push(&w, findings, finding_object(&w, verdict, finding));
	jsonwriter_put(&w, root, "findings", findings);
	jsonwriter_put(&w, root, "sources", source_array(&w, recording->sources));
	vec_foreach(note, &recording->notes)
		jsonwriter_push(&w, notes, jsonwriter_text(strtab_text(&recording->texts, *note)));
	jsonwriter_put(&w, root, "not_seen", notes);
	jsonwriter_put(&w, root, "lost_records", number(recording->lost));
	jsonwriter_put(&w, root, "dropped_records", number(recording->dropped));
	return jsonwriter_print(&w, root, out);
}
