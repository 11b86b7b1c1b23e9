/* SPDX-License-Identifier: Apache-2.0 */
#include "model/stalls/stallrecording.h"

#include <errno.h>
#include <string.h>

int stallrecording_init(struct stall_recording *recording)
{
	*recording = (struct stall_recording){ 0 };
	return strtab_init(&recording->texts);
}

void stallrecording_done(struct stall_recording *recording)
{
	strtab_done(&recording->texts);
	vec_done(&recording->threads);
	vec_done(&recording->processes);
	vec_done(&recording->counters);
	vec_done(&recording->events);
	vec_done(&recording->notes);
}

int stallrecording_add(struct stall_recording *recording, const struct stall_event *event)
{
	if (recording->events.cnt == STALL_EVENTS_MAX) {
		recording->dropped++;
		return 0;
	}
	return vec_push(&recording->events, *event);
}

int stallrecording_note(struct stall_recording *recording, const char *text)
{
	const uint32_t id = strtab_intern(&recording->texts, text, strlen(text));

	if (id == STRTAB_NONE)
		return -ENOMEM;
	vec_foreach(note, &recording->notes) {
		if (*note == id)
			return 0;
	}
	if (recording->notes.cnt == STALL_NOTES_MAX)
		return 0;
	return vec_push(&recording->notes, id);
}

static int compare_events(const void *a, const void *b)
{
	const struct stall_event *x = a, *y = b;

	if (x->time_ns != y->time_ns)
		return x->time_ns < y->time_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	if (x->tid != y->tid)
		return x->tid < y->tid ? -1 : 1;
	return x->cpu < y->cpu ? -1 : x->cpu > y->cpu;
}

static int compare_processes(const void *a, const void *b)
{
	const struct stall_process *x = a, *y = b;

	return x->pid < y->pid ? -1 : x->pid > y->pid;
}

void stallrecording_sort(struct stall_recording *recording)
{
	if (recording->events.cnt > 0)
		qsort(recording->events.data, recording->events.cnt,
		      sizeof(*recording->events.data), compare_events);
	if (recording->processes.cnt > 0)
		qsort(recording->processes.data, recording->processes.cnt,
		      sizeof(*recording->processes.data), compare_processes);
}

const struct stall_process *stallrecording_process(const struct stall_recording *recording,
						   uint32_t pid)
{
	const struct stall_process key = { .pid = pid };

	if (recording->processes.cnt == 0)
		return NULL;
	return bsearch(&key, recording->processes.data, recording->processes.cnt,
		       sizeof(*recording->processes.data), compare_processes);
}
