/* SPDX-License-Identifier: Apache-2.0 */
/* What pytrace.c shares with the two ways of tracing. Interpreter lock held. */
#pragma once

#include "agent/python/pycall.h"

/* A call begins or ends on this thread. Ends without a beginning are ignored. */
void pytrace_begins(struct pyobject *code);
void pytrace_ends(const struct pyobject *code);

/* The same of any callable object: nothing happens, and false, unless it is listed. */
bool pytrace_c_begins(struct pyobject *callable, struct pyobject *first);
void pytrace_c_ends(const struct pyobject *callable);

/* Whether a window is traced. Asked by each callback: a forked child has the hooks, too. */
bool pytrace_is_on(void);

/* Writes first and then into why[size]. */
void pytrace_say(char *why, size_t size, const char *first, const char *then);

/* One way of tracing. */
struct pytrace_way {
	/* -EBUSY with the reason if another tool uses the interface. */
	int (*check)(const struct pyapi *api, char *why, size_t size);
	/* 0, or -errno with the reason and all as before. */
	int (*start)(const struct pyapi *api, bool calls, char *why, size_t size);
	void (*stop)(const struct pyapi *api);
};
extern const struct pytrace_way pytrace_monitoring; /* 3.12 and later */
extern const struct pytrace_way pytrace_profile;    /* before */
