/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of events. Iterations repeat the names of the previous one. The name that followed
 * the last two names is the guess: comparing it saves finding the end of the text and hashing.
 */
#pragma once

#include "model/event.h"
#include "read/kineto/scan_values.h"
#include "read/kineto/shape_match.h"

#include <errno.h>

/* At least the number of pairs in an iteration. */
#define KNAME_GUESSES 16384u

struct knames {
	struct scan *scan;
	struct strtab *strings;
	uint32_t *guesses; /* by hash of two names: the name that followed; KNAME_GUESSES of them */
	uint32_t *guess;   /* in guesses, for the next name */
	uint32_t last;
};

/* Borrows scan and strings. Returns 0 or -ENOMEM; call knames_done() in either case. */
_must_check_ static inline int knames_init(struct knames *names, struct scan *scan,
					   struct strtab *strings)
{
	*names = (struct knames){ .scan = scan, .strings = strings };
	names->guesses = calloc(KNAME_GUESSES, sizeof(*names->guesses));
	names->guess = names->guesses;
	return names->guesses != NULL ? 0 : -ENOMEM;
}

static inline void knames_done(struct knames *names)
{
	free(names->guesses);
	names->guesses = names->guess = NULL;
}

/* The guess for the name after the last one and this. */
static inline uint32_t *knames_next(struct knames *names, uint32_t name)
{
	uint64_t mixed = ((uint64_t)names->last << 32 | name) * 0x9e3779b97f4a7c15ULL;

	names->last = name;
	return &names->guesses[mixed >> 32 & (KNAME_GUESSES - 1)];
}

/* Consumes the name at a '"' if it is the guess. */
static inline bool knames_guessed(const struct knames *names)
{
	const struct strtab_entry *entry = &names->strings->entries[*names->guess];
	struct scan *scan = names->scan;

	if ((size_t)(scan->end - scan->p) < entry->len + 2 || scan->p[entry->len + 1] != '"' ||
	    !shape_fits((const uint8_t *)entry->text, scan->p + 1, entry->len))
		return false;
	scan->p += entry->len + 2;
	return true;
}

/* Reads the string at a '"' if it is the guess; else returns false, nothing consumed. */
static inline bool knames_read_guessed(struct knames *names, uint32_t *ret)
{
	if (!knames_guessed(names))
		return false;
	*ret = *names->guess;
	names->guess = knames_next(names, *ret);
	return true;
}

/* The string at a '"', interned. 0 or -errno. */
_must_check_ static inline int knames_read(struct knames *names, uint32_t *ret)
{
	struct scan_text text;
	int r;

	if (knames_read_guessed(names, ret))
		return 0;
	r = scan_string(names->scan, &text);
	if (r < 0)
		return r;
	*ret = strtab_intern(names->strings, text.text, text.len);
	if (*ret == STRTAB_NONE)
		return -ENOMEM;
	/* The text of a mended name differs from the entry: never guess it. */
	if (text.text != names->scan->mended.data)
		*names->guess = *ret;
	names->guess = knames_next(names, *ret);
	return 0;
}
