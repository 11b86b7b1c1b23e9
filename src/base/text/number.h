/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers in sentences. */
#pragma once

#include <math.h>
#include <stdio.h>

struct number_text {
	char text[32];
};

/* Three digits or more, without an exponent: "0.0123", "12.3", "1200". For one expression. */
static inline struct number_text number_text(double value)
{
	struct number_text ret;

	(void)snprintf(ret.text, sizeof(ret.text), fabs(value) < 999.5 ? "%.3g" : "%.0f", value);
	return ret;
}
