/* SPDX-License-Identifier: Apache-2.0 */
#include "hang/longcalls.h"

#include <ctype.h>
#include <string.h>

#define CHECKPOINT "saves or loads a checkpoint"
#define EVALUATION "evaluates the model"
#define COMPILATION "compiles"

static const struct {
	bool file; /* the beginning of a path; else a part of a function's name */
	const char *part, *does;
} calls[] = {
	{ true, "torch/serialization.py", CHECKPOINT },
	{ true, "torch/distributed/checkpoint/", CHECKPOINT },
	{ true, "safetensors/", CHECKPOINT },
	{ true, "torch/_dynamo/", COMPILATION },
	{ true, "torch/_inductor/", COMPILATION },
	{ true, "torch/export/", COMPILATION },
	{ true, "triton/compiler/", COMPILATION },
	{ true, "triton/runtime/autotuner.py", COMPILATION },
	{ true, "torch/utils/cpp_extension.py", COMPILATION },
	{ false, "checkpoint", CHECKPOINT },
	{ false, "save_model", CHECKPOINT },
	{ false, "save_state", CHECKPOINT },
	{ false, "evaluat", EVALUATION },
	{ false, "validat", EVALUATION },
	{ false, "compile", COMPILATION },
};

static bool has_word(const char *name, size_t len, const char *word)
{
	const size_t size = strlen(word);

	for (size_t i = 0; i + size <= len; i++) {
		size_t k = 0;

		while (k < size && tolower((unsigned char)name[i + k]) == word[k])
			k++;
		if (k == size)
			return true;
	}
	return false;
}

/* One line of a stack, "file.py(1): f". */
static const char *find_in(const char *line, size_t len)
{
	const char *colon = memmem(line, len, "): ", 3);
	const char *name = colon != NULL ? colon + 3 : line;

	for (size_t i = 0; i < ARRAY_SIZE(calls); i++) {
		const size_t size = strlen(calls[i].part);

		if (calls[i].file ? len >= size && memcmp(line, calls[i].part, size) == 0
				  : has_word(name, len - (size_t)(name - line), calls[i].part))
			return calls[i].does;
	}
	return NULL;
}

const char *longcalls_find(const char *stack)
{
	const char *found = NULL;

	while (*stack != '\0' && found == NULL) {
		const size_t len = strcspn(stack, "\n");

		found = find_in(stack, len);
		stack += len + (stack[len] == '\n');
	}
	return found;
}
