/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/childtext.h"

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
	char *words;	    /* each with its NUL; NULL: free */
	size_t words_bytes; /* of all */
	const char *what, *instead;
	bool as_is;
	enum childtext_state state;
	uint64_t order; /* of the question */
	int64_t end_ns; /* of its keeping */
	struct str body, why;
};

struct childtext {
	char *program, *store; /* store: PERFTRACKER_STORE=PLACE */
	int limit_ms, stop_fd;
	size_t bytes_max;
	unsigned entry_max;
	pthread_t thread;
	pthread_mutex_t lock; /* of all below */
	pthread_cond_t news;
	struct entry entries[CHILDTEXT_ENTRIES];
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

/* The caller's environment with the server's store (NULL: unchanged). A URL on a command line would show its password. */
static const char **make_environment(const char *store)
{
	size_t cnt = 0, kept = 0;
	const char **ret;

	while (environ[cnt] != NULL)
		cnt++;
	ret = calloc(cnt + 2, sizeof(*ret));
	for (size_t i = 0; ret != NULL && i < cnt; i++) {
		if (store == NULL || strncmp(environ[i], "PERFTRACKER_STORE=", 18) != 0)
			ret[kept++] = environ[i];
	}
	if (ret != NULL)
		ret[kept] = store;
	return ret;
}

static void limit_child(pid_t pid, int limit_ms, bool of_memory)
{
	const rlim_t seconds = (rlim_t)limit_ms / 1000 + 1;
	const struct rlimit memory = { MEMORY_BYTES_MAX, MEMORY_BYTES_MAX },
			    time = { seconds, seconds }, core = { 0, 0 };

	(void)setpriority(PRIO_PROCESS, (id_t)pid, LOWEST_PRIORITY);
	if (of_memory && !sanitized) /* a sanitizer reserves terabytes */
		(void)prlimit(pid, RLIMIT_AS, &memory, NULL);
	(void)prlimit(pid, RLIMIT_CPU, &time, NULL); /* also when the server is killed */
	(void)prlimit(pid, RLIMIT_CORE, &core, NULL);
}

static int start_child(const struct childtext *childtext, const struct entry *entry,
		       struct child *child)
{
	const char *argv[CHILDTEXT_WORDS_MAX + 2] = { childtext->program };
	const char **environment = make_environment(entry->as_is ? NULL : childtext->store);
	int out[2], err[2], ret;
	size_t cnt = 1;

