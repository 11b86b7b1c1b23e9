/* SPDX-License-Identifier: Apache-2.0 */
#include "live/webhook/webhookfile.h"

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct webhookfile *file = malloc(sizeof(*file));
	struct err err = { "" };
	char *text = malloc(size + 1); /* of this length, so that no byte behind it is read */

	if (text == NULL || file == NULL)
		abort();
	if (size > 0)
		memcpy(text, data, size);
	if (webhookfile_parse("f", text, size, file, &err) < 0 && err.text[0] == '\0')
		abort();
	for (size_t i = 0; i < file->cnt && err.text[0] == '\0'; i++) {
		if (strncmp(file->hooks[i].url, file->hooks[i].place,
			    strlen(file->hooks[i].place)) != 0)
			abort();
	}
	free(text);
	free(file);
	return 0;
}
