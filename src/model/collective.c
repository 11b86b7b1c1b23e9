/* SPDX-License-Identifier: Apache-2.0 */
#include "model/collective.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* Lower case letters and digits only: "_allgather_base" and "AllGather" get the same prefix. */
static void squeeze(const char *text, char ret[static COLLECTIVE_WORD_MAX])
{
	size_t len = 0;

	for (; *text != '\0' && len < COLLECTIVE_WORD_MAX - 1; text++) {
		if (isalnum((unsigned char)*text))
			ret[len++] = (char)tolower((unsigned char)*text);
	}
	ret[len] = '\0';
}

static const struct operation {
	const char *begin, *name;
	double first, last; /* bus factor: first - last / n */
	bool mutual;
} operations[] = {
	{ "allreduce", "all_reduce", 2, 2, true },
	{ "allgather", "all_gather", 1, 1, true },
	{ "reducescatter", "reduce_scatter", 1, 1, true },
	{ "alltoall", "all_to_all", 1, 1, true },
	{ "broadcast", "broadcast", 1, 0 },
	{ "reduce", "reduce", 1, 0 },
	{ "gather", "gather", 1, 1 },
	{ "scatter", "scatter", 1, 1 },
	{ "barrier", "barrier", 0, 0, true },
	{ "sendrecv", "send_recv", 1, 0 },
	{ "send", "send", 1, 0 },
	{ "recv", "recv", 1, 0 },
};

static bool begins(const char *text, const char *with)
{
	return strncmp(text, with, strlen(with)) == 0;
}

/* Maps unknown types to "other", so that text from the job does not create metric series. */
static const char *dtype_word(const char *dtype)
{
	static const char *const words[] = { "float8e4m3", "float8e5m2", "float16", "float32",
					     "float64",	   "bfloat16",	 "int8",    "uint8",
					     "int32",	   "uint32",	 "int64",   "uint64" };
	char word[COLLECTIVE_WORD_MAX];
	size_t skip;

	squeeze(dtype, word);
	skip = begins(word, "nccl") ? 4 : 0;
	for (size_t i = 0; i < ARRAY_SIZE(words); i++) {
		if (strcmp(word + skip, words[i]) == 0)
			return words[i];
	}
	return word[0] == '\0' ? "unknown" : "other";
}

/* torch and NCCL both report their collectives; torch's scope ends when the work is queued. */
static void find_backend(const char *name, const char *colon, struct collective_words *ret)
{
	size_t len = colon != NULL ? (size_t)(colon - name) : 0;
	const char *before = "";

	ret->launch = true;
	if (colon == NULL && begins(name, "nccl")) {
		(void)snprintf(ret->backend, sizeof(ret->backend), "nccl");
		return;
	}
	ret->launch = len == 4 && (begins(name, "nccl") || begins(name, "xccl"));
	if (ret->launch)
		before = "torch-";
	if (len > 0 && len < 16)
		(void)snprintf(ret->backend, sizeof(ret->backend), "%s%.*s", before, (int)len,
			       name);
}

void collective_words(const char *name, const char *collective, const char *dtype,
		      struct collective_words *ret)
{
	/* "ncclDevKernel_AllReduce_Sum_f32_RING_LL" is a kernel of which no more is known. */
	static const char *const prefixes[] = { "nccl", "dev", "kernel" };
	const char *colon = strchr(name, ':');
	const char *what = collective[0] != '\0' || colon == NULL ? collective : colon + 1;
	char word[COLLECTIVE_WORD_MAX];

	*ret = (struct collective_words){ .backend = "unknown" };
	find_backend(name, colon, ret);
	(void)snprintf(ret->dtype, sizeof(ret->dtype), "%s", dtype_word(dtype));
	squeeze(what[0] != '\0' ? what : name, word);
	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (begins(word, prefixes[i]))
			memmove(word, word + strlen(prefixes[i]),
				strlen(word + strlen(prefixes[i])) + 1);
	}
	(void)snprintf(ret->operation, sizeof(ret->operation), "%s",
		       word[0] != '\0' ? word : "unknown");
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		if (!begins(word, operations[i].begin))
			continue;
		(void)snprintf(ret->operation, sizeof(ret->operation), "%s", operations[i].name);
		return;
	}
}

double collective_bus_factor(const char *operation, uint32_t n)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations) && n > 1; i++) {
		if (strcmp(operations[i].name, operation) == 0)
			return operations[i].first - operations[i].last / n;
	}
	return 0;
}

bool collective_is_mutual(const char *operation)
{
	for (size_t i = 0; i < ARRAY_SIZE(operations); i++) {
		if (strcmp(operations[i].name, operation) == 0)
			return operations[i].mutual;
	}
	return false;
}

bool collective_is_pair(const char *operation)
{
	return strcmp(operation, "send") == 0 || strcmp(operation, "recv") == 0 ||
	       strcmp(operation, "send_recv") == 0;
}
