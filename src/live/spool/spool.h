/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A folder of records that must not be lost before another process has them for good. Each is in a
 * file (format/spoolfile/spoolfile.h) when spool_add() returns, so it survives the end of this process,
 * however it ends; the kernel is asked to write it to the disk at once, and not waited for. A record
 * that is done is forgotten; a file whose records are done is removed, the oldest first. The folder has
 * a limit in bytes: beyond it the oldest file is removed, and its records count as dropped.
 */
#pragma once

#include "base/err.h"

/* Of a folder's limit, at least; and the part of it that one record can have. */
#define SPOOL_BYTES_MIN (1u << 20)
#define SPOOL_RECORD_PART 4u

struct spool_setup {
	const char *dir; /* made with mode 0700 if it is not there */
	uint64_t bytes_max;
	/* Before a record that is not done is removed; data: NULL if it cannot be read. Or NULL. */
	void (*drop)(void *arg, uint64_t number, const void *data, size_t len);
	void *arg;
};

struct spool_stats {
	size_t waiting; /* records that are not done */
	uint64_t bytes;
	uint64_t dropped; /* records, for want of room */
	uint64_t torn,
		foreign; /* places that were not readable; files that are no spool's, or of another version */
};

struct spool;

/*
 * Takes what an earlier process left. Returns 0, or -errno with a line in err: -EBUSY: another process
 * has the folder.
 */
_must_check_ int spool_open(const struct spool_setup *setup, struct spool **ret, struct err *err);
struct spool *spool_close(struct spool *spool);

/* The folder of a spool that was closed, unless records are left in it. */
void spool_remove(const char *dir);

/* Another one for a folder that was empty. With a record's number it names the record. */
uint64_t spool_id(const struct spool *spool);

/*
 * Returns 0, or -errno with a line in err, as if nothing had been added: -ENOSPC, -E2BIG (more than the
 * part of the limit), ...
 */
_must_check_ int spool_add(struct spool *spool, const void *data, size_t len, uint64_t *ret_number,
			   struct err *err);

/* The caller frees *ret. Returns 0, or -errno with a line in err; -ENOENT: it is not there, or done. */
_must_check_ int spool_read(struct spool *spool, uint64_t number, char **ret, size_t *ret_len,
			    struct err *err);

/* It is not needed any more; unknown numbers are ignored. */
void spool_finish(struct spool *spool, uint64_t number);

/* The least number above this one that is not done; 0: none. */
uint64_t spool_after(const struct spool *spool, uint64_t number);
struct spool_stats spool_stats(const struct spool *spool);
