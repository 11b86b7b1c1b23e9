/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/gpu/gputrace.h"

#include <stdarg.h>
#include <string.h>

const struct gputrace_ops *const gputrace_all[] = { &gputrace_cupti, &gputrace_rocprof, NULL };

void gputrace_why(char ret_why[static GPUTRACE_WHY_MAX], const char *part, ...)
{
	size_t len = 0;
	va_list parts;

	va_start(parts, part);
	for (; part != NULL; part = va_arg(parts, const char *)) {
		size_t cnt = strnlen(part, GPUTRACE_WHY_MAX - 1 - len);

		memcpy(ret_why + len, part, cnt);
		len += cnt;
	}
	va_end(parts);
	ret_why[len] = '\0';
}
