/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of the readers share: reading inline text through many windows. */
#pragma once

#include "read/kineto/kineto.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <zlib.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define X_EVENT(cat, name, ts, rest)                              \
	"{\"ph\": \"X\", \"cat\": \"" cat "\", \"name\": \"" name \
	"\", \"pid\": 1, \"tid\": 2, \"ts\": " ts rest "}"
#define DOC(events) "{\"traceEvents\": [" events "]}"
/* A Python frame; a begin or end event. */
#define FRAME(name, ts, id, parent)                                                             \
	X_EVENT("python_function", name, ts,                                                    \
		", \"dur\": 1, \"args\": {\"Python id\": " id ", \"Python parent id\": " parent \
		"}")
#define HALF(ph, name, tid, ts)                                                              \
	"{\"ph\":\"" ph "\",\"cat\":\"cpu_op\",\"name\":\"" name "\",\"pid\":1,\"tid\":" tid \
	",\"ts\":" ts "}"

/* Reads text, which must be a trace whatever the window is. */
struct trace read_ok(const char *text);

/* Reads text[len], which must fail with -error and say message. */
void check_fails_len(const char *text, size_t len, int error, const char *message);

/* Each runs the tests of one file. Returns the number that failed. */
int malformed_tests(void);
int shape_tests(void);
