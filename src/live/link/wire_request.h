/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Messages of requests: what clients such as `perftracker profile` ask for, and the answers.
 */
#pragma once

#include "live/link/wire.h"

enum wire_ask_kind { ASK_PROFILE, ASK_ACCEPT };

#define WIRE_ASK_WHY 256

struct wire_ask {
	uint64_t client;	/* hostd's id of the client, returned in wire_reply */
	uint64_t window_ns;	/* ASK_PROFILE: 0: as configured */
	uint32_t kind;		/* enum wire_ask_kind */
	uint32_t pid;		/* the client's */
	char why[WIRE_ASK_WHY]; /* ASK_PROFILE: "USER: REASON", printable; "": none was given */
};

/* text: of MSG_REQUEST, from outside; what a line of the log must not have is replaced. */
static inline void wire_ask_say_why(struct wire_ask *ask, const char *text)
{
	size_t len = 0;

	for (; *text != '\0' && len + 2 < sizeof(ask->why); text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '\n')
			ask->why[len++] = ':';
		ask->why[len++] = c == '"' ? '\'' : c < ' ' || c == 0x7f ? ' ' : (char)c;
	}
	ask->why[len] = '\0';
}

/* The slow pace of each worker becomes its baseline. */
struct wire_accept {
	uint64_t step; /* of the job at the request */
};

struct wire_reply {
	uint64_t client;
	int32_t status; /* 0 or errno */
	uint32_t reserved;
	char text[WIRE_TEXT]; /* path of the report, or the error */
};

/* `perftracker timeline` on the leader's host wants the recorders of all hosts; a wire_reply follows. */
#define SUBJECT_COLLECT "pt.v1.collect.local"

struct wire_collect {
	uint64_t client; /* as of wire_ask */
};

/* To hostd: save all recorders, and hostd's answer. */
#define SUBJECT_SAVE "pt.v1.save.local"
#define SUBJECT_SAVED "pt.v1.saved.local"

struct wire_save {
	uint64_t id;
};
