/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"
#include "summarize/window.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cmd_usage_error(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "perftracker %s: ", command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	fprintf(stderr, "Try 'perftracker %s --help'.\n", command);
	return EXIT_USAGE;
}

int cmd_fail(const char *fmt, ...)
{
	va_list ap;

	fputs("perftracker: ", stderr);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return EXIT_FAILED;
}

int cmd_parse_double(const char *text, double low, double high, double *ret)
{
	char *end;
	double value;

	errno = 0;
	value = strtod(text, &end);
	if (end == text || *end != '\0' || errno != 0 || !(value >= low && value <= high))
		return -EINVAL;
	*ret = value;
	return 0;
}

int cmd_parse_int(const char *text, int64_t low, int64_t high, int64_t *ret)
{
	char *end;
	long long value;

	errno = 0;
	value = strtoll(text, &end, 10);
	if (end == text || *end != '\0' || errno != 0 || value < low || value > high)
		return -EINVAL;
	*ret = value;
	return 0;
}

int cmd_set_steps(void *window, const char *text, struct err *err)
{
	struct window_options *ret = window;
	char buf[64];
	char *dash;
	int64_t first, last;

	(void)err; /* the row says what is expected */
	if (strlen(text) >= sizeof(buf))
		return -EINVAL;
	(void)snprintf(buf, sizeof(buf), "%s", text);
	dash = strchr(buf, '-');
	if (dash != NULL)
		*dash++ = '\0';
	if (cmd_parse_int(buf, 0, INT64_MAX / 2, &first) < 0 ||
	    cmd_parse_int(dash != NULL ? dash : buf, first, INT64_MAX / 2, &last) < 0)
		return -EINVAL;
	ret->first_step = first;
	ret->last_step = last;
	return 0;
}

int cmd_set_ranks(void *ranks, const char *text, struct err *err)
{
	rankset_vec *ret = ranks;

	vec_done(ret);
	return rankset_parse(text, ret, err);
}
