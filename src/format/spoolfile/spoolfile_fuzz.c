/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes a file of a spool: records lie within its bytes, and reading ends. The input is a file, and
 * behind a head that is made right also one whose marks are made right: chance finds no checksums.
 */
#include "format/spoolfile/spoolfile.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void read_all(const void *data, size_t size, uint64_t id, size_t at)
{
	struct spoolfile_record record;
	struct err err;
	int ret;

	do {
		size_t before = at;

		ret = spoolfile_next("f", data, size, id, &at, &record, &err);
		assert(at <= size && (ret == 0 || at > before));
		if (ret == 1)
			assert(record.off >= before && record.len <= size - record.off &&
			       record.off + record.len == at);
	} while (ret != 0);
}

/* Marks that follow each other as their lengths say get the right checksums. */
static void repair(uint8_t *data, size_t size, uint64_t id)
{
	for (size_t at = 0; at < size && size - at >= sizeof(struct spoolfile_mark);) {
		struct spoolfile_mark mark, made;
		size_t room = size - at - sizeof(mark);

		memcpy(&mark, data + at, sizeof(mark));
		spoolfile_mark(id, mark.kind, mark.number, data + at + sizeof(mark),
			       (size_t)MIN(mark.len, (uint64_t)room), &made);
		memcpy(data + at, &made, sizeof(made));
		at += sizeof(mark) + (size_t)made.len;
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	uint64_t id = 0;
	struct err err;
	uint8_t *copy;

	if (spoolfile_parse_head("f", data, size, &id, &err) == 0)
		read_all(data, size, id, sizeof(struct spoolfile_head));
	copy = malloc(size + 1);
	if (copy == NULL)
		return 0;
	if (size > 0)
		memcpy(copy, data, size);
	repair(copy, size, 7);
	read_all(copy, size, 7, 0);
	free(copy);
	return 0;
}
