/* SPDX-License-Identifier: Apache-2.0 */
/* Records of the kernel become events of the recording. */
#include "base/str.h"
#include "host/stallwatch/stallwatch_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

enum { TEXTS_MAX = 65536, FD_MAX = 1 << 20 };
#define FILE_AGE_NS (500 * NSEC_PER_MSEC) /* a file of a descriptor is asked for again then */

/* Functions of the measurement itself, innermost on every stack of an event. */
static bool is_own_function(const char *name)
{
	static const char *const BEGINS[] = { "perf_",	     "__perf_",	    "trace_",
					      "__traceiter", "__bpf_trace", "__do_trace" };

	for (size_t i = 0; i < ARRAY_SIZE(BEGINS); i++)
		if (strncmp(name, BEGINS[i], strlen(BEGINS[i])) == 0)
			return true;
	return false;
}

static void append_chain(const struct stallwatch *watch, const struct perfrecord *record,
			 struct str *text)
{
	const char *before = "";

	for (size_t i = 0; i < record->chain_cnt; i++) {
		const char *name = kernelnames_find(&watch->names, record->chain[i]);

		if (name == NULL)
			name = "?";
		if (text->len == 0 && is_own_function(name))
			continue;
		/* A function that was inlined into itself, or has two return addresses. */
		if (strcmp(name, before) != 0)
			str_printf(text, "%s%s", text->len > 0 ? "<" : "", name);
		before = name;
	}
}

/* The text of a stack, each made once. Returns 0 or -ENOMEM. */
static int find_chain(struct stallwatch *watch, const struct perfrecord *record, uint32_t *ret)
{
	_cleanup_(str_done) struct str text = { 0 };
	const uint64_t key = XXH3_64bits(record->chain, record->chain_cnt * sizeof(*record->chain));

	*ret = 0;
	if (record->chain_cnt == 0 || !watch->named)
		return 0;
	*ret = idmap_get(&watch->chains, key);
	if (*ret != IDMAP_NONE)
		return 0;
	*ret = 0;
	if (watch->recording->texts.cnt >= TEXTS_MAX) {
		watch->recording->dropped++;
		return 0;
	}
	append_chain(watch, record, &text);
	if (str_error(&text) < 0)
		return -ENOMEM;
	*ret = strtab_intern(&watch->recording->texts, str_borrow(&text), text.len);
	return *ret == STRTAB_NONE ? -ENOMEM : idmap_set(&watch->chains, key, *ret);
}

/* State bits of the kernel, <linux/sched.h>, as letters. */
static char state_letter(int64_t bits)
{
	static const char LETTERS[] = { 'S', 'D', 'T', 't', 'X', 'Z', 'P', 'I' };

	for (size_t i = 0; i < sizeof(LETTERS); i++)
		if (bits >> i & 1)
			return LETTERS[i];
	return 'R';
}

/* Whether the stack is one of a system call whose first argument is a descriptor. */
static bool is_file_call(const char *chain)
{
	static const char *const CALLS[] = { "ksys_read",	"ksys_write", "sys_pread",
					     "sys_pwrite",	"ksys_pread", "ksys_pwrite",
					     "fsync",		"fdatasync",  "do_readv",
					     "do_writev",	"fallocate",  "ftruncate",
					     "sync_file_range", "getdents",   "do_sendfile" };

	for (size_t i = 0; i < ARRAY_SIZE(CALLS); i++)
		if (strstr(chain, CALLS[i]) != NULL)
			return true;
	return false;
}

static int find_file(struct stallwatch *watch, struct watchedthread *thread, int64_t now_ns)
{
	char link[64], path[1024];
	ssize_t len;

	if (thread->state != 'D' || thread->address >= FD_MAX ||
	    !is_file_call(strtab_text(&watch->recording->texts, thread->chain)))
		return 0;
	if (thread->file != 0 && thread->file_fd == thread->address &&
	    now_ns - thread->file_ns < FILE_AGE_NS)
		return 0;
	(void)snprintf(link, sizeof(link), "/proc/%u/fd/%u", thread->pid,
		       (uint32_t)thread->address);
	len = readlink(link, path, sizeof(path));
	thread->file = len > 0 ? strtab_intern(&watch->recording->texts, path, (size_t)len) : 0;
	thread->file_fd = thread->address;
	thread->file_ns = now_ns;
	return thread->file == STRTAB_NONE ? -ENOMEM : 0;
}

