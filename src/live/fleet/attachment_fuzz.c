/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes what a training process asks of hostd: every request that is read names a job. And the keys
 * of jobs that hosts send to the hub, which name folders there.
 */
#include "live/fleet/jobkey.h"

#include <assert.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void take_key(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1); /* of this length, so that no byte behind it is read */
	const char *job = NULL;
	unsigned uid = 0;

	assert(text != NULL);
	if (size > 0)
		memcpy(text, data, size);
	text[size] = '\0';
	if (jobkey_split(text, "east", &uid, &job))
		assert(job[0] != '.' && job[0] != '\0' && strpbrk(job, "/\n\"") == NULL);
	free(text);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct attachment attachment;
	struct joborigin origin = { .pid = 1, .start = 2 };
	const char *job = NULL;
	unsigned uid = 0;
	struct jobkey key;

	take_key(data, size);
	if (attachment_parse(data, size, &attachment) < 0)
		return 0;
	memcpy(origin.command, data, MIN(size, sizeof(origin.command) - 1));
	assert(jobkey_make("east", 1000, &attachment, &origin, &key) == 0);
	assert(jobkey_split(key.text, "east", &uid, &job));
	assert(uid == 1000 && strcmp(job, key.job) == 0);
	return 0;
}
