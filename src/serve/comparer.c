/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/comparer.h"

#include "base/clock.h"
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define LIMIT_MS 60000
#define BYTES_MAX ((size_t)4 << 20)
#define WHY_BYTES_MAX 2048u
#define MEMORY_BYTES_MAX ((rlim_t)4 << 30)
#define TICK_MS 20
#define REAP_MS 1000 /* for a killed child; a child that sleeps in the kernel may never end */
#define LOWEST_PRIORITY 19

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
static const bool sanitized = true;
#else
static const bool sanitized = false;
#endif

struct entry {
	char *before, *after; /* NULL: free */
	enum comparer_state state;
	uint64_t order; /* of the question */
	int64_t end_ns; /* of its keeping */
	struct str body, why;
};

struct comparer {
	char *program, *store; /* store: PERFTRACKER_STORE=PLACE */
	int limit_ms, stop_fd;
	size_t bytes_max;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t news;
	struct entry entries[COMPARER_ENTRIES];
	uint64_t order;
	bool started, closing;
};

/* --- the child --- */

struct child {
	pid_t pid;
	int fds[2]; /* its output and its messages; -1: ended */
	struct str *texts[2];
	size_t max[2];
	bool late, large, stopped;
};

/* The caller's environment with the server's store. A URL on a command line would show its password. */
static const char **make_environment(const char *store)
{
	size_t cnt = 0, kept = 0;
	const char **ret;

	while (environ[cnt] != NULL)
		cnt++;
	ret = calloc(cnt + 2, sizeof(*ret));
	for (size_t i = 0; ret != NULL && i < cnt; i++) {
		if (strncmp(environ[i], "PERFTRACKER_STORE=", 18) != 0)
			ret[kept++] = environ[i];
	}
	if (ret != NULL)
		ret[kept] = store;
	return ret;
}

static void limit_child(pid_t pid, int limit_ms)
{
	const rlim_t seconds = (rlim_t)limit_ms / 1000 + 1;
	const struct rlimit memory = { MEMORY_BYTES_MAX, MEMORY_BYTES_MAX },
			    time = { seconds, seconds }, core = { 0, 0 };

	(void)setpriority(PRIO_PROCESS, (id_t)pid, LOWEST_PRIORITY);
	if (!sanitized) /* a sanitizer reserves terabytes */
		(void)prlimit(pid, RLIMIT_AS, &memory, NULL);
	(void)prlimit(pid, RLIMIT_CPU, &time, NULL); /* also when the server is killed */
	(void)prlimit(pid, RLIMIT_CORE, &core, NULL);
}

static int start_child(const struct comparer *comparer, const struct entry *entry,
		       struct child *child)
{
	const char *const argv[] = { comparer->program, "diff", "--format", "html",
				     "--jobs",		"1",	"--",	    entry->before,
				     entry->after,	NULL };
	const char **environment = make_environment(comparer->store);
	int out[2], err[2], ret;

	if (environment == NULL)
		return -ENOMEM;
	if (pipe2(out, O_CLOEXEC) < 0) {
		ret = -errno;
		free(environment);
		return ret;
	}
	if (pipe2(err, O_CLOEXEC) < 0) {
		ret = -errno;
		(void)close(out[0]);
		(void)close(out[1]);
		free(environment);
		return ret;
	}
	ret = subprocess_start_in(argv, environment,
				  (const int[3]){ SUBPROCESS_NULL, out[1], err[1] }, &child->pid);
	free(environment);
	(void)close(out[1]);
	(void)close(err[1]);
	child->fds[0] = out[0];
	child->fds[1] = err[0];
	if (ret == 0)
		limit_child(child->pid, comparer->limit_ms);
	return ret;
}

/* Reads what is there now; -1 in fds[i] at the end of the pipe. */
static void read_child(struct child *child, size_t i)
{
	char chunk[16384];
	ssize_t got = read(child->fds[i], chunk, sizeof(chunk));
	size_t room = child->max[i] - child->texts[i]->len;

	if (got > 0) {
		str_append_len(child->texts[i], chunk, MIN((size_t)got, room));
		child->large |= i == 0 && (size_t)got > room;
		return;
	}
	if (got < 0 && (errno == EINTR || errno == EAGAIN))
		return;
	(void)close(child->fds[i]);
	child->fds[i] = -1;
}

/* Until both pipes end, a limit is reached, or the server ends. */
static void follow_child(const struct comparer *comparer, struct child *child)
{
	int64_t end_ns = clock_mono_ns() + comparer->limit_ms * NSEC_PER_MSEC;

	while (child->fds[0] >= 0 || child->fds[1] >= 0) {
		struct pollfd fds[] = { { child->fds[0], POLLIN, 0 },
					{ child->fds[1], POLLIN, 0 },
					{ comparer->stop_fd, POLLIN, 0 } };
		int64_t left_ns = end_ns - clock_mono_ns();

		child->late = left_ns <= 0;
		if (child->late || child->large || child->stopped)
			return;
		if (poll(fds, ARRAY_SIZE(fds), (int)(left_ns / NSEC_PER_MSEC) + 1) < 0)
			continue;
		child->stopped = fds[2].revents != 0;
		for (size_t i = 0; i < 2; i++) {
			if (fds[i].revents != 0)
				read_child(child, i);
		}
	}
}