/* The stack of a thread that leaves the CPU; the record of the switch follows. */
static int take_leaving(struct stallwatch *watch, size_t index, const struct perfrecord *record)
{
	struct watchedthread *thread = &watch->threads.list.data[index];
	struct perfthread *followed = &watch->events.threads.data[index];
	const struct tracepoint *point = &watch->events.points.of[TRACEPOINT_SWITCH];
	int64_t state, pid;
	int error = find_chain(watch, record, &thread->chain);

	thread->pending = true;
	thread->address = record->reg;
	thread->state = '-';
	if (point->id != 0 &&
	    perfrecord_number(record, point->value_off, point->value_size, &state))
		thread->state = state_letter(state);
	if (followed->global_tid == 0 && perfrecord_number(record, point->pid_off, 4, &pid)) {
		followed->global_tid = (uint32_t)pid;
		watch->filters_stale = true;
	}
	return error < 0 ? error : find_file(watch, thread, record->time_ns);
}

static int take_switch(struct stallwatch *watch, size_t index, const struct perfrecord *record)
{
	struct watchedthread *thread = &watch->threads.list.data[index];
	struct stall_event event = {
		.time_ns = record->time_ns,
		.kind = record->out ? STALL_OUT : STALL_IN,
		.tid = thread->tid,
		.pid = thread->pid,
		.cpu = record->cpu,
		.state = '-',
	};

	if (record->out) {
		/* Without tracepoints it is only known that it was not preempted. */
		event.state = record->preempted ? 'R' : thread->pending ? thread->state : '-';
		event.chain = thread->pending ? thread->chain : 0;
		event.address = thread->pending ? thread->address : 0;
		event.file = thread->pending && event.state == 'D' ? thread->file : 0;
	}
	thread->pending = false;
	return stallrecording_add(watch->recording, &event);
}

static int take_thread(struct stallwatch *watch, size_t index, const struct perfrecord *record)
{
	if (record->kind == PERFRECORD_SAMPLE)
		return take_leaving(watch, index, record);
	return record->kind == PERFRECORD_SWITCH ? take_switch(watch, index, record) : 0;
}

static int take_cpu(struct stallwatch *watch, const struct perfrecord *record)
{
	struct stall_event event = {
		.time_ns = record->time_ns,
		.kind = record->kind == PERFRECORD_SAMPLE ? STALL_SAMPLE : STALL_RUN,
		.tid = record->tid,
		.pid = record->pid,
		.cpu = record->cpu,
		.state = '-',
	};
	int error;

	if (record->kind == PERFRECORD_COMM)
		return seenprocesses_rename(&watch->seen, record->pid, record->comm,
					    watch->recording);
	if (record->kind != PERFRECORD_SAMPLE &&
	    (record->kind != PERFRECORD_CPU_SWITCH || record->out))
		return 0;
	error = seenprocesses_see(&watch->seen, record->pid, watch->recording);
	if (error == 0 && record->kind == PERFRECORD_SAMPLE)
		error = find_chain(watch, record, &event.chain);
	return error < 0 ? error : stallrecording_add(watch->recording, &event);
}

/* Index of the thread that the kernel knows by that number; SIZE_MAX: it is not watched. */
static size_t find_thread(const struct stallwatch *watch, int64_t global_tid)
{
	for (size_t i = 0; i < watch->events.threads.cnt; i++)
		if (watch->events.threads.data[i].global_tid == global_tid)
			return i;
	return SIZE_MAX;
}

static int take_about(struct stallwatch *watch, enum perfevent_role role,
		      const struct perfrecord *record)
{
	const bool waking = role == PERFEVENT_WAKING;
	const struct tracepoint *point =
		&watch->events.points.of[waking ? TRACEPOINT_WAKING : TRACEPOINT_SIGNAL];
	struct stall_event event = {
		.time_ns = record->time_ns,
		.kind = waking ? STALL_WAKE : STALL_SIGNAL,
		.pid = record->pid,
		.other = record->tid,
		.cpu = record->cpu,
		.state = '-',
	};
	int64_t pid, number = 0;
	size_t index;
	int error;

	if (!perfrecord_number(record, point->pid_off, 4, &pid) ||
	    (!waking && !perfrecord_number(record, point->value_off, point->value_size, &number)))
		return 0;
	index = find_thread(watch, pid);
	if (index == SIZE_MAX)
		return 0;
	event.tid = watch->threads.list.data[index].tid;
	event.value = (uint64_t)number;
	error = seenprocesses_see(&watch->seen, record->pid, watch->recording);
	if (error == 0)
		error = find_chain(watch, record, &event.chain);
	return error < 0 ? error : stallrecording_add(watch->recording, &event);
}

int stallwatch_take(void *context, enum perfevent_role role, size_t index,
		    const struct perfrecord *record)
{
	struct stallwatch *watch = context;

	if (record->kind == PERFRECORD_LOST) {
		watch->recording->lost += record->lost;
		return 0;
	}
	if (role == PERFEVENT_THREAD)
		return take_thread(watch, index, record);
	if (role == PERFEVENT_CPU)
		return take_cpu(watch, record);
	return record->kind == PERFRECORD_SAMPLE ? take_about(watch, role, record) : 0;
}
