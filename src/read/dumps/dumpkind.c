/* SPDX-License-Identifier: Apache-2.0 */
/* Which dump a file is, by its first bytes. Traces have some of the same words, elsewhere. */
#include "read/dumps/dumps.h"

#include <ctype.h>
#include <string.h>

static bool head_has(const char *head, size_t len, const char *word)
{
	return memmem(head, len, word, strlen(word)) != NULL;
}

static bool begins(const char *head, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(head, word, strlen(word)) == 0;
}

/* Behind the string that begins at head[at], or len where it is cut. */
static size_t string_end(const char *head, size_t len, size_t at)
{
	for (at++; at < len && head[at] != '"'; at++)
		at += head[at] == '\\';
	return MIN(at + 1, len);
}

static size_t blanks_end(const char *head, size_t len, size_t at)
{
	while (at < len && isspace((unsigned char)head[at]))
		at++;
	return at;
}

/* Whether JSON that may be cut has a key there. depth: 1 in the outermost object or array. */
static bool has_key(const char *head, size_t len, int depth, const char *key)
{
	const size_t size = strlen(key) + 2; /* with its quotes */
	int here = 0;
	size_t at = 0;

	while (at < len) {
		const size_t begin = at;

		here += (head[at] == '{' || head[at] == '[') - (head[at] == '}' || head[at] == ']');
		if (head[at] != '"') {
			at++;
			continue;
		}
		at = string_end(head, len, at);
		if (here != depth || at - begin != size ||
		    memcmp(&head[begin + 1], key, size - 2) != 0)
			continue;
		at = blanks_end(head, len, at);
		if (at < len && head[at] == ':')
			return true;
	}
	return false;
}

static bool has_any(const char *head, size_t len, const char *const *keys, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (has_key(head, len, 1, keys[i]))
			return true;
	}
	return false;
}

static enum dump_kind kind_of_json(const char *head, size_t len)
{
	/* torch.profiler writes its process groups, too, as "pg_config" of "distributedInfo". */
	static const char *const of_traces[] = { "traceEvents", "schemaVersion", "deviceProperties",
						 "distributedInfo", "displayTimeUnit" };
	static const char *const of_recorders[] = { "pg_config", "pg_status" };

	if (has_any(head, len, of_traces, ARRAY_SIZE(of_traces)))
		return DUMP_NONE;
	if (head_has(head, len, "perftracker.stacks.v"))
		return DUMP_STACKS;
	if (head_has(head, len, "perftracker.hang.v"))
		return DUMP_RECORD;
	if (has_any(head, len, of_recorders, ARRAY_SIZE(of_recorders)) ||
	    (has_key(head, len, 1, "entries") && head_has(head, len, "\"collective_seq_id\"")))
		return DUMP_NCCL_JSON;
	if (has_key(head, len, 2, "frames") &&
	    (head_has(head, len, "\"owns_gil\"") || head_has(head, len, "\"short_filename\"")))
		return DUMP_PYSPY_JSON;
	return DUMP_NONE;
}

/* Lines of gdb that come before the first thread are many: the first one of a thread counts. */
static bool is_gdb(const char *head, size_t len)
{
	return head_has(head, len, "\nThread ") || begins(head, len, "Thread ")
		       ? head_has(head, len, "(LWP ") || head_has(head, len, "\n#0 ")
		       : false;
}

/* gdb's first lines begin with '[', too. */
static bool is_json(const char *head, size_t len)
{
	size_t at = blanks_end(head, len, 0);

	if (at < len && head[at] == '[')
		at = blanks_end(head, len, at + 1);
	return at < len && head[at] == '{';
}

enum dump_kind dumps_kind(const char *head, size_t len)
{
	if (is_json(head, len))
		return kind_of_json(head, len);
	if (len >= 2 && head[0] == '\x80' && head[1] >= 2 && head[1] <= 5 &&
	    (head_has(head, len, "pg_config") || head_has(head, len, "entries") ||
	     head_has(head, len, "version")))
		return DUMP_NCCL_PICKLE;
	if (begins(head, len, "Process ") && head_has(head, len, "\nPython v"))
		return DUMP_PYSPY;
	return is_gdb(head, len) ? DUMP_GDB : DUMP_NONE;
}
