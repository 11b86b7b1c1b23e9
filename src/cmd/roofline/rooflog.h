/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What one training process of `perftracker roofline` wrote: lines of words, each written at once,
 * so that a process that is killed leaves whole lines. The writer is
 * python/perftracker/_roofline.py.
 *
 *	perftracker-roofline 1
 *	rank RANK WORLD PID START_NS HOST            -1: unknown
 *	loader WORKERS PREFETCHED LENGTH             LENGTH -1: unknown
 *	plan WARM SKIP BLOCK PAIRS                   iterations
 *	kept BATCHES BYTES COPIES                    COPIES 1: tensors are copied at each giving
 *	block real|repeated FIRST COUNT WALL_NS WAIT_NS ELEMENTS EPOCHS
 *	refused TEXT
 *	done
 */
#pragma once

#include "base/err.h"
#include "base/vec.h"

#define ROOFLOG_BYTES_MAX (4 << 20)
#define ROOFLOG_SUFFIX ".roofline"

struct roof_block {
	bool repeated;	  /* the first batches were given again */
	uint64_t first;	  /* iteration */
	uint64_t cnt;	  /* iterations, above 0 */
	int64_t wall_ns;  /* of all, without what the hook itself took */
	int64_t wait_ns;  /* of it, in the loader's next() */
	int64_t elements; /* of the batches' tensors */
	uint64_t epochs;  /* passes over the loader that began inside */
};

typedef VEC(struct roof_block) roof_block_vec;

struct rooflog {
	int rank, world; /* -1: unknown */
	int pid;
	int64_t start_ns; /* wall clock */
	char host[128];
	bool has_loader;
	int workers, prefetched;
	int64_t length; /* batches of an epoch; -1: unknown */
	uint64_t warm, skip, block, pairs;
	uint64_t kept_cnt;
	int64_t kept_bytes;
	bool copies;
	roof_block_vec blocks;
	char refused[512]; /* "": not refused */
	bool done;
};

/*
 * Parses text[len]; path names it in err. A last line without an end is left out: the process was
 * killed. Returns 0, or -EINVAL or -ENOMEM with a line in err and *ret untouched.
 */
_must_check_ int rooflog_parse(const char *path, const char *text, size_t len, struct rooflog *ret,
			       struct err *err);

/* Reads the file. Returns 0 or -errno with a line in err. */
_must_check_ int rooflog_read(const char *path, struct rooflog *ret, struct err *err);

void rooflog_done(struct rooflog *log);
