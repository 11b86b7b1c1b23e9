/* SPDX-License-Identifier: Apache-2.0 */
#include "host/process/pressure.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

int pressure_parse(const char *text, uint64_t *ret_some_us)
{
	uint64_t some_us;

	if (sscanf(text, "some avg10=%*s avg60=%*s avg300=%*s total=%" SCNu64, &some_us) != 1)
		return -EINVAL;
	*ret_some_us = some_us;
	return 0;
}

void pressure_open(struct pressure *pressure, const char *root)
{
	static const char *const names[PRESSURE_CNT] = { "cpu", "io", "memory" };
	char path[4096];

	pressure->due_ns = 0;
	for (int i = 0; i < PRESSURE_CNT; i++) {
		pressure->fds[i] = -1;
		if ((size_t)snprintf(path, sizeof(path), "%s/proc/pressure/%s", root, names[i]) <
		    sizeof(path))
			pressure->fds[i] = open(path, O_RDONLY | O_CLOEXEC);
	}
}

void pressure_close(struct pressure *pressure)
{
	for (int i = 0; i < PRESSURE_CNT; i++) {
		if (pressure->fds[i] >= 0)
			(void)close(pressure->fds[i]);
		pressure->fds[i] = -1;
	}
}

static uint64_t read_some(int fd)
{
	char text[256];
	ssize_t len = fd >= 0 ? pread(fd, text, sizeof(text) - 1, 0) : -1;
	uint64_t some_us;

	if (len <= 0)
		return SIDECAR_PRESSURE_UNKNOWN;
	text[len] = '\0';
	return pressure_parse(text, &some_us) == 0 ? some_us : SIDECAR_PRESSURE_UNKNOWN;
}

int pressure_look(struct pressure *pressure, int64_t now_ns, struct sidecar_pressure *ret)
{
	struct sidecar_pressure now = { .time_ns = now_ns };
	bool any = false;

	if (now_ns < pressure->due_ns)
		return 0;
	pressure->due_ns = now_ns + PRESSURE_LOOK_NS;
	for (int i = 0; i < PRESSURE_CNT; i++) {
		now.some_us[i] = read_some(pressure->fds[i]);
		any |= now.some_us[i] != SIDECAR_PRESSURE_UNKNOWN;
	}
	if (!any)
		return 0;
	*ret = now;
	return 1;
}