	if (environment == NULL)
		return -ENOMEM;
	for (const char *at = entry->words; at < entry->words + entry->words_bytes;
	     at += strlen(at) + 1)
		argv[cnt++] = at;
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
		limit_child(child->pid, childtext->limit_ms, !entry->as_is);
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
static void follow_child(const struct childtext *childtext, struct child *child)
{
	int64_t end_ns = clock_mono_ns() + childtext->limit_ms * NSEC_PER_MSEC;

	while (child->fds[0] >= 0 || child->fds[1] >= 0) {
		struct pollfd fds[] = { { child->fds[0], POLLIN, 0 },
					{ child->fds[1], POLLIN, 0 },
					{ childtext->stop_fd, POLLIN, 0 } };
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
static int end_child(const struct childtext *childtext, struct child *child)
{
	int64_t end_ns = clock_mono_ns() + childtext->limit_ms * NSEC_PER_MSEC;
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
static enum childtext_state judge(const struct childtext *childtext, const struct entry *entry,
				  const struct child *child, int status, struct str *why)
{
	if (child->late)
		str_printf(why, "%s took longer than %d s; %s", entry->what,
			   childtext->limit_ms / 1000, entry->instead);
	else if (child->large)
		str_printf(why, "%s is longer than %zu KiB; %s", entry->what,
			   childtext->bytes_max / 1024, entry->instead);
	else if (status < 0)
		str_printf(why, "%s: its process was lost: %s", entry->what, strerror(-status));
	else if (WIFSIGNALED(status))
		str_printf(why, "%s ended by signal %d; %s", entry->what, WTERMSIG(status),
			   entry->instead);
	else if (WIFEXITED(status) && child->texts[0]->len > 0)
		return CHILDTEXT_DONE; /* also without the inputs that could not be used */
	else if (why->len == 0)
		str_printf(why, "%s failed with exit status %d; %s", entry->what,
			   WEXITSTATUS(status), entry->instead);
	return CHILDTEXT_FAILED;
}

static enum childtext_state run_child(const struct childtext *childtext, const struct entry *entry,
				      struct str *body, struct str *why)
{
	struct child child = { .fds = { -1, -1 },
			       .texts = { body, why },
			       .max = { childtext->bytes_max, WHY_BYTES_MAX } };
	int status = start_child(childtext, entry, &child);

	if (status < 0) {
		str_printf(why, "%s can't be started: %s", entry->what, strerror(-status));
	} else {
		follow_child(childtext, &child);
		status = end_child(childtext, &child);
	}
	for (size_t i = 0; i < 2; i++) {
		if (child.fds[i] >= 0)
			(void)close(child.fds[i]);
	}
	return judge(childtext, entry, &child, status, why);
}

/* --- the thread --- */

static struct entry *next_entry(struct childtext *childtext)
{
	struct entry *ret = NULL;

	for (size_t i = 0; i < CHILDTEXT_ENTRIES; i++) {
		struct entry *entry = &childtext->entries[i];

		if (entry->words != NULL && entry->state == CHILDTEXT_WAITS &&
		    (ret == NULL || entry->order < ret->order))
			ret = entry;
	}
	return ret;
}

static void *childtext_main(void *arg)
{
	struct childtext *childtext = arg;

	(void)pthread_setname_np(pthread_self(), "pt-page"); /* host/process/ownthreads.c */
	(void)pthread_mutex_lock(&childtext->lock);
	while (!childtext->closing) {
		struct entry *entry = next_entry(childtext);
		struct str body = { 0 }, why = { 0 };
		enum childtext_state state;

		if (entry == NULL) {
			(void)pthread_cond_wait(&childtext->news, &childtext->lock);
			continue;
		}
		/* An entry that waits is neither changed nor removed by the server's thread. */
		(void)pthread_mutex_unlock(&childtext->lock);
		state = run_child(childtext, entry, &body, &why);
		(void)pthread_mutex_lock(&childtext->lock);
		entry->body = body;
		entry->why = why;
		entry->state = state;
		entry->end_ns =
			clock_mono_ns() +
			(state == CHILDTEXT_DONE ? CHILDTEXT_KEPT_NS : CHILDTEXT_FAILURE_KEPT_NS);
	}
	(void)pthread_mutex_unlock(&childtext->lock);
	return NULL;
}

/* --- questions --- */

static void clear(struct entry *entry)
{
	free(entry->words);
	str_done(&entry->body);
	str_done(&entry->why);
	*entry = (struct entry){ 0 };
}

/* Puts the words one behind the other. Returns 0, -E2BIG or -ENOMEM. */
static int join(const struct childtext_question *question, struct str *ret)
{
	for (size_t i = 0; i < CHILDTEXT_WORDS_MAX; i++) {
		if (question->words[i] == NULL)
			return str_error(ret);
		str_append_len(ret, question->words[i], strlen(question->words[i]) + 1);
	}
	return -E2BIG;
}

static struct entry *find(struct childtext *childtext, const struct str *words, int64_t now_ns)
{
	struct entry *ret = NULL;

	for (size_t i = 0; i < CHILDTEXT_ENTRIES; i++) {
		struct entry *entry = &childtext->entries[i];

		if (entry->words == NULL)
			continue;
		if (entry->state != CHILDTEXT_WAITS && now_ns >= entry->end_ns)
			clear(entry);
		else if (entry->words_bytes == words->len &&
			 memcmp(entry->words, words->data, words->len) == 0)
			ret = entry;
	}
	return ret;
}

/* A free place, else that of the oldest result; NULL: all wait. */
static struct entry *find_place(struct childtext *childtext)
{
	struct entry *ret = NULL;

	for (size_t i = 0; i < childtext->entry_max; i++) {
		struct entry *entry = &childtext->entries[i];

		if (entry->words == NULL)
			return entry;
		if (entry->state != CHILDTEXT_WAITS && (ret == NULL || entry->order < ret->order))
			ret = entry;
	}
	if (ret != NULL)
		clear(ret);
	return ret;
}

static int start_thread(struct childtext *childtext)
{
	int error;

	if (childtext->started)
		return 0;
	error = pthread_create(&childtext->thread, NULL, childtext_main, childtext);
	childtext->started = error == 0;
	return -error;
}

/* Takes the words. */
static int begin(struct childtext *childtext, const struct childtext_question *question,
		 struct str *words)
{
	struct entry *entry = find_place(childtext);
	int error;

	if (entry == NULL)
		return -EBUSY;
	error = start_thread(childtext);
	if (error < 0)
		return error;
	*entry = (struct entry){ .words = words->data,
				 .words_bytes = words->len,
				 .what = question->what,
				 .instead = question->instead,
				 .as_is = question->as_is,
				 .order = childtext->order++ };
	*words = (struct str){ 0 };
	(void)pthread_cond_signal(&childtext->news);
	return CHILDTEXT_WAITS;
}

int childtext_ask(struct childtext *childtext, const struct childtext_question *question,
		  struct str *body, struct str *why)
{
	struct str words = { 0 };
	struct entry *entry;
	int ret = join(question, &words);

	if (ret < 0) {
		str_done(&words);
		return ret;
	}
	(void)pthread_mutex_lock(&childtext->lock);
	entry = find(childtext, &words, clock_mono_ns());
	ret = entry != NULL ? (int)entry->state : begin(childtext, question, &words);
	if (entry != NULL && ret != CHILDTEXT_WAITS) {
		str_append_len(why, str_borrow(&entry->why), entry->why.len);
		if (ret == CHILDTEXT_DONE)
			str_append_len(body, str_borrow(&entry->body), entry->body.len);
		if (str_error(&entry->body) < 0)
			ret = -ENOMEM;
	}
	(void)pthread_mutex_unlock(&childtext->lock);
	str_done(&words);
	return ret;
}

/* --- life --- */

struct childtext *childtext_new(const struct childtext_options *options)
{
	struct childtext *childtext = calloc(1, sizeof(*childtext));
	const char *place = options->place[0] != '\0' ? options->place : "none";
	struct str store = { 0 };

	if (childtext == NULL)
		return NULL;
	(void)pthread_mutex_init(&childtext->lock, NULL);
	(void)pthread_cond_init(&childtext->news, NULL);
	str_printf(&store, "PERFTRACKER_STORE=%s", place);
	childtext->store = str_error(&store) == 0 ? store.data : NULL;
	childtext->program = strdup(options->program != NULL ? options->program : "/proc/self/exe");
	childtext->limit_ms = options->limit_ms > 0 ? options->limit_ms : LIMIT_MS;
	childtext->bytes_max = options->bytes_max > 0 ? options->bytes_max : BYTES_MAX;
	childtext->entry_max = options->entry_max > 0 ? MIN(options->entry_max, CHILDTEXT_ENTRIES)
						      : CHILDTEXT_ENTRIES;
	childtext->stop_fd = eventfd(0, EFD_CLOEXEC);
	if (childtext->store != NULL && childtext->program != NULL && childtext->stop_fd >= 0)
		return childtext;
	return childtext_free(childtext);
}

struct childtext *childtext_free(struct childtext *childtext)
{
	static const uint64_t one = 1;

	if (childtext == NULL)
		return NULL;
	if (childtext->started) {
		(void)pthread_mutex_lock(&childtext->lock);
		childtext->closing = true;
		(void)pthread_cond_signal(&childtext->news);
		(void)pthread_mutex_unlock(&childtext->lock);
		(void)!write(childtext->stop_fd, &one, sizeof(one));
		(void)pthread_join(childtext->thread, NULL);
	}
	for (size_t i = 0; i < CHILDTEXT_ENTRIES; i++)
		clear(&childtext->entries[i]);
	if (childtext->stop_fd >= 0)
		(void)close(childtext->stop_fd);
	(void)pthread_cond_destroy(&childtext->news);
	(void)pthread_mutex_destroy(&childtext->lock);
	free(childtext->program);
	free(childtext->store);
	free(childtext);
	return NULL;
}
