/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A file of a spool: records of any bytes that a process keeps until another one has them for good.
 * Records are only appended, each with its own checksums, so a file that was torn by a crash or a
 * full disk gives all records before the tear and no wrong one. live/spool/spool.h has the folder.
 *
 *   struct spoolfile_head, then records: struct spoolfile_mark and its bytes
 */
#pragma once

#include "base/err.h"

#define SPOOLFILE_MAGIC "PTSPOOL\n"
#define SPOOLFILE_VERSION 1u
#define SPOOLFILE_RECORD UINT32_C(0x43525450) /* "PTRC" */

enum spoolfile_kind {
	SPOOLFILE_DATA = 1,
	SPOOLFILE_DONE = 2, /* no bytes: the record of this number is not needed any more */
};

struct spoolfile_head {
	char magic[8];
	uint32_t version, reserved;
	uint64_t id; /* of the spool: drawn when it begins */
	uint64_t sum;
};
_Static_assert(sizeof(struct spoolfile_head) == 32, "on disk");

struct spoolfile_mark {
	uint32_t magic, kind;
	uint64_t number; /* grows with each record of a spool */
	uint64_t len;
	uint64_t data_sum, sum; /* sum: of this mark and the spool's id */
};
_Static_assert(sizeof(struct spoolfile_mark) == 40, "on disk");

void spoolfile_head(uint64_t id, struct spoolfile_head *ret);
void spoolfile_mark(uint64_t id, enum spoolfile_kind kind, uint64_t number, const void *data,
		    size_t len, struct spoolfile_mark *ret);

/*
 * The head of data[len], a file named path. Returns 0; -EPROTO: of another version; -EBADMSG: no
 * spool's file, or torn in its head. With a line in err.
 */
_must_check_ int spoolfile_parse_head(const char *path, const void *data, size_t len,
				      uint64_t *ret_id, struct err *err);

struct spoolfile_record {
	enum spoolfile_kind kind;
	uint64_t number;
	size_t off, len; /* of its bytes, in the file */
};

/*
 * The record at *at, which moves behind it. Returns 1; 0: the file ends here; -EBADMSG with a line in
 * err: *at is behind a record whose bytes are wrong, or at the end of the file where nothing more can
 * be read.
 */
_must_check_ int spoolfile_next(const char *path, const void *data, size_t len, uint64_t id,
				size_t *at, struct spoolfile_record *ret, struct err *err);