/* Returns its wait status, or -errno: it was not reaped. */
static int end_child(const struct comparer *comparer, struct child *child)
{
	int64_t end_ns = clock_mono_ns() + comparer->limit_ms * NSEC_PER_MSEC;
	bool cut = child->late || child->large || child->stopped;
	int status = 0, got;

	if (cut) {
		(void)subprocess_signal(child->pid, SIGKILL);
		end_ns = clock_mono_ns() + REAP_MS * NSEC_PER_MSEC;
	}
	while ((got = subprocess_reap(child->pid, &status)) == 0) {
		if (clock_mono_ns() >= end_ns) {
			if (cut)
				return -ETIMEDOUT;
			cut = true;
			child->late = true;
			(void)subprocess_signal(child->pid, SIGKILL);
			end_ns = clock_mono_ns() + REAP_MS * NSEC_PER_MSEC;
		}
		(void)poll(NULL, 0, TICK_MS);
	}
	return got == 1 ? status : got;
}

/* Fills why if the child's own messages do not say it. */
static enum comparer_state judge(const struct comparer *comparer, const struct child *child,
				 int status, const struct str *body, struct str *why)
{
	static const char self[] =
		"; `perftracker diff` on the command line compares them without a limit";

	if (child->late)
		str_printf(why, "the comparison took longer than %d s%s", comparer->limit_ms / 1000,
			   self);
	else if (child->large)
		str_printf(why, "the comparison is longer than %zu KiB%s",
			   comparer->bytes_max / 1024, self);
	else if (status < 0)
		str_printf(why, "the comparison's process was lost: %s", strerror(-status));
	else if (WIFSIGNALED(status))
		str_printf(why, "the comparison ended by signal %d%s", WTERMSIG(status), self);
	else if (WIFEXITED(status) && body->len > 0)
		return COMPARER_DONE; /* also without the inputs that could not be used */
	else if (why->len == 0)
		str_printf(why, "the comparison failed with exit status %d%s", WEXITSTATUS(status),
			   self);
	return COMPARER_FAILED;
}

static enum comparer_state run_child(const struct comparer *comparer, const struct entry *entry,
				     struct str *body, struct str *why)
{
	struct child child = { .fds = { -1, -1 },
			       .texts = { body, why },
			       .max = { comparer->bytes_max, WHY_BYTES_MAX } };
	int status = start_child(comparer, entry, &child);

	if (status < 0) {
		str_printf(why, "the comparison can't be started: %s", strerror(-status));
	} else {
		follow_child(comparer, &child);
		status = end_child(comparer, &child);
	}
	for (size_t i = 0; i < 2; i++) {
		if (child.fds[i] >= 0)
			(void)close(child.fds[i]);
	}
	return judge(comparer, &child, status, body, why);
}

/* --- the thread --- */

static struct entry *next_entry(struct comparer *comparer)
{
	struct entry *ret = NULL;

	for (size_t i = 0; i < COMPARER_ENTRIES; i++) {
		struct entry *entry = &comparer->entries[i];

		if (entry->before != NULL && entry->state == COMPARER_WAITS &&
		    (ret == NULL || entry->order < ret->order))
			ret = entry;
	}
	return ret;
}

static void *comparer_main(void *arg)
{
	struct comparer *comparer = arg;

	(void)pthread_setname_np(pthread_self(), "pt-page"); /* host/process/ownthreads.c */
	(void)pthread_mutex_lock(&comparer->lock);
	while (!comparer->closing) {
		struct entry *entry = next_entry(comparer);
		struct str body = { 0 }, why = { 0 };
		enum comparer_state state;

		if (entry == NULL) {
			(void)pthread_cond_wait(&comparer->news, &comparer->lock);
			continue;
		}
		/* An entry that waits is neither changed nor removed by the server's thread. */
		(void)pthread_mutex_unlock(&comparer->lock);
		state = run_child(comparer, entry, &body, &why);
		(void)pthread_mutex_lock(&comparer->lock);
		entry->body = body;
		entry->why = why;
		entry->state = state;
		entry->end_ns =
			clock_mono_ns() +
			(state == COMPARER_DONE ? COMPARER_KEPT_NS : COMPARER_FAILURE_KEPT_NS);
	}
	(void)pthread_mutex_unlock(&comparer->lock);
	return NULL;
}

/* --- questions --- */

