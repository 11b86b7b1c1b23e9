/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

void log_line(enum log_level level, const char *fmt, ...)
{
	static const char *const names[] = { "info", "warning", "error" };
	char line[1024];
	va_list ap;
	int len;

	len = snprintf(line, sizeof(line), "perftracker: level=%s ", names[level]);
	va_start(ap, fmt);
	len += vsnprintf(line + len, sizeof(line) - (size_t)len - 1, fmt, ap);
	va_end(ap);
	if (len > (int)sizeof(line) - 2)
		len = (int)sizeof(line) - 2;
	line[len++] = '\n';
	(void)!write(STDERR_FILENO, line, (size_t)len);
}
