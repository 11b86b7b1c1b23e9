/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of one run: the merged calling-context trees of all its fingerprints, with the
 * times of each function in each window. Private to this folder.
 */
#pragma once

#include "base/idmap.h"
#include "base/vec.h"
#include "format/fingerprint/fingerprint.h"

#define NODE_NONE UINT32_MAX
#define NODE_ROOT 0u

enum node_match { MATCH_NONE, MATCH_SAME, MATCH_RENAMED, MATCH_MOVED };

/* Callers precede callees; node 0 is the root, which is not a function. */
struct run_node {
	struct funckey key;
	uint32_t parent;		    /* NODE_NONE at the root */
	uint32_t first_child, next_sibling; /* NODE_NONE: none */
	uint64_t name_hash;		    /* of kind and canonical name */
	uint8_t kind;			    /* enum event_kind */
	uint8_t match;			    /* enum node_match, set by pairing_find() */
	uint32_t partner;		    /* in the other run; NODE_NONE: none */
	const char *name, *launched_by;	    /* borrowed from a fingerprint; may be NULL */
	double self_ms, tree_ms, tree_thread_ms, runs; /* per iteration, means over the windows */
};

/* Times of one function in one window, per iteration. */
struct run_cell {
	uint32_t node, window;
	uint8_t class;
	double ms, thread_ms, runs;
	double deviation_ms; /* standard deviation of ms over the iterations; NAN unknown */
};

/* One fingerprint. */
struct run_window {
	const struct fingerprint *fp;
	uint32_t rank, repeat; /* dense numbers: rank index in the run, window index of the rank */
	double iterations;
	double iteration_ms; /* window / iterations */
	double deviation_ms; /* of the iterations; NAN unknown */
};

struct run_tree {
	VEC(struct run_node) nodes;
	VEC(struct run_cell) cells;
	struct run_window *windows;
	size_t window_cnt, rank_cnt, repeat_cnt;
	struct idmap node_of; /* key.lo -> node */
	double iteration_ms;  /* mean over the windows */
	double rest_ms;	      /* time left out of the fingerprints */
};

/*
 * fps[cnt], cnt >= 1, with their ranks assigned; fingerprints of one rank are repeats. They are
 * borrowed and must outlive the tree. Returns 0 or -ENOMEM; run_tree_done() is fine after either.
 */
_must_check_ int run_tree_build(const struct fingerprint *const *fps, size_t cnt,
				struct run_tree *ret);
void run_tree_done(struct run_tree *tree);

/* The node of a key, NODE_NONE if the run has none. */
uint32_t run_tree_find(const struct run_tree *tree, struct funckey key);
