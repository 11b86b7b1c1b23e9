/* SPDX-License-Identifier: Apache-2.0 */
/*
 * One other host as the leader knows it: which of its items have been taken, how its clock differs,
 * and the fingerprint that is being received.
 */
#pragma once

#include "base/vec.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"

struct remote {
	char host[64], id[48]; /* its name; the last part of its subject */
	uint32_t slot;	     /* from 1, another one for each boot; of the ids of its workers here */
	uint32_t node_rank;  /* as it says */
	uint64_t boot, next; /* the item that is to come next */
	int64_t offset_ns;   /* by which its CLOCK_MONOTONIC is behind; the least seen */
	int64_t heard_ns, acked_ns;
	uint64_t collected; /* the latest collection of recorders that it has answered */
	bool ended, silent, ack_due, doubled; /* doubled: a second daemon with its id was told */
	int exit_status;		      /* of its command, if that has ended */
	struct wire_spools spools;	      /* what it keeps */
	VEC(struct wire_state) states;	      /* as published */
	struct remote_file {
		uint32_t worker;
		uint64_t order, size, got;
		char *data; /* NULL: none */
	} file;
};

/* A host whose daemon was started (again). */
void remote_begin(struct remote *remote, const Cluster__Up *up);
void remote_done(struct remote *remote);

/* Notes the delay of a message. */
void remote_hear(struct remote *remote, const Cluster__Up *up);
struct convert_from remote_from(const struct remote *remote);

/* Keeps it for remote_silence(). Returns 0 or -ENOMEM. */
int remote_keep_state(struct remote *remote, const struct wire_state *state);

/* Adds a piece to the file. Returns 0, -EINVAL (it does not fit), or -ENOMEM. */
int remote_add_piece(struct remote *remote, const Cluster__Piece *piece);

/*
 * Writes the complete file of this worker and order to path and forgets it. Returns 0, or -errno
 * with a line in err.
 */
int remote_save_file(struct remote *remote, uint32_t worker, uint64_t order, const char *path,
		     struct err *err);
