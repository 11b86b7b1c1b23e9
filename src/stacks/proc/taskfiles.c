/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/proc/taskfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { SHORT_BYTES = 1024 };

/* The value behind "KEY:" and blanks of a line that begins with it; NULL for another line. */
static const char *value_of(const char *line, const char *key)
{
	const size_t len = strlen(key);

	if (strncmp(line, key, len) != 0 || line[len] != ':')
		return NULL;
	line += len + 1;
	return line + strspn(line, " \t");
}

static void take_number(const char *line, const char *key, uint32_t *ret)
{
	const char *value = value_of(line, key);

	if (value != NULL)
		*ret = (uint32_t)strtoul(value, NULL, 10);
}

/* "NSpid: 4711 12 1": the same process in each of its namespaces, from the reader's on. */
static void take_own_pid(const char *value, struct taskfiles_status *ret)
{
	char *end;

	for (uint32_t depth = 1; depth <= 32; depth++) {
		const unsigned long pid = strtoul(value, &end, 10);

		if (end == value)
			return;
		ret->own_pid = (uint32_t)pid;
		ret->own_depth = depth;
		value = end + strspn(end, " \t");
		if (*value == '\n')
			return;
	}
}

static void take_line(const char *line, struct taskfiles_status *ret)
{
	const char *value;
	unsigned int uid;

	/* Most lines are about other things. */
	if (strchr("NSTPUVvn", *line) == NULL)
		return;
	value = value_of(line, "Name");
	if (value != NULL)
		(void)snprintf(ret->name, sizeof(ret->name), "%.*s", (int)strcspn(value, "\n"),
			       value);
	value = value_of(line, "State");
	if (value != NULL)
		ret->state = *value;
	value = value_of(line, "NSpid");
	if (value != NULL)
		take_own_pid(value, ret);
	value = value_of(line, "Uid");
	if (value != NULL && sscanf(value, "%*u %u", &uid) == 1)
		ret->uid = uid;
	if (value_of(line, "VmSize") != NULL)
		ret->has_memory = true;
	take_number(line, "Pid", &ret->pid);
	take_number(line, "Tgid", &ret->tgid);
	take_number(line, "PPid", &ret->ppid);
	take_number(line, "TracerPid", &ret->tracer);
	take_number(line, "Threads", &ret->threads);
	take_number(line, "Seccomp", &ret->seccomp);
	take_number(line, "voluntary_ctxt_switches", &ret->waited);
	take_number(line, "nonvoluntary_ctxt_switches", &ret->preempted);
}

int taskfiles_parse_status(const char *text, struct taskfiles_status *ret)
{
	struct taskfiles_status status = { .own_depth = 0 };

	for (const char *line = text; line != NULL && *line != '\0';) {
		take_line(line, &status);
		line = strchr(line, '\n');
		if (line != NULL)
			line++;
	}
	if (status.name[0] == '\0' || strchr("RSDTtZXI", status.state) == NULL ||
	    status.state == '\0' || status.pid == 0)
		return -EINVAL;
	if (status.own_depth == 0) { /* kernels before 4.1 */
		status.own_pid = status.pid;
		status.own_depth = 1;
	}
	*ret = status;
	return 0;
}

int taskfiles_parse_syscall(const char *text, struct taskfiles_syscall *ret)
{
	struct taskfiles_syscall call = { .where = TASK_SYSCALL };
	uint64_t *args = call.args;
	int cnt;

	if (strncmp(text, "running", 7) == 0) {
		*ret = (struct taskfiles_syscall){ .where = TASK_RUNS };
		return 0;
	}
	if (sscanf(text, "-1 0x%" SCNx64 " 0x%" SCNx64, &call.sp, &call.pc) == 2) {
		call.where = TASK_BLOCKED;
		call.number = -1;
		*ret = call;
		return 0;
	}
	cnt = sscanf(text,
		     "%" SCNd64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64
		     " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64 " 0x%" SCNx64,
		     &call.number, &args[0], &args[1], &args[2], &args[3], &args[4], &args[5],
		     &call.sp, &call.pc);
	if (cnt != 9 || call.number < 0)
		return -EINVAL;
	*ret = call;
	return 0;
}

size_t taskfiles_parse_kernel(const char *text, char *ret, size_t size, size_t cap)
{
	size_t cnt = 0, used = 0;

	if (size == 0)
		return 0;
	ret[0] = '\0';
	while (*text != '\0' && cnt < cap) {
		const char *name = text + strcspn(text, "]\n");
		size_t len;

		name += *name == ']';
		name += strspn(name, " ");
		len = strcspn(name, "+\n");
		if (len > 0 && *name != '0') {
			if (used + len + 2 > size)
				break;
			memcpy(ret + used, name, len);
			used += len;
			ret[used++] = '\n';
			ret[used] = '\0';
			cnt++;
		}
		text = name + strcspn(name, "\n");
		text += *text == '\n';
	}
	return cnt;
}

const char *taskfiles_find_variable(const char *text, size_t len, const char *name, size_t *ret_len)
{
	const size_t name_len = strlen(name);

	for (size_t at = 0; at < len;) {
		const size_t entry = strnlen(text + at, len - at);

		if (entry > name_len && memcmp(text + at, name, name_len) == 0 &&
		    text[at + name_len] == '=') {
			*ret_len = entry - name_len - 1;
			return text + at + name_len + 1;
		}
		at += entry + 1;
	}
	return NULL;
}

int taskfiles_read(int dir, const char *name, char *ret, size_t size)
{
	size_t len = 0;
	ssize_t got = 0;
	int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error = 0;

	if (fd < 0)
		return -errno;
	while (len < size - 1 && (got = read(fd, ret + len, size - 1 - len)) > 0) {
		len += (size_t)got;
		/* The kernel fills a page before it returns less: this was the end. */
		if (got < SHORT_BYTES)
			break;
	}
	if (got < 0)
		error = -errno;
	(void)close(fd);
	if (error < 0 && len == 0)
		return error;
	ret[len] = '\0';
	return (int)len;
}

int taskfiles_read_of(int proc, uint32_t tid, const char *name, char *ret, size_t size)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "task/%u/%s", tid, name);
	return taskfiles_read(proc, path, ret, size);
}
