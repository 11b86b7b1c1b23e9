/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Shared by the tests of this folder: printing a sample, with and without memory, and
 * comparing with golden files.
 *
 * Golden files are tests/golden/report/NAME.{txt,verbose.txt,json,html}, compared byte
 * for byte. PERFTRACKER_UPDATE_GOLDEN=1 in the environment writes them anew; look at
 * the difference before committing it.
 */
#pragma once

#include "report/formats.h"
#include "report/test_reports.h"

#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

typedef int (*printer)(const struct report *report, struct str *out);

/* The sample as it is printed; the caller frees it. */
char *help_print(const char *name, printer print);

/* Prints all samples that have golden files and compares each with NAME.suffix. */
void help_compare_golden(const char *suffix, printer print);

/* Compares a definition of docs/report-schema.json with expected, which it takes. */
void help_compare_schema(const char *definition, json_t *expected);

/* Fails the test unless part is in text. */
void help_assert_contains(const char *text, const char *part);

/*
 * Prints the sample with the first, the second... allocation and all after it
 * failing, until the printer succeeds: each failure must be returned and leave the
 * output unchanged.
 */
void help_print_without_memory(const char *name, printer print);
