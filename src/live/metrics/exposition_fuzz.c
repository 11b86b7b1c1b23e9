/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes Accept headers and names of workers as labels. */
#include "live/metrics/exposition.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A label is one quoted text on one line, whatever it holds. */
static void check_line(const char *line, size_t len)
{
	const char *at = strchr(line, '"');

	assert(at != NULL && strlen(line) == len && strchr(line, '\n') == line + len - 1);
	for (at++; *at != '"'; at++)
		at += *at == '\\';
	assert(strcmp(at, "\"} 1\n") == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct metric_desc desc = { .name = "x",
						 .help = "X.",
						 .unit = "",
						 .type = METRIC_COUNTER,
						 .scale = 1,
						 .labels = { "name" } };
	char *text = malloc(size + 1); /* of this length, so that no byte behind it is read */
	const char *values[METRIC_LABEL_MAX] = { text };
	struct str out = { 0 };

	if (text == NULL)
		return 0;
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	(void)exposition_choose(text);
	exposition_count(&out, &desc, values, 1);
	check_line(str_borrow(&out), out.len);
	str_done(&out);
	free(text);
	return 0;
}
