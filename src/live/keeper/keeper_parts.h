/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the keeper: its queue (keeper.c) and its thread (keeper_thread.c). */
#pragma once

#include "base/arena.h"
#include "base/vec.h"
#include "live/keeper/keeper.h"
#include "store/store.h"

#include <pthread.h>

enum keeper_kind { KEEPER_PACE, KEEPER_REPORT, KEEPER_FINGERPRINT, KEEPER_EVENT, KEEPER_WINDOW };

#define KEEPER_WINDOWS_MAX 4096u /* that are remembered */
#define KEEPER_WINDOW_EVENT "window"

struct keeper_window {
	uint64_t epoch, number;
	char *ranks; /* as of rankset.h; owned */
};

typedef VEC(struct keeper_window) keeper_windows;

/* One thing to write; its texts are in its arena. */
struct keeper_item {
	struct keeper_item *next;
	enum keeper_kind kind;
	struct arena arena;
	struct store_pace pace;
	struct store_report report; /* of a fingerprint: its number */
	const struct store_finding *findings;
	size_t finding_cnt;
	struct store_event event;
	int rank;
	const char *path;
};

struct keeper {
	/* constant after keeper_open() */
	struct arena arena;
	char key[STORE_KEY_BYTES], owner[64], host[256], machine[256];
	const char *where, *name, *folder, *command;
	struct keeper *also; /* NULL: none */
	bool brief;
	bool remembers; /* keeper_remember() was called, before anything else was said */
	int64_t started_ns;
	pthread_t thread;
	/* of the hub's thread */
	struct store_pace second; /* cnt 0: none has begun */
	uint64_t last_step, event_cnt;
	struct runpace pace; /* of this run */
	/* of both, under lock */
	pthread_mutex_t lock;
	pthread_cond_t wake;
	struct keeper_item *head, **tail;
	size_t queued_cnt;
	bool urgent, closing, has_state;
	bool open;			 /* between keeper_begin() and keeper_end() */
	bool known_wanted, known_loaded; /* windows of earlier hubs */
	keeper_windows known, committed; /* committed: to be taken by the hub */
	uint64_t lost_cnt;
	struct keeper_memory memory; /* read once */
	bool memory_loaded;
	size_t beside_cnt;	   /* jobs on this machine since this one began */
	struct keeper_state state; /* its texts are those that follow */
	char state_text[64], verdict[24], reason[400];
	int64_t seen_ns;
	/* of the keeper's thread */
	struct store *store;	    /* NULL: not open */
	int64_t retry_ns, prune_ns; /* not before */
	bool told;		    /* a line says that the store fails */
};

void *keeper_main(void *arg);
/* On the hub's thread: the second that has ended. */
void keeper_memory_add_pace(struct keeper *keeper);
void keeper_memory_done(struct keeper_memory *memory);
/* On the keeper's thread, after a write. An error leaves it for the next time. */
void keeper_memory_load(struct keeper *keeper);
struct keeper_item *keeper_item_free(struct keeper_item *item);
