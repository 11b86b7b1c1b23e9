/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of functions, each sent once. A fingerprint on the wire names a frame by the
 * 128-bit hash of its key, its kind, its text and, by their hash, its callers. So the
 * receiver can check that a name belongs to an id, no sender can give another's function
 * a false name, and the spelling of a worker's name does not depend on the order of
 * messages.
 *
 * The receiver keeps a dictionary. An id it meets gets a place at once, so that
 * numbers can be filed before names are known; the name comes with this message, a
 * later one, or is asked for (fpwire.h).
 */
#pragma once

#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

#define FPNAMES_MAX (1u << 20) /* frames in one dictionary */
#define FPNAMES_BYTES_MAX (256u << 20)
#define FPNAMES_TEXT_MAX 4095u /* bytes of one name; what is longer is cut */

struct fpname_id {
	uint64_t hi, lo;
};

/* No frame at all: the caller of a root, the place of a function outside all frames. */
static const struct fpname_id fpname_none = { 0, 0 };

struct fpname {
	struct fpname_id id;
	struct funckey key;
	const char *text; /* in the dictionary's arena; NULL: not known yet */
	uint32_t parent;  /* place in the dictionary; FRAME_NONE at a root, or not known */
	uint8_t kind;	  /* enum event_kind */
	uint8_t asked;	  /* senders asked for it; the receiver's own note */
};

struct fpnames {
	struct arena arena;
	VEC(struct fpname) list; /* by place; a place never changes */
	uint32_t *slots;	 /* open addressing: place + 1, 0 is free */
	size_t slot_cnt;	 /* power of two */
	size_t unknown_cnt;	 /* places without a name */
};

/* Frees all; a zeroed dictionary is empty and valid. */
void fpnames_done(struct fpnames *names);

/* Whether two ids are one. */
static inline bool fpname_id_equal(struct fpname_id a, struct fpname_id b)
{
	return a.hi == b.hi && a.lo == b.lo;
}

/* Order of ids, as qsort() wants it: the same on every machine. */
int fpname_id_cmp(struct fpname_id a, struct fpname_id b);

/* The id of a frame below the one called parent (fpname_none: a root). O(len). */
struct fpname_id fpname_id_of(struct fpname_id parent, struct funckey key, uint8_t kind,
			      const char *text, size_t len);

/* Length of the part of a name that travels. */
size_t fpname_text_len(const char *text);

/*
 * The place of an id, made without a name when it is new; FRAME_NONE for fpname_none.
 * Returns 0, -ENOMEM, or -ENOBUFS when the dictionary is full.
 */
_must_check_ int fpnames_place(struct fpnames *names, struct fpname_id id, uint32_t *ret);

/* The place of an id; FRAME_NONE when it has none. */
uint32_t fpnames_find(const struct fpnames *names, struct fpname_id id);

/*
 * Files a frame under the id that follows from it. parent is a place whose name is
 * known, or FRAME_NONE. Returns 0 also when it was known already; -ENOMEM; -ENOBUFS
 * for a full dictionary. Stacks may be of any depth; no frame is its own caller,
 * since its id would have to be known before it is computed.
 */
_must_check_ int fpnames_learn(struct fpnames *names, uint32_t parent, struct funckey key,
			       uint8_t kind, const char *text, size_t len, uint32_t *ret);
