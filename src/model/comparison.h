/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Two runs of a job side by side: compare's output, report's input. Plain data; every string and
 * array lives in the arena of the comparison. docs/compare-schema.json is the contract of its JSON
 * form (perftracker.diff.v1).
 *
 * Times are those of the critical path, per iteration, means over the workers. They add up: the
 * difference of the iterations is the sum of the changes, of the small changes that are not listed,
 * and of the time that the fingerprints left out.
 * Source: summarize/critpath.h (shares of a window add up to the window).
 */
#pragma once

#include "base/arena.h"
#include "model/event.h"
#include "model/finding.h"

enum change_kind {
	CHANGE_GREW,	 /* in both runs */
	CHANGE_SHRANK,	 /* in both runs */
	CHANGE_APPEARED, /* with all its callees; absent before, or below the listing threshold */
	CHANGE_VANISHED, /* with all its former callees */
	CHANGE_RENAMED,	 /* another name at the same place; includes unmatched descendants */
	CHANGE_MOVED,	 /* same name, different stack */
	CHANGE_KIND_CNT
};

/* One function, or a subtree of them, in one of the runs. */
struct change_side {
	double ms;	  /* on the critical path, per iteration */
	double thread_ms; /* on the training thread, including while the device had work */
	double tree_ms;	  /* as ms, for the whole subtree, wherever that is counted */
	double runs;	  /* executions per iteration of the function itself; 0 unknown */
};

struct change {
	enum change_kind kind;
	enum event_class class; /* the class of most of its time */
	const char *key;	/* 32 hex digits: identity after, or before if it vanished */
	const char *name;
	const char *old_name;	  /* renamed: the name before; else NULL */
	const char *const *stack; /* callers, outermost first */
	size_t stack_cnt;
	const char *const *old_stack; /* moved: the callers before; else empty */
	size_t old_stack_cnt;
	const char *launched_by; /* kernels: the operators that launch it most; NULL unknown */
	size_t function_cnt;	 /* number of functions it sums up */
	struct change_side before, after;
	double delta_ms, delta_pct; /* pct: of the iteration time before */
	double p, q; /* probability of such a difference without a cause, alone and among all
		      * changes (Benjamini-Hochberg); NAN: could not be tested */
	bool significant;
	enum confidence confidence;
};

/* One of the two runs. */
struct comparison_side {
	const char *label; /* the path as given, and the number of further paths */
	const char *job_id, *device_name;
	size_t worker_cnt;   /* ranks */
	size_t window_cnt;   /* windows of each rank: repeats */
	double iterations;   /* in a window, median over the workers */
	double iteration_ms; /* window / iterations, mean over the workers */
	double class_ms[CLASS_CNT];
	bool iterations_known; /* false: each whole window counts as an iteration */
};

enum comparison_verdict {
	COMPARISON_SAME, /* difference below the minimum change */
	COMPARISON_SLOWER,
	COMPARISON_FASTER,
	COMPARISON_UNCERTAIN, /* different, but possibly by chance */
};

/* Data that the significance was computed from; bits. */
enum comparison_basis {
	BASIS_ITERATIONS = 1,
	BASIS_RANKS = 2,
	BASIS_WINDOWS = 4,
};

struct comparison {
	struct arena arena;
	struct comparison_side before, after;
	enum comparison_verdict verdict;
	double delta_ms, delta_pct, p;
	enum confidence confidence;
	unsigned int basis; /* enum comparison_basis */
	double level;	    /* of significance: false alarms among all alarms */
	double min_change_pct;
	const struct change *changes; /* by |delta_ms|, largest first */
	size_t change_cnt;
	size_t small_cnt;   /* changes that are not listed ... */
	double small_ms;    /* ... and their sum */
	double rest_ms;	    /* difference of the time left out of the fingerprints */
	double common_frac; /* share of both runs' time in functions of one identity */
	const char *const *notes;
	size_t note_cnt;
};

const char *change_kind_name(enum change_kind kind);
const char *comparison_verdict_name(enum comparison_verdict verdict);
void comparison_done(struct comparison *comparison);
