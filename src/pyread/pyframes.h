/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The frames of one thread as bytes, copied with as few system calls as possible: a call costs more
 * than the bytes it copies.
 *
 * From 3.11 on frames lie on a stack of their own, in chunks of usually 16 KiB: the used part of
 * the newest is copied at once. Frames elsewhere (all of them before 3.11, later those of
 * generators) are strays; they are most likely where they were at the last read of this thread, so
 * those addresses are copied in the same call. Both are guesses about addresses only: a frame is
 * used when a pointer leads to it.
 */
#pragma once

#include "pyread/pylayout.h"
#include "pyread/selfmem.h"

enum {
	PYFRAMES_WINDOW = 16 << 10,
	PYFRAMES_STRAYS = 60, /* guessed per walk */
	PYFRAMES_BYTES = 128, /* of a frame, at most */
};

/* 25 KiB, made for the reader's stack. All but `first` is for pyframes.c. */
struct pyframes {
	const struct selfmem *mem;
	const struct pylayout *layout;
	uintptr_t first; /* the innermost frame; 0 for a thread that runs no Python */

	uintptr_t begin, end;	  /* what `window` holds */
	uintptr_t chunk;	  /* the chunk that contains it; 0 without one */
	uintptr_t prev, prev_end; /* the previous chunk; its end is 0 until read */
	unsigned char window[PYFRAMES_WINDOW];

	uintptr_t tstate;
	size_t guessed_cnt, next; /* next: the guess to look at first, in the order of frames */
	size_t met_cnt;
	uintptr_t guessed[PYFRAMES_STRAYS], met[PYFRAMES_STRAYS];
	unsigned char strays[PYFRAMES_STRAYS][PYFRAMES_BYTES];
	unsigned char stray[PYFRAMES_BYTES]; /* a frame outside all guesses */
};

/* tstate: where the PyThreadState is, and a copy of it. False if its fields are inconsistent. */
_must_check_ bool pyframes_begin(struct pyframes *frames, const struct selfmem *mem,
				 const struct pylayout *layout, uintptr_t tstate,
				 const unsigned char *bytes);

/*
 * A copy of layout->frame_bytes of the frame at that address, valid until the next
 * call; NULL when it can't be read. Ask for them from the innermost on.
 */
const unsigned char *pyframes_borrow(struct pyframes *frames, uintptr_t frame);

/* The walk succeeded: remembers the strays for the next one. */
void pyframes_remember(const struct pyframes *frames);
