/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes the site's file. What it sets is what `--check-config` prints. */
#include "live/site/site.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct site_problems problems = { .cnt = 0 };
	struct str text = { 0 };
	struct site site;
	size_t lines = 0;

	assert(site_init(&site) == 0);
	site_take_text(&site, "f", (const char *)data, size, &problems);
	site_check(&site, &problems);
	site_describe(&site, &text);
	for (const char *c = str_borrow(&problems.lines); *c != '\0'; c++)
		lines += *c == '\n';
	assert(lines == (problems.cnt < SITE_PROBLEMS_MAX ? problems.cnt : SITE_PROBLEMS_MAX));
	str_done(&text);
	site_problems_done(&problems);
	site_done(&site);
	return 0;
}
