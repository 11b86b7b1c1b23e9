/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Jobs built by hand for the tests of this folder: fingerprints written down
 * function by function, and a clockwork that plays workers that work and meet in
 * collectives, and writes down what each of them would have seen.
 */
#pragma once

#include "base/vec.h"
#include "localize/localize.h"

#include <setjmp.h>
#include <stdarg.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

#define TEST_GROUPS 4 /* process groups that the clockwork knows */

typedef VEC(struct fp_share) test_shares;

struct test_worker {
	struct fingerprint fp;
	VEC(struct fp_frame) frames;
	VEC(struct fp_function) functions;
	VEC(struct fp_collective) collectives;
	VEC(struct fp_iteration) iterations;
	test_shares shares;
	int64_t now_ns;			/* clockwork: the true time */
	test_shares leads[TEST_GROUPS]; /* since the last collective of the group */
	int64_t lead_from_ns[TEST_GROUPS];
	int64_t seq[TEST_GROUPS];
	int64_t busy_until_ns; /* clockwork: the end of the last asynchronous collective */
};

struct test_job {
	struct test_worker *workers;
	const struct fingerprint **fps;
	size_t cnt;
};

/* All workers alike: no functions, the window and the iterations given. */
void test_job_init(struct test_job *job, size_t worker_cnt, double window_ms, size_t iteration_cnt);
void test_job_done(struct test_job *job); /* twice is fine */

/* Index of the frame on worker w, made when it is new. */
uint32_t test_frame(struct test_job *job, size_t w, uint32_t parent, enum event_kind kind,
		    const char *name);

/* A function that held beta of the window; borrowed until the next is added. */
struct fp_function *test_function(struct test_job *job, size_t w, uint32_t frame,
				  enum event_class class, double beta);
void test_utilize(struct fp_function *f, enum resource resource, double mu, double sigma);

/* --- the clockwork: begins with a window of 0 --- */

struct test_place {
	const char *context; /* annotation around it; NULL: none */
	enum event_kind kind;
	const char *name;
	enum event_class class;
};

extern const struct test_place test_mm;	  /* a kernel that computes */
extern const struct test_place test_nap;  /* the training thread does nothing, in forward */
extern const struct test_place test_crop; /* a function of Python */

/* Starts an iteration on all workers, each at its own time. */
void test_iterate(struct test_job *job);

/* Worker w spends ms in a place. */
void test_work(struct test_job *job, size_t w, const struct test_place *place, double ms);

/* Workers [first, first + cnt) meet: it ends on all at the last arrival plus transfer_ms. */
void test_meet(struct test_job *job, unsigned int group, size_t first, size_t cnt,
	       double transfer_ms);

/*
 * The same without waiting: the collective begins when it is launched, and the
 * workers go on. test_wait() waits for the last of them.
 */
void test_launch(struct test_job *job, unsigned int group, size_t first, size_t cnt,
		 double transfer_ms);
void test_wait(struct test_job *job, size_t w);

/* Computes windows and shares from what was played. Call once, at the end. */
void test_finish(struct test_job *job);

/*
 * A whole job: six iterations of 100 ms on 4 workers, of which `late` (SIZE_MAX: none)
 * spends ms more in a place.
 */
void test_play_late(struct test_job *job, const struct test_place *place, size_t late, double ms);

/* Moves worker w's window clock. After test_finish(). */
void test_shift_clock(struct test_job *job, size_t w, double ms);

/* Worker w's window misses collectives at its begin and end. After test_finish(). */
void test_lose_collectives(struct test_job *job, size_t w, size_t first_cnt, size_t last_cnt);

/* --- the answer --- */

/* localize() with these options (NULL: the defaults); fails the test on error. */
struct report test_localize(const struct test_job *job, const struct localize_options *options);

/* First finding with this cause; NULL when there is none. */
const struct finding *test_find(const struct report *report, const char *cause);

/* Fails unless the accused are exactly these, written "0-2,7". */
void test_assert_ranks(const struct finding *finding, const char *ranks);
