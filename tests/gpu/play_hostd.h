/* SPDX-License-Identifier: Apache-2.0 */
/* For harnesses: the daemon's side of the agent library, as far as to see what it records. */
#pragma once

#include "format/flightlog/flightlog.h"

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: " #condition "\n", __FILE__, __LINE__); \
			exit(1);                                                        \
		}                                                                       \
	} while (0)

extern struct hostd {
	char folder[64], path[96]; /* path: of the socket */
	int listener, conn;
	struct flight *flight; /* the worker's recorder, once it was taken */
} hostd;

void open_daemon(void);

/* After pt_agent_start(): what it sent. */
void take_recorder(void);

void close_daemon(void);

/* For the library a slice of the overhead check is the same as a window, without Python. */
void order_window(uint64_t id, uint64_t slice_cnt);
