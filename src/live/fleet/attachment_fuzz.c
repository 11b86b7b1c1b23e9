/* SPDX-License-Identifier: Apache-2.0 */
/* Fuzzes what a training process asks of hostd: every request that is read names a job. */
#include "live/fleet/jobkey.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct attachment attachment;
	struct joborigin origin = { .pid = 1, .start = 2 };
	const char *job = NULL;
	unsigned uid = 0;
	struct jobkey key;

	if (attachment_parse(data, size, &attachment) < 0)
		return 0;
	memcpy(origin.command, data, MIN(size, sizeof(origin.command) - 1));
	assert(jobkey_make("east", 1000, &attachment, &origin, &key) == 0);
	assert(jobkey_split(key.text, "east", &uid, &job));
	assert(uid == 1000 && strcmp(job, key.job) == 0);
	return 0;
}
