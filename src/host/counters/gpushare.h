/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Passes samples of GPUs through a folder: from a process that may read the counters to processes
 * that may not, also in other containers of the host. A piece of some 50 ms is a sidecar file with
 * devices, their ids and samples, which appears complete. Names are wall clock times and grow;
 * times inside have both clocks, since a container may have its own CLOCK_MONOTONIC.
 *
 *	DIR/samples/0000a1b2c3d4e5f6.sidecar	the writer's; readable for all
 *	DIR/wanted/ANYTHING			a reader's: its age says until when it wants
 *						samples; its contents are never read
 *
 * A reader trusts neither the bytes (format/sidecar/sidecar.h) nor the folder's owner to clean up,
 * and reads only files of root, its own user or DIR's owner; the writer trusts no file that a
 * reader may have put there.
 * Source: the paper, section 5, "Accessing hardware information".
 */
#pragma once

#include "format/sidecar/sidecar.h"

#define GPUSHARE_SAMPLES "samples"
#define GPUSHARE_WANTED "wanted"
#define GPUSHARE_KEEP_NS (30 * NSEC_PER_SEC)  /* pieces older than that are removed */
#define GPUSHARE_WANTED_NS (3 * NSEC_PER_SEC) /* a request is valid for so long */
#define GPUSHARE_PIECE_MAX (4u << 20)	      /* bytes that a reader takes at once */
#define GPUSHARE_PIECES_MAX 1024u	      /* of a folder that a reader looks at */

struct gpushare_writer {
	int dir_fd, samples_fd, wanted_fd;
	int64_t last_wall_ns; /* name of the latest piece */
	int64_t swept_wall_ns;
};

/*
 * Makes the two folders in dir, which exists; existing ones must be writable by this user only, old
 * pieces are removed. open_to_all: other users may request samples. Returns 0 or -errno with a line
 * in err.
 */
_must_check_ int gpushare_create(const char *dir, bool open_to_all, struct gpushare_writer *ret,
				 struct err *err);

/* Writes a piece, and removes old ones. Its header's wall_ns is now. Returns 0 or -errno. */
_must_check_ int gpushare_write(struct gpushare_writer *writer, const struct sidecar *piece);

/* Whether there is a valid request; removes all other entries. */
bool gpushare_is_wanted(const struct gpushare_writer *writer, int64_t wall_ns);

/* Removes all pieces, and the two folders if there is no request. */
void gpushare_close_writer(struct gpushare_writer *writer);

struct gpushare_reader {
	const char *dir;
	int64_t last_wall_ns; /* name of the latest piece that was looked at */
	uint64_t refused;     /* pieces that made no sense */
	char request[64];     /* name of the own request; "": none */
};

/* dir: borrowed. Pieces of before wall_ns are left out. Cannot fail. */
void gpushare_open(const char *dir, int64_t wall_ns, struct gpushare_reader *ret);

/* To be called about once a second while samples are wanted. Returns 0 or -errno. */
int gpushare_request(struct gpushare_reader *reader);

/*
 * Passes new pieces on, in order, borrowed for the call; times are CLOCK_MONOTONIC of this process.
 * Returns how many, or -errno: -ENOENT no writer, -EPERM users other than its owner may write
 * there, or the owner is not trusted.
 */
int gpushare_read(struct gpushare_reader *reader, void (*take)(void *arg, const struct sidecar *),
		  void *arg);

/* Removes the request. */
void gpushare_close(struct gpushare_reader *reader);
