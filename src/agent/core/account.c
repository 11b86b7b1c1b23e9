/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/core/account.h"

#include "base/clock.h"
#include "format/shared/recorder.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define FILE_MAX 2048 /* /proc/PID/status is 1.5 KB at most */

/* Opens PREFIX ID / NAME for reading. Returns the descriptor or -errno. */
static int open_file(const char *prefix, uint32_t id, const char *name)
{
	char path[64], digits[12];
	size_t len = strlen(prefix), cnt = 0;
	int fd;

	memcpy(path, prefix, len);
	do
		digits[cnt++] = (char)('0' + id % 10);
	while ((id /= 10) != 0);
	while (cnt > 0)
		path[len++] = digits[--cnt];
	path[len++] = '/';
	memcpy(path + len, name, MIN(strlen(name) + 1, sizeof(path) - len));
	path[sizeof(path) - 1] = '\0';
	fd = open(path, O_RDONLY | O_CLOEXEC);
	return fd >= 0 ? fd : -errno;
}

int account_open(uint32_t tid, const char *name)
{
	return open_file("/proc/self/task/", tid, name);
}

int account_open_process(uint32_t pid, const char *name)
{
	return open_file("/proc/", pid, name);
}

int64_t account_cpu_ns(uint32_t tid)
{
	/* The clock of a thread, as the kernel numbers them: its id inverted, bits for "thread"
	 * and "what the scheduler counts" (include/linux/posix-timers.h). */
	clockid_t clock = (clockid_t)(~tid << 3 | 6u);
	struct timespec now;

	if (clock_gettime(clock, &now) != 0)
		return -1;
	return (int64_t)now.tv_sec * NSEC_PER_SEC + now.tv_nsec;
}

static void close_files(struct account *account)
{
	own_fd_close(&account->schedstat);
	own_fd_close(&account->stat);
	own_fd_close(&account->status);
	account->tid = 0;
}

static void open_files(struct account *account, uint32_t tid)
{
	close_files(account);
	account->schedstat = own_fd_take(account_open(tid, "schedstat"));
	account->stat = own_fd_take(account_open(tid, "stat"));
	account->status = own_fd_take(account_open(tid, "status"));
	account->tid = tid;
}

/* Reads an open file of /proc as NUL-terminated text. False: not readable. */
static bool read_text(const struct own_fd *file, char *text)
{
	int fd = own_fd_get(file);
	ssize_t len = fd >= 0 ? pread(fd, text, FILE_MAX - 1, 0) : -1;

	if (len <= 0)
		return false;
	text[len] = '\0';
	return true;
}

/* The number at or behind *text; *text moves behind it. */
static uint64_t next_number(const char **text)
{
	const char *p = *text;
	uint64_t value = 0;

	while (*p != '\0' && (*p < '0' || *p > '9'))
		p++;
	for (; *p >= '0' && *p <= '9'; p++)
		value = value * 10 + (uint64_t)(*p - '0');
	*text = p;
	return value;
}

static uint64_t number_behind(const char *text, const char *label)
{
	const char *at = strstr(text, label);

	if (at == NULL)
		return 0;
	at += strlen(label);
	return next_number(&at);
}

/* stat: "tid (name) S ppid pgrp session tty tpgid flags minflt cminflt majflt ..." */
static bool parse_faults(const char *text, uint64_t *minor, uint64_t *major)
{
	const char *at = strrchr(text, ')'); /* the name may hold anything */

	if (at == NULL)
		return false;
	for (int field = 0; field < 6; field++) /* ppid pgrp session tty tpgid flags */
		(void)next_number(&at);
	*minor = next_number(&at);
	(void)next_number(&at);
	*major = next_number(&at);
	return true;
}

size_t account_look(struct account *account, uint32_t tid, int64_t now_ns, struct ring_record *ret)
{
	char text[FILE_MAX];
	const char *at = text;
	size_t cnt = 0;

	if (account->tid != tid)
		open_files(account, tid);
	if (read_text(&account->schedstat, text)) {
		ret[cnt] = (struct ring_record){ .time_ns = now_ns, .kind = FLIGHT_CPU };
		ret[cnt].value = (int64_t)next_number(&at);
		ret[cnt++].extra = next_number(&at);
	}
	ret[cnt] = (struct ring_record){ .time_ns = now_ns, .kind = FLIGHT_FAULTS };
	if (read_text(&account->stat, text)) {
		uint64_t minor = 0;

		if (parse_faults(text, &minor, &ret[cnt].extra))
			ret[cnt++].value = (int64_t)minor;
	}
	if (read_text(&account->status, text)) {
		ret[cnt] = (struct ring_record){ .time_ns = now_ns, .kind = FLIGHT_SWITCHES };
		ret[cnt].value = (int64_t)number_behind(text, "\nvoluntary_ctxt_switches:");
		ret[cnt++].extra = number_behind(text, "nonvoluntary_ctxt_switches:");
	}
	return cnt;
}

static uint64_t parse_hex(const char **text)
{
	uint64_t value = 0;
	const char *p = *text;

	for (;; p++) {
		if (*p >= '0' && *p <= '9')
			value = value << 4 | (uint64_t)(*p - '0');
		else if (*p >= 'a' && *p <= 'f')
			value = value << 4 | (uint64_t)(*p - 'a' + 10);
		else if (*p != 'x')
			break;
	}
	*text = p;
	return value;
}

/* "202 0x7f... ..." number and arguments, "running", or "-1 ...": in the kernel for another reason. */
bool account_call(int fd, struct account_call *ret)
{
	char text[160];
	const char *at = text;
	ssize_t len = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
	uint32_t number = 0;

	if (len <= 0 || text[0] < '0' || text[0] > '9')
		return false;
	text[len] = '\0';
	for (; *at >= '0' && *at <= '9'; at++)
		number = number * 10 + (uint32_t)(*at - '0');
	if (number > UINT16_MAX >> 4 || *at != ' ')
		return false;
	at++;
	*ret = (struct account_call){ .number = number, .argument = parse_hex(&at) };
	return true;
}
