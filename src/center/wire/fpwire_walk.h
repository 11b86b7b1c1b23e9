/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Inside of the codec: bytes in either direction. A walk over a message (fpwire.c)
 * calls the same functions to write and to read, so that writer and reader cannot
 * disagree. Writing leaves in memory what the reader will find: values are rounded
 * in place, and both sides predict from the same numbers.
 */
#pragma once

#include "center/wire/fpwire.h"

#include <errno.h>
#include <string.h>

#define FPWIRE_TIME_MAX (INT64_MAX / 4) /* of any time in a fingerprint */

/* Either direction. Writing: out is set. Reading: data is set and off moves. */
struct wire {
	struct str *out;
	const uint8_t *data;
	size_t len, off;
	size_t field_off;  /* where the field being read begins */
	size_t name_bytes; /* of all frames so far */
	struct err *err;
	int error; /* the first one sticks; all later calls do nothing */
};

static inline bool wire_reads(const struct wire *w)
{
	return w->out == NULL;
}

/* Notes what is wrong with the field at hand. */
void wire_fail(struct wire *w, const char *expected, uint64_t found);

void wire_byte(struct wire *w, uint8_t *value);

/* Eight bytes, for hashes. */
void wire_u64(struct wire *w, uint64_t *value);

/* Two bytes. */
void wire_code(struct wire *w, uint16_t *code);

/* cnt bytes of a text, none of them NUL. */
void wire_chars(struct wire *w, char *chars, size_t cnt);

/* Seven bits a byte, least significant first; at most max. */
void wire_uint(struct wire *w, uint64_t *value, uint64_t max, const char *expected);

/* The difference to a base that both sides know: short when it is small either way. */
void wire_near(struct wire *w, int64_t *value, int64_t base);

/* As wire_near(), within [low, high]. */
void wire_within(struct wire *w, int64_t *value, int64_t base, int64_t low, int64_t high,
		 const char *expected);

/* A time of 0..FPWIRE_TIME_MAX, rounded to what code16 can hold. */
void wire_time(struct wire *w, int64_t *ns);

/* A number of elements that take at least min_bytes each. */
void wire_cnt(struct wire *w, size_t *cnt, size_t min_bytes, const char *expected);

/* Makes a vector of the message longer, to n elements, with zeros; reading only. */
#define wire_resize(w, vec, n)                                                           \
	do {                                                                             \
		if ((w)->error == 0 && wire_reads(w) && vec_reserve((vec), (n) + 1) < 0) \
			(w)->error = -ENOMEM;                                            \
		if ((w)->error == 0 && wire_reads(w)) {                                  \
			memset((vec)->data + (vec)->cnt, 0,                              \
			       ((n) - (vec)->cnt) * sizeof(*(vec)->data));               \
			(vec)->cnt = (n);                                                \
		}                                                                        \
	} while (0)

/* Where a worker's texts are, in the order in which they are numbered. */
void wire_text_fields(struct fingerprint *fp, const char **ret[FPWIRE_TEXT_CNT]);

/* Parts of a message with fingerprints, in their own files. */
void wire_presence(struct wire *w, struct fpwire *m);
void wire_columns(struct wire *w, struct fpwire *m);
void wire_iterations(struct wire *w, struct fpwire *m);
void wire_collectives(struct wire *w, struct fpwire *m);

/* A whole message but for the hash at its end. */
void wire_message(struct wire *w, struct fpwire *m);

/* Appends a message with its hash; rounds its numbers. Returns 0, -EINVAL or -ENOMEM. */
_must_check_ int fpwire_write(struct fpwire *message, struct str *out, struct err *err);

/*
 * Forgets a message's contents, keeps its memory, and gives it some: an index into an
 * array that was never allocated would be no index. Returns 0 or -ENOMEM.
 */
_must_check_ int fpwire_reset(struct fpwire *message);

/* Lets the workers point into the message's arrays, which have stopped moving. */
void fpwire_bind(struct fpwire *message);

/* A text of the message, "" for an index out of range. */
const char *fpwire_text(const struct fpwire *m, uint32_t idx);

/* Hash over a message without its last eight bytes. */
uint64_t fpwire_hash(const void *data, size_t len);

/* Index of the kind of a collective; the kinds are sorted. */
size_t fpwire_kind_find(const struct fpwire *message, const struct fp_collective *c);
int fpwire_kind_cmp(const void *a, const void *b);
