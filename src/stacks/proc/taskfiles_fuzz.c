/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes are a file of /proc: what is found stays inside the text and its buffers. */
#include "stacks/proc/taskfiles.h"

#include "stacks/proc/socketnames.h"

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	_cleanup_free_ char *text = malloc(len + 1);
	struct taskfiles_status status;
	struct taskfiles_syscall call;
	char names[256];
	const char *value;
	size_t value_len;

	if (text == NULL)
		return 0;
	memcpy(text, data, len);
	text[len] = '\0';
	if (taskfiles_parse_status(text, &status) == 0 && status.pid == 0)
		abort();
	if (taskfiles_parse_syscall(text, &call) == 0 && call.where == TASK_UNKNOWN)
		abort();
	if (taskfiles_parse_kernel(text, names, sizeof(names), 8) > 8)
		abort();
	(void)!socketnames_parse_tcp(text, 1, names, sizeof(names));
	(void)!socketnames_parse_unix(text, 1, names, sizeof(names));
	value = taskfiles_find_variable(text, len, "RANK", &value_len);
	if (value != NULL && (value < text || value + value_len > text + len))
		abort();
	return 0;
}