static void clear(struct entry *entry)
{
	free(entry->before);
	free(entry->after);
	str_done(&entry->body);
	str_done(&entry->why);
	*entry = (struct entry){ 0 };
}

static struct entry *find(struct comparer *comparer, const char *before, const char *after,
			  int64_t now_ns)
{
	struct entry *ret = NULL;

	for (size_t i = 0; i < COMPARER_ENTRIES; i++) {
		struct entry *entry = &comparer->entries[i];

		if (entry->before == NULL)
			continue;
		if (entry->state != COMPARER_WAITS && now_ns >= entry->end_ns)
			clear(entry);
		else if (strcmp(entry->before, before) == 0 && strcmp(entry->after, after) == 0)
			ret = entry;
	}
	return ret;
}

/* A free place, else that of the oldest result; NULL: all wait. */
static struct entry *find_place(struct comparer *comparer)
{
	struct entry *ret = NULL;

	for (size_t i = 0; i < COMPARER_ENTRIES; i++) {
		struct entry *entry = &comparer->entries[i];

		if (entry->before == NULL)
			return entry;
		if (entry->state != COMPARER_WAITS && (ret == NULL || entry->order < ret->order))
			ret = entry;
	}
	if (ret != NULL)
		clear(ret);
	return ret;
}

static int start_thread(struct comparer *comparer)
{
	int error;

	if (comparer->started)
		return 0;
	error = pthread_create(&comparer->thread, NULL, comparer_main, comparer);
	comparer->started = error == 0;
	return -error;
}

static int begin(struct comparer *comparer, const char *before, const char *after)
{
	struct entry *entry = find_place(comparer);
	int error;

	if (entry == NULL)
		return -EBUSY;
	error = start_thread(comparer);
	if (error < 0)
		return error;
	*entry = (struct entry){ .before = strdup(before),
				 .after = strdup(after),
				 .order = comparer->order++ };
	if (entry->before == NULL || entry->after == NULL) {
		clear(entry);
		return -ENOMEM;
	}
	(void)pthread_cond_signal(&comparer->news);
	return COMPARER_WAITS;
}

int comparer_ask(struct comparer *comparer, const char *before, const char *after, struct str *body,
		 struct str *why)
{
	struct entry *entry;
	int ret;

	(void)pthread_mutex_lock(&comparer->lock);
	entry = find(comparer, before, after, clock_mono_ns());
	ret = entry != NULL ? (int)entry->state : begin(comparer, before, after);
	if (entry != NULL && ret != COMPARER_WAITS) {
		str_append_len(why, str_borrow(&entry->why), entry->why.len);
		if (ret == COMPARER_DONE)
			str_append_len(body, str_borrow(&entry->body), entry->body.len);
		if (str_error(&entry->body) < 0)
			ret = -ENOMEM;
	}
	(void)pthread_mutex_unlock(&comparer->lock);
	return ret;
}

/* --- life --- */

struct comparer *comparer_new(const struct comparer_options *options)
{
	struct comparer *comparer = calloc(1, sizeof(*comparer));
	const char *place = options->place[0] != '\0' ? options->place : "none";
	struct str store = { 0 };

	if (comparer == NULL)
		return NULL;
	(void)pthread_mutex_init(&comparer->lock, NULL);
	(void)pthread_cond_init(&comparer->news, NULL);
	str_printf(&store, "PERFTRACKER_STORE=%s", place);
	comparer->store = str_error(&store) == 0 ? store.data : NULL;
	comparer->program = strdup(options->program != NULL ? options->program : "/proc/self/exe");
	comparer->limit_ms = options->limit_ms > 0 ? options->limit_ms : LIMIT_MS;
	comparer->bytes_max = options->bytes_max > 0 ? options->bytes_max : BYTES_MAX;
	comparer->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (comparer->store != NULL && comparer->program != NULL && comparer->stop_fd >= 0)
		return comparer;
	return comparer_free(comparer);
}

struct comparer *comparer_free(struct comparer *comparer)
{
	static const uint64_t one = 1;

	if (comparer == NULL)
		return NULL;
	if (comparer->started) {
		(void)pthread_mutex_lock(&comparer->lock);
		comparer->closing = true;
		(void)pthread_cond_signal(&comparer->news);
		(void)pthread_mutex_unlock(&comparer->lock);
		(void)!write(comparer->stop_fd, &one, sizeof(one));
		(void)pthread_join(comparer->thread, NULL);
	}
	for (size_t i = 0; i < COMPARER_ENTRIES; i++)
		clear(&comparer->entries[i]);
	if (comparer->stop_fd >= 0)
		(void)close(comparer->stop_fd);
	(void)pthread_cond_destroy(&comparer->news);
	(void)pthread_mutex_destroy(&comparer->lock);
	free(comparer->program);
	free(comparer->store);
	free(comparer);
	return NULL;
}
