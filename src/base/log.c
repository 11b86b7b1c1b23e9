/* SPDX-License-Identifier: Apache-2.0 */
#include "base/log.h"

#include "base/clock.h"

#include <stdarg.h>
#include <stdio.h>
#include <unistd.h>

#define PAIRS_BYTES 8192 /* some events name two paths */

/* Belongs to fd 2, which is global, too. */
static struct log_setup current;

void log_open(const struct log_setup *setup)
{
	current = *setup;
}

void log_line(enum log_level level, const char *fmt, ...)
{
	char pairs[PAIRS_BYTES], line[2 * PAIRS_BYTES];
	struct log_event event = { .level = level, .wall_ns = clock_wall_ns(), .pairs = pairs };
	va_list ap;
	size_t len;

	va_start(ap, fmt);
	(void)vsnprintf(pairs, sizeof(pairs), fmt, ap);
	va_end(ap);
	len = logtext_render(&current, &event, line, sizeof(line));
	if (len > 0)
		(void)!write(STDERR_FILENO, line, len);
}
