/* SPDX-License-Identifier: Apache-2.0 */
/* Data of checks: files below a root, the environment, lines of facts. */
#include "doctor/check.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define CAP_SYS_ADMIN_BIT 21

void check_set(struct doctor_result *ret, enum doctor_state state, const char *fmt, ...)
{
	va_list ap;

	ret->state = state;
	va_start(ap, fmt);
	(void)vsnprintf(ret->found, sizeof(ret->found), fmt, ap);
	va_end(ap);
}

void check_advise(struct doctor_result *ret, const char *costs, const char *action)
{
	if (costs != NULL)
		ret->costs = costs;
	if (action != NULL)
		ret->action = action;
}

static int full_path(const struct doctor *doctor, const char *path, char *ret, size_t size)
{
	int len = snprintf(ret, size, "%s%s", doctor->setup.root, path);

	return len >= 0 && (size_t)len < size ? 0 : -ENAMETOOLONG;
}

int look_file(const struct doctor *doctor, const char *path, char *text, size_t size)
{
	char full[4096];
	size_t len = 0;
	ssize_t got = 0;
	int ret = full_path(doctor, path, full, sizeof(full)), fd;

	if (ret < 0)
		return ret;
	fd = open(full, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd < 0)
		return -errno;
	while (len + 1 < size && (got = read(fd, text + len, size - 1 - len)) > 0)
		len += (size_t)got;
	ret = got < 0 ? -errno : (int)len;
	(void)close(fd);
	text[len] = '\0';
	return ret;
}

int look_line(const struct doctor *doctor, const char *path, char *text, size_t size)
{
	int len = look_file(doctor, path, text, size);

	if (len < 0)
		return len;
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

int look_number(const struct doctor *doctor, const char *path, int64_t *ret)
{
	char text[64];
	int len = look_line(doctor, path, text, sizeof(text));

	if (len < 0)
		return len;
	return sscanf(text, "%" SCNd64, ret) == 1 ? 0 : -EINVAL;
}

bool look_field(const char *text, const char *key, char *ret, size_t size)
{
	size_t key_len = strlen(key);

	for (const char *at = text; at != NULL && *at != '\0';) {
		if (strncmp(at, key, key_len) == 0) {
			const char *value = at + key_len;
			size_t len;

			value += strspn(value, " \t");
			len = strcspn(value, "\n");
			while (len > 0 && (value[len - 1] == ' ' || value[len - 1] == '\t'))
				len--;
			(void)snprintf(ret, size, "%.*s", (int)len, value);
			return true;
		}
		at = strchr(at, '\n');
		at = at != NULL ? at + 1 : NULL;
	}
	return false;
}

bool look_exists(const struct doctor *doctor, const char *path)
{
	char full[4096];

	return full_path(doctor, path, full, sizeof(full)) == 0 && access(full, F_OK) == 0;
}

const char *look_env(const struct doctor *doctor, const char *name)
{
	size_t len = strlen(name);

	for (char *const *at = doctor->setup.environment; at != NULL && *at != NULL; at++) {
		if (strncmp(*at, name, len) == 0 && (*at)[len] == '=')
			return (*at)[len + 1] != '\0' ? *at + len + 1 : NULL;
	}
	return NULL;
}

bool facts_get(const char *facts, const char *key, char *ret, size_t size)
{
	char with_mark[64];

	(void)snprintf(with_mark, sizeof(with_mark), "%s=", key);
	return look_field(facts, with_mark, ret, size);
}

bool look_privileged(const struct doctor *doctor)
{
	char status[8192], text[64];
	uint64_t capabilities;

	return look_file(doctor, "/proc/self/status", status, sizeof(status)) > 0 &&
	       look_field(status, "CapEff:", text, sizeof(text)) &&
	       sscanf(text, "%" SCNx64, &capabilities) == 1 &&
	       (capabilities >> CAP_SYS_ADMIN_BIT & 1) != 0;
}
