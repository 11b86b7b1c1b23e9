/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of an export: what is kept of them, and what they say of the event. */
#include "read/kineto/unescape.h"
#include "read/nsys/nsys_parts.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define MAX_NAME_BYTES (1u << 20)

static bool is_valid(const char *text, size_t len)
{
	size_t n;

	for (size_t i = 0; i < len; i += n) {
		n = (unsigned char)text[i] < 0x80 ? 1
						  : utf8_len((const uint8_t *)text + i, len - i);
		if (n == 0 || text[i] == '\0')
			return false;
	}
	return true;
}

static int intern_mended(struct nsys_pass *pass, const char *text, size_t len, uint32_t *ret)
{
	struct str mended = { 0 };
	size_t n;

	for (size_t i = 0; i < len; i += MAX(n, (size_t)1)) {
		n = text[i] == '\0' ? 0 : utf8_len((const uint8_t *)text + i, len - i);
		if (n == 0)
			str_append(&mended, "\xef\xbf\xbd");
		else
			str_append_len(&mended, text + i, n);
	}
	pass->trace->drops.bad_utf8++;
	*ret = str_error(&mended) == 0
		       ? strtab_intern(&pass->trace->strings, str_borrow(&mended), mended.len)
		       : STRTAB_NONE;
	str_done(&mended);
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

int nsys_intern(struct nsys_pass *pass, const char *text, size_t len, uint32_t *ret)
{
	if (len > MAX_NAME_BYTES) {
		pass->trace->drops.bad_value++;
		len = MAX_NAME_BYTES;
	}
	if (!is_valid(text, len))
		return intern_mended(pass, text, len, ret);
	*ret = strtab_intern(&pass->trace->strings, text, len);
	return *ret == STRTAB_NONE ? -ENOMEM : 0;
}

/* --- calls --- */

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

/* Length without "_v" and digits at the end, and without "_ptsz" before them. */
static size_t call_len(const char *text, size_t len)
{
	size_t end = len;

	while (end > 0 && is_digit(text[end - 1]))
		end--;
	if (end == len || end < 3 || memcmp(text + end - 2, "_v", 2) != 0)
		return len;
	end -= 2;
	if (end > 5 &&
	    (memcmp(text + end - 5, "_ptsz", 5) == 0 || memcmp(text + end - 5, "_ptds", 5) == 0))
		end -= 5;
	return end;
}

/* --- ranges --- */

static const char *find(const char *text, size_t len, const char *word)
{
	return memmem(text, len, word, strlen(word));
}

static bool begins(const char *text, size_t len, const char *word)
{
	return len >= strlen(word) && memcmp(text, word, strlen(word)) == 0;
}

/* Scopes that torch's libraries and users open are no operators, whatever emit_nvtx() adds. */
static bool is_scope(const char *text, size_t len)
{
	static const char *const prefixes[] = {
		"ProfilerStep",
		"Optimizer.",
		"enumerate(DataLoader)",
		"DistributedDataParallel.",
		"FullyShardedDataParallel.",
		"FSDP::",
		"nccl:",
		"gloo:",
		"mpi:",
		"ucc:",
		"##",
	};

	for (size_t i = 0; i < ARRAY_SIZE(prefixes); i++) {
		if (begins(text, len, prefixes[i]))
			return true;
	}
	return false;
}

/* emit_nvtx(): "NAME, seq = 3, op_id = 12, sizes = [[2, 3]], input_op_ids = [...]". */
static size_t range_len(const char *text, size_t len)
{
	static const char *const marks[] = { ", seq = ", ", op_id = ", ", sizes = ",
					     ", input_op_ids = " };
	size_t shortest = len;

	for (size_t i = 0; i < ARRAY_SIZE(marks); i++) {
		const char *mark = find(text, shortest, marks[i]);

		if (mark != NULL && mark > text)
			shortest = (size_t)(mark - text);
	}
	return shortest;
}

/* Sequence numbers are of operators that autograd knows; "::" is their namespaces. */
static enum event_kind range_kind(const char *text, size_t whole, size_t len)
{
	if (is_scope(text, len))
		return KIND_ANNOTATION;
	if (begins(text, len, "aten::") || begins(text, len, "c10d::") ||
	    begins(text, len, "autograd::") || begins(text, len, "record_param_comms"))
		return KIND_OPERATOR;
	if (whole == len)
		return KIND_ANNOTATION;
	return find(text, len, "::") != NULL || find(text, whole, ", seq = ") != NULL ||
			       find(text, len, "Backward") != NULL
		       ? KIND_OPERATOR
		       : KIND_ANNOTATION;
}

int nsys_range_name(struct nsys_pass *pass, const char *text, size_t len, struct nsys_name *ret)
{
	size_t kept = range_len(text, len);

	ret->kind = range_kind(text, len, kept);
	if (kept == 0)
		return nsys_intern(pass, "<unnamed>", strlen("<unnamed>"), &ret->id);
	return nsys_intern(pass, text, kept, &ret->id);
}

/* --- StringIds --- */

/* A text without what its use does not want. */
static int make_name(struct nsys_pass *pass, const char *text, size_t len, enum nsys_text use,
		     struct nsys_name *ret)
{
	if (use == NSYS_RANGE)
		return nsys_range_name(pass, text, len, ret);
	if (use == NSYS_CALL)
		len = call_len(text, len);
	return nsys_intern(pass, text, len, &ret->id);
}

static int missing_name(struct nsys_pass *pass, int64_t id, struct nsys_name *ret)
{
	char text[48];
	int len = snprintf(text, sizeof(text), "<string %lld>", (long long)id);

	pass->trace->drops.bad_value++;
	return nsys_intern(pass, text, (size_t)len, &ret->id);
}

static int look_up(struct nsys_pass *pass, int64_t id, enum nsys_text use, struct nsys_name *ret)
{
	struct nsys_query *query = &pass->string_query;
	const char *text = NULL;
	size_t len = 0;
	int r;

	(void)sqlite3_bind_int64(query->statement, 1, id);
	r = nsys_query_next(query);
	if (r > 0)
		text = nsys_query_text(query, 0, &len);
	if (r >= 0)
		r = text != NULL && len > 0 ? make_name(pass, text, len, use, ret)
					    : missing_name(pass, id, ret);
	(void)sqlite3_reset(query->statement);
	return r;
}

int nsys_string(struct nsys_pass *pass, int64_t id, enum nsys_text use, struct nsys_name *ret)
{
	uint32_t known = idmap_get(&pass->names[use], (uint64_t)id);
	int r;

	ret->kind = KIND_ANNOTATION;
	if (known == IDMAP_NONE) {
		r = look_up(pass, id, use, ret);
		if (r == 0 && use == NSYS_RANGE)
			r = idmap_set(&pass->kinds, (uint64_t)id, (uint32_t)ret->kind);
		return r == 0 ? idmap_set(&pass->names[use], (uint64_t)id, ret->id) : r;
	}
	ret->id = known;
	if (use == NSYS_RANGE)
		ret->kind = (enum event_kind)idmap_get(&pass->kinds, (uint64_t)id);
	return 0;
}
