/* SPDX-License-Identifier: Apache-2.0 */
#include "base/err.h"

#include <stdarg.h>
#include <stdio.h>

int err_set(struct err *err, int errno_value, const char *fmt, ...)
{
	va_list ap;

	if (err == NULL)
		return -errno_value;
	va_start(ap, fmt);
	(void)vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	/* The line quotes foreign bytes: keep escape sequences off the terminal. */
	for (char *c = err->text; *c != '\0'; c++) {
		if ((unsigned char)*c < 0x20 || (unsigned char)*c == 0x7f)
			*c = '?';
	}
	return -errno_value;
}
