/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Where threads of the training process write: each thread that records
 * something takes a lane of the flight recorder, for good, with two rings of its
 * own. No lock, no allocation, no system call but the one that asks for the
 * thread's id and name when it takes its lane.
 * Source: format/shared/recorder.h.
 */
#pragma once

#include "format/shared/recorder.h"

/*
 * Before any record. flight NULL: stops recording; writers still running write into memory that
 * stays mapped.
 */
void lane_attach(struct flight *flight);

/* The recorder, or NULL. */
struct flight *lane_flight(void);

/* Whether the calling thread has a lane already. */
bool lane_is_taken(void);

/*
 * Reserves a lane for a thread to be started, which adopts it before its first record. 0: none
 * left.
 */
uint32_t lane_reserve(void);
void lane_adopt(uint32_t lane);

/* What is recorded always. A thread without a lane is counted. */
void lane_record(const struct ring_record *record);

/*
 * Likewise cnt records, one behind the other, of a thread that has no lane and shall get none
 * because it may be gone soon: on one of a few lanes that such threads take for a moment.
 * False: all of them are being written to, or no lane was left for the first of them.
 */
bool lane_record_shared(const struct ring_record *records, size_t cnt);

/* What is recorded while a window is open; nothing happens else. */
void lane_record_window(const struct ring_record *record);

/* As lane_record_window(), also when the window is over: what it holds may come late. */
void lane_record_late(const struct ring_record *record);

/* Whether a window is open: asked before the work of making a record. */
bool lane_window_is_open(void);

/* On one thread. Opening a window may wait until one ring is freed. */
void lane_open_window(uint32_t id);
void lane_close_window(void);

/*
 * Frees the memory of the window's rings, ring by ring. Takes a moment: not on the training thread.
 * False: a window was opened meanwhile, and the remaining rings keep their memory.
 */
bool lane_free_window(void);
