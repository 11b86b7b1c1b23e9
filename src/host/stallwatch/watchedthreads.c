/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/watchedthreads.h"

#include "host/process/procfs.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LIST_MAX = 8192 };

/* What the files stat and schedstat say. */
struct now {
	char state, name[16];
	uint64_t minor, major, cpu_ns, delay_ns, slices;
};

static void close_files(struct watchedthread *thread)
{
	for (size_t i = 0; i < WATCHED_CNT; i++) {
		if (thread->fds[i] >= 0)
			(void)close(thread->fds[i]);
		thread->fds[i] = -1;
	}
}

void watchedthreads_done(struct watchedthreads *threads)
{
	vec_foreach(thread, &threads->list)
		close_files(thread);
	vec_done(&threads->list);
}

static int open_file(const struct watchedthreads *threads, const struct watchedthread *thread,
		     const char *name)
{
	char path[1024];

	(void)snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/task/%" PRIu32 "/%s", threads->root,
		       thread->pid, thread->tid, name);
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_file(int fd, char *text, size_t size)
{
	const ssize_t len = fd >= 0 ? pread(fd, text, size - 1, 0) : -1;

	if (len <= 0)
		return false;
	text[len] = '\0';
	return true;
}

static void open_files(const struct watchedthreads *threads, struct watchedthread *thread)
{
	char text[4096];

	thread->fds[WATCHED_STAT] = open_file(threads, thread, "stat");
	thread->fds[WATCHED_SCHEDSTAT] = open_file(threads, thread, "schedstat");
	thread->fds[WATCHED_SYSCALL] = open_file(threads, thread, "syscall");
	thread->fds[WATCHED_STACK] = open_file(threads, thread, "stack");
	/* Whether it is permitted shows at the first read. */
	if (thread->fds[WATCHED_STACK] < 0 ||
	    pread(thread->fds[WATCHED_STACK], text, sizeof(text), 0) < 0) {
		if (thread->fds[WATCHED_STACK] >= 0)
			(void)close(thread->fds[WATCHED_STACK]);
		thread->fds[WATCHED_STACK] = open_file(threads, thread, "wchan");
		thread->stack_is_wchan = true;
	}
}

/* Returns false when the thread has ended. */
static bool read_now(const struct watchedthread *thread, struct now *ret)
{
	char text[1024];
	const char *open, *close;

	*ret = (struct now){ 0 };
	if (!read_file(thread->fds[WATCHED_STAT], text, sizeof(text)))
		return false;
	open = strchr(text, '(');
	close = strrchr(text, ')');
	if (open == NULL || close == NULL || close < open ||
	    sscanf(close + 1, " %c %*s %*s %*s %*s %*s %*s %" SCNu64 " %*s %" SCNu64, &ret->state,
		   &ret->minor, &ret->major) != 3)
		return false;
	(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)(close - open - 1), open + 1);
	if (read_file(thread->fds[WATCHED_SCHEDSTAT], text, sizeof(text)))
		(void)sscanf(text, "%" SCNu64 " %" SCNu64 " %" SCNu64, &ret->cpu_ns, &ret->delay_ns,
			     &ret->slices);
	return ret->state != 'Z' && ret->state != 'X';
}

static uint32_t intern(struct stall_recording *recording, const char *text)
{
	return strtab_intern(&recording->texts, text, strlen(text));
}

static int add_thread(struct watchedthreads *threads, uint32_t pid, uint32_t tid,
		      struct stall_recording *recording)
{
	struct watchedthread thread = { .tid = tid, .pid = pid, .fds = { -1, -1, -1, -1 } };
	struct stall_thread about = { .tid = tid, .pid = pid, .main = tid == pid };
	char cpus[256] = "";
	struct now now;
	int error;

	open_files(threads, &thread);
	if (!read_now(&thread, &now)) {
		close_files(&thread);
		return -ESRCH;
	}
	if (procfs_read_cpus(threads->root, tid, cpus, sizeof(cpus)) < 0) /* of a thread, too */
		cpus[0] = '\0';
	thread.first_cpu_ns = now.cpu_ns;
	thread.first_minor = now.minor;
	thread.first_major = now.major;
	thread.delay_ns = now.delay_ns;
	about.state = now.state;
	about.name = intern(recording, now.name);
	about.cpus = intern(recording, cpus);
	error = about.name == STRTAB_NONE || about.cpus == STRTAB_NONE ? -ENOMEM : 0;
	if (error == 0)
		error = vec_reserve(&recording->threads, recording->threads.cnt + 1);
	if (error == 0)
		error = vec_push(&threads->list, thread);
	if (error < 0) {
		close_files(&thread);
		return error;
	}
	recording->threads.data[recording->threads.cnt++] = about;
	return 0;
}

struct candidate {
	uint32_t tid;
	uint64_t ticks;
};

static int compare(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;

	if (x->ticks != y->ticks)
		return x->ticks > y->ticks ? -1 : 1;
	return x->tid < y->tid ? -1 : x->tid > y->tid;
}

