/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What fingerprints of one job have in common, kept once: texts, and the trees of frames, which are
 * equal on workers that run the same code. Of a fingerprint of some kilobytes that is half.
 * Not for several threads at once: each has its own.
 */
#pragma once

#include "base/idmap.h"
#include "base/strtab.h"
#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

struct fpshare_tree {
	struct fp_frame *frames; /* in the table's arena; names are texts of the table */
	size_t cnt;
};

struct fpshare {
	struct strtab texts;
	struct idmap tree_of; /* by the hash of its bytes: the latest that has it */
	VEC(struct fpshare_tree) trees;
	struct fp_frame *scratch; /* of the fingerprint that is being read */
	size_t scratch_cnt;
};

/* Returns 0 or -ENOMEM. fpshare_done() is fine on a zeroed one, and ends all that was read with it. */
_must_check_ int fpshare_init(struct fpshare *share);
void fpshare_done(struct fpshare *share);

/* A text that is valid until fpshare_done(). NULL: out of memory. */
const char *fpshare_text(struct fpshare *share, const char *text, size_t len);

/* Room for cnt + 1 frames, zeroed, valid until the next call. NULL: out of memory. */
struct fp_frame *fpshare_frames(struct fpshare *share, size_t cnt);

/* The equal tree that is kept, or a copy of this one. NULL: out of memory. */
struct fp_frame *fpshare_tree(struct fpshare *share, const struct fp_frame *frames, size_t cnt);
