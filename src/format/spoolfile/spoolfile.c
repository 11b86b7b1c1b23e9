/* SPDX-License-Identifier: Apache-2.0 */
#include "format/spoolfile/spoolfile.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <xxhash.h>

void spoolfile_head(uint64_t id, struct spoolfile_head *ret)
{
	*ret = (struct spoolfile_head){ .version = SPOOLFILE_VERSION, .id = id };
	memcpy(ret->magic, SPOOLFILE_MAGIC, sizeof(ret->magic));
	ret->sum = XXH3_64bits(ret, offsetof(struct spoolfile_head, sum));
}

static uint64_t sum_of(const struct spoolfile_mark *mark, uint64_t id)
{
	return XXH3_64bits_withSeed(mark, offsetof(struct spoolfile_mark, sum), id);
}

void spoolfile_mark(uint64_t id, enum spoolfile_kind kind, uint64_t number, const void *data,
		    size_t len, struct spoolfile_mark *ret)
{
	*ret = (struct spoolfile_mark){ .magic = SPOOLFILE_RECORD,
					.kind = kind,
					.number = number,
					.len = len,
					.data_sum = XXH3_64bits(data, len) };
	ret->sum = sum_of(ret, id);
}

int spoolfile_parse_head(const char *path, const void *data, size_t len, uint64_t *ret_id,
			 struct err *err)
{
	struct spoolfile_head head;

	if (len < sizeof(head))
		return err_set(err, EBADMSG, "%s: expected the %zu bytes of a head, found %zu",
			       path, sizeof(head), len);
	memcpy(&head, data, sizeof(head));
	if (memcmp(head.magic, SPOOLFILE_MAGIC, sizeof(head.magic)) != 0)
		return err_set(err, EBADMSG, "%s:0: expected a file of a spool", path);
	if (head.version != SPOOLFILE_VERSION)
		return err_set(err, EPROTO, "%s:8: expected version %u, found %u", path,
			       SPOOLFILE_VERSION, head.version);
	if (head.sum != XXH3_64bits(&head, offsetof(struct spoolfile_head, sum)))
		return err_set(err, EBADMSG, "%s:24: the checksum of the head is wrong", path);
	*ret_id = head.id;
	return 0;
}

static bool is_valid(const struct spoolfile_mark *mark, uint64_t id)
{
	if (mark->magic != SPOOLFILE_RECORD || mark->sum != sum_of(mark, id))
		return false;
	return mark->kind == SPOOLFILE_DATA || (mark->kind == SPOOLFILE_DONE && mark->len == 0);
}

int spoolfile_next(const char *path, const void *data, size_t len, uint64_t id, size_t *at,
		   struct spoolfile_record *ret, struct err *err)
{
	struct spoolfile_mark mark;
	size_t begin = *at, off = begin + sizeof(mark);

	if (begin >= len)
		return 0;
	*at = len; /* without a valid mark it is not known where the next one is */
	if (len - begin < sizeof(mark))
		return err_set(err, EBADMSG, "%s:%zu: expected a record, found its first %zu bytes",
			       path, begin, len - begin);
	memcpy(&mark, (const char *)data + begin, sizeof(mark));
	if (!is_valid(&mark, id))
		return err_set(err, EBADMSG, "%s:%zu: the checksum of a record's mark is wrong",
			       path, begin);
	if (mark.len > len - off)
		return err_set(err, EBADMSG,
			       "%s:%zu: expected a record of %" PRIu64 " bytes, found %zu of them",
			       path, begin, mark.len, len - off);
	*at = off + (size_t)mark.len;
	if (mark.data_sum != XXH3_64bits((const char *)data + off, (size_t)mark.len))
		return err_set(err, EBADMSG, "%s:%zu: the checksum of record %" PRIu64 " is wrong",
			       path, begin, mark.number);
	*ret = (struct spoolfile_record){
		.kind = mark.kind, .number = mark.number, .off = off, .len = (size_t)mark.len
	};
	return 1;
}
