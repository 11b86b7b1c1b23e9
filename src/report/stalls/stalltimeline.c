/* SPDX-License-Identifier: Apache-2.0 */
/* The trace event format: one slice for each part, and for each stay of a process on a CPU. */
#include "report/jsonwriter.h"
#include "report/stalls/stallforms.h"

#include <errno.h>
#include <stdio.h>

enum { CPUS_PID = 0x7fffffff, SLICES_MAX = 500000 }; /* pid of the track of CPUs */
#define RUN_MIN_NS (50 * NSEC_PER_USEC)		     /* shorter stays on a CPU are left out */

struct picture {
	const struct stall_verdict *verdict;
	struct str *out;
	size_t slices, left_out;
};

static void append_text(struct picture *picture, const char *text)
{
	json_t *json = jsonwriter_text(text);
	char *quoted = json != NULL ? json_dumps(json, JSON_ENCODE_ANY | JSON_ENSURE_ASCII) : NULL;

	if (quoted == NULL)
		picture->out->error = -ENOMEM;
	else
		str_append(picture->out, quoted);
	free(quoted);
	json_decref(json);
}

static const char *text_of(const struct picture *picture, uint32_t id)
{
	return strtab_text(&picture->verdict->recording->texts, id);
}

static void append_name(struct picture *picture, const char *event, uint32_t pid, uint32_t tid,
			const char *name)
{
	str_printf(picture->out,
		   ",\n{\"ph\":\"M\",\"name\":\"%s\",\"pid\":%u,\"tid\":%u,\"args\":{\"name\":",
		   event, pid, tid);
	append_text(picture, name);
	str_append(picture->out, "}}");
}

/* The caller goes on with arguments, and ends the object. */
static bool begin_slice(struct picture *picture, uint32_t pid, uint32_t tid, const char *name,
			const int64_t times_ns[static 2])
{
	const int64_t zero_ns = picture->verdict->recording->begin_ns;

	if (picture->slices == SLICES_MAX) {
		picture->left_out++;
		return false;
	}
	picture->slices++;
	str_append(picture->out, ",\n{\"ph\":\"X\",\"name\":");
	append_text(picture, name);
	str_printf(picture->out, ",\"pid\":%u,\"tid\":%u,\"ts\":%.3f,\"dur\":%.3f,\"args\":{", pid,
		   tid, (double)(times_ns[0] - zero_ns) / 1000,
		   (double)(times_ns[1] - times_ns[0]) / 1000);
	return true;
}

static void append_argument(struct picture *picture, const char *key, const char *value,
			    bool *first)
{
	if (value[0] == '\0')
		return;
	str_printf(picture->out, "%s\"%s\":", *first ? "" : ",", key);
	append_text(picture, value);
	*first = false;
}

static void append_part(struct picture *picture, const struct stall_part *part)
{
	const struct stall_verdict *verdict = picture->verdict;
	const struct stall_thread *thread = &verdict->recording->threads.data[part->thread];
	const struct stall_process *process = stallrecording_process(verdict->recording, part->pid);
	const int64_t times_ns[2] = { part->begin_ns, part->end_ns };
	bool first = true;

	if (!begin_slice(picture, thread->pid, thread->tid, stallclass_about(part->class)->text,
			 times_ns))
		return;
	append_argument(picture, "kernel", text_of(picture, part->chain), &first);
	append_argument(picture, "file", text_of(picture, part->file), &first);
	if (process != NULL)
		append_argument(picture, "woken by", text_of(picture, process->command), &first);
	append_argument(picture, "waker's kernel", text_of(picture, part->waker_chain), &first);
	str_append(picture->out, "}}");
}

static void append_run(struct picture *picture, const struct stall_event *event, int64_t end_ns)
{
	const struct stall_process *process =
		stallrecording_process(picture->verdict->recording, event->pid);
	const int64_t times_ns[2] = { MAX(event->time_ns, picture->verdict->recording->begin_ns),
				      end_ns };
	bool first = true;

	if (times_ns[1] - times_ns[0] < RUN_MIN_NS || event->pid == 0)
		return;
	if (!begin_slice(picture, CPUS_PID, event->cpu + 1,
			 process != NULL ? text_of(picture, process->name) : "?", times_ns))
		return;
	if (process != NULL)
		append_argument(picture, "command", text_of(picture, process->command), &first);
	str_printf(picture->out, "%s\"pid\":%u}}", first ? "" : ",", event->pid);
}

enum { CPUS_MAX = 4096 };

/* Each run lasts until the next one of the same CPU. */
static int append_runs(struct picture *picture)
{
	const struct stall_recording *recording = picture->verdict->recording;
	_cleanup_free_ const struct stall_event **last = calloc(CPUS_MAX, sizeof(*last));
	char name[32];

	if (last == NULL)
		return -ENOMEM;
	vec_foreach(event, &recording->events) {
		if (event->kind != STALL_RUN || event->cpu >= CPUS_MAX)
			continue;
		if (last[event->cpu] != NULL) {
			append_run(picture, last[event->cpu], event->time_ns);
		} else {
			(void)snprintf(name, sizeof(name), "CPU %u", event->cpu);
			append_name(picture, "thread_name", CPUS_PID, event->cpu + 1, name);
		}
		last[event->cpu] = event;
	}
	for (size_t i = 0; i < CPUS_MAX; i++)
		if (last[i] != NULL)
			append_run(picture, last[i], recording->end_ns);
	return 0;
}

int stallforms_timeline(const struct stall_verdict *verdict, struct str *out)
{
	struct picture picture = { verdict, out, 0, 0 };
	const size_t start = out->len;

	str_append(out, "{\"displayTimeUnit\":\"ms\",\"traceEvents\":[\n"
			"{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":2147483647,\"tid\":0,"
			"\"args\":{\"name\":\"CPUs\"}}");
	vec_foreach(process, &verdict->recording->processes) {
		if (process->watched)
			append_name(&picture, "process_name", process->pid, 0,
				    text_of(&picture, process->command));
	}
	vec_foreach(thread, &verdict->recording->threads)
		append_name(&picture, "thread_name", thread->pid, thread->tid,
			    text_of(&picture, thread->name));
	vec_foreach(part, &verdict->parts)
		append_part(&picture, part);
	if (append_runs(&picture) < 0)
		out->error = -ENOMEM;
	str_printf(out, "\n],\"leftOut\":%zu}\n", picture.left_out);
	return str_finish(out, start);
}
