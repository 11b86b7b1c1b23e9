/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/cmd.h"

#include <errno.h>
#include <getopt.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

int cmd_try_help(const char *command)
{
	fprintf(stderr, "Try 'perftracker %s --help'.\n", command);
	return EXIT_USAGE;
}

int cmd_usage_error(const char *command, const char *fmt, ...)
{
	va_list ap;

	fprintf(stderr, "perftracker %s: ", command);
	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	return cmd_try_help(command);
}

int cmd_bad_value(const char *command, const char *option, const char *expected)
{
	return cmd_usage_error(command, "--%s '%s': expected %s", option, optarg, expected);
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

int cmd_parse_steps(const char *text, int64_t *ret_first, int64_t *ret_last)
{
	char buf[64];
	char *dash;
	int64_t first, last;

	if (strlen(text) >= sizeof(buf))
		return -EINVAL;
	(void)snprintf(buf, sizeof(buf), "%s", text);
	dash = strchr(buf, '-');
	if (dash != NULL)
		*dash++ = '\0';
	if (cmd_parse_int(buf, 0, INT64_MAX / 2, &first) < 0 ||
	    cmd_parse_int(dash != NULL ? dash : buf, first, INT64_MAX / 2, &last) < 0)
		return -EINVAL;
	*ret_first = first;
	*ret_last = last;
	return 0;
}