int watchedthreads_add(struct watchedthreads *threads, uint32_t pid, size_t max,
		       struct stall_recording *recording)
{
	_cleanup_free_ uint32_t *tids = malloc(LIST_MAX * sizeof(*tids));
	_cleanup_free_ struct candidate *found = calloc(LIST_MAX, sizeof(*found));
	size_t cnt = 0;
	int total, error;

	if (tids == NULL || found == NULL)
		return -ENOMEM;
	total = procfs_list(threads->root, pid, tids, LIST_MAX);
	if (total <= 0)
		return -ESRCH;
	error = add_thread(threads, pid, pid, recording);
	for (int i = 0; i < total; i++) {
		struct procfs_stat stat;

		if (tids[i] == pid || procfs_read_stat(threads->root, pid, tids[i], &stat) < 0)
			continue;
		found[cnt++] = (struct candidate){ tids[i], stat.ticks };
	}
	qsort(found, cnt, sizeof(*found), compare);
	for (size_t i = 0; i < cnt && error == 0; i++) {
		if (i + 1 >= max) {
			threads->left_out += cnt - i;
			break;
		}
		error = add_thread(threads, pid, found[i].tid, recording);
		if (error == -ESRCH) /* it has ended meanwhile */
			error = 0;
	}
	return error;
}

/* "[<0>] futex_wait+0xa2/0x140\n..." */
void watchedthreads_parse_stack(const char *text, char *ret, size_t size)
{
	size_t len = 0;

	ret[0] = '\0';
	for (const char *line = text; *line != '\0';) {
		const char *name = strchr(line, ']');
		const size_t end = strcspn(line, "\n");

		if (name != NULL && name < line + end && name[1] == ' ') {
			size_t name_len = strcspn(name + 2, "+.\n");

			if (len + name_len + 2 > size)
				return;
			len += (size_t)snprintf(ret + len, size - len, "%s%.*s", len > 0 ? "<" : "",
						(int)name_len, name + 2);
		}
		line += end;
		line += *line == '\n';
	}
}

/* Where it waits: STRTAB_NONE: out of memory. */
static uint32_t read_chain(const struct watchedthread *thread, struct stall_recording *recording)
{
	char text[4096], chain[1024];

	if (!read_file(thread->fds[WATCHED_STACK], text, sizeof(text)))
		return 0;
	if (!thread->stack_is_wchan)
		watchedthreads_parse_stack(text, chain, sizeof(chain));
	else
		(void)snprintf(chain, sizeof(chain), "%.128s", strcmp(text, "0") != 0 ? text : "");
	return intern(recording, chain);
}

/* "202 0x7f... 0x80 ...", or "running", or "-1 ...". */
static uint64_t read_argument(const struct watchedthread *thread)
{
	char text[256];
	uint64_t argument = 0;
	long number;

	if (!read_file(thread->fds[WATCHED_SYSCALL], text, sizeof(text)) ||
	    sscanf(text, "%ld %" SCNx64, &number, &argument) != 2 || number < 0)
		return 0;
	return argument;
}

static int look_at(struct watchedthread *thread, int64_t now_ns, bool stacks,
		   struct stall_recording *recording)
{
	struct stall_event event = {
		.time_ns = now_ns, .kind = STALL_LOOK, .tid = thread->tid, .pid = thread->pid
	};
	struct stall_event delay = event;
	struct now now;
	int error;

	if (!read_now(thread, &now)) {
		thread->ended = true;
		return 0;
	}
	event.state = now.state;
	event.value = now.slices;
	if (stacks && now.state != 'R') {
		event.chain = read_chain(thread, recording);
		event.address = read_argument(thread);
	}
	if (event.chain == STRTAB_NONE)
		return -ENOMEM;
	error = stallrecording_add(recording, &event);
	if (error == 0 && now.delay_ns > thread->delay_ns) {
		delay.kind = STALL_DELAY;
		delay.state = '-';
		delay.value = now.delay_ns - thread->delay_ns;
		thread->delay_ns = now.delay_ns;
		error = stallrecording_add(recording, &delay);
	}
	return error;
}

int watchedthreads_look(struct watchedthreads *threads, int64_t now_ns, bool stacks,
			struct stall_recording *recording)
{
	int living = 0;

	vec_foreach(thread, &threads->list) {
		const int error = thread->ended ? 0 : look_at(thread, now_ns, stacks, recording);

		if (error < 0)
			return error;
		living += !thread->ended;
	}
	return living;
}

void watchedthreads_finish(struct watchedthreads *threads, struct stall_recording *recording)
{
	for (size_t i = 0; i < threads->list.cnt; i++) {
		const struct watchedthread *thread = &threads->list.data[i];
		struct stall_thread *about = &recording->threads.data[i];
		struct now now;

		about->cpu_ns = -1;
		if (thread->ended || !read_now(thread, &now))
			continue;
		if (thread->fds[WATCHED_SCHEDSTAT] >= 0)
			about->cpu_ns = (int64_t)(now.cpu_ns - thread->first_cpu_ns);
		about->minor_faults = now.minor - thread->first_minor;
		about->major_faults = now.major - thread->first_major;
	}
}
