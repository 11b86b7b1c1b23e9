/* SPDX-License-Identifier: Apache-2.0 */
#include "stacks/sampling/jobprocs.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* Any bytes as an environment: as long as they say, and not closed by a NUL of their own. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = malloc(size + 1);
	struct jobproc proc = { 0 };

	if (text == NULL)
		return 0;
	memcpy(text, data, size);
	text[size] = '\0'; /* as taskfiles_read() gives it */
	jobprocs_parse_environ(text, size, &proc);
	if ((proc.rank >= 0) != (proc.job != 0) || proc.world_size < 0)
		abort();
	free(text);
	return 0;
}
