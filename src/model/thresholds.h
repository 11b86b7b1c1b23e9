/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The thresholds of detection and localization. Sizes of arrays and queues are in the files
 * that use them. tools/thresholds makes docs/thresholds.md of this file; above each definition
 * is a comment of four parts: "name: unit | source | meaning". style-limits: table
 */
#pragma once

#include "base/base.h"

/* --- Detection --- */

/*
 * PACE_WINDOW_CNT: iterations | paper, 4.1 | N: the window whose mean is compared with the
 * baseline
 */
#define PACE_WINDOW_CNT 50

/* PACE_WARMUP_CNT: iterations | not recorded | first iterations that are left out */
#define PACE_WARMUP_CNT 5

/*
 * PACE_CONFIRM_CNT: iterations | not recorded | iterations in a row that must be over the
 * threshold
 */
#define PACE_CONFIRM_CNT 3

/*
 * PACE_HISTORY_CNT: windows | 2,000 iterations | recorded windows that the baseline is taken from
 */
#define PACE_HISTORY_CNT 200

/*
 * PACE_PAUSE_CNT: iterations | not recorded | long iterations that a window may hold without a
 * reason
 */
#define PACE_PAUSE_CNT 2

/*
 * PACE_ERA_CNT: eras | 128,000 iterations | eras of PACE_HISTORY_CNT windows that measure how the
 * pace of a healthy job wanders
 */
#define PACE_ERA_CNT 64u

/*
 * PACE_ERA_QUANTILE: share of windows | 200 iterations of 2,000 | a pace that so much of an era
 * had is no luck
 */
#define PACE_ERA_QUANTILE 0.1

/*
 * PACE_ERA_MIN: eras | not recorded | below, the wandering of the pace is not measured but
 * PACE_ERA_FRAC
 */
#define PACE_ERA_MIN 4u

/* PACE_ERA_FRAC: share of the pace | not recorded | deviation of two eras of a healthy job */
#define PACE_ERA_FRAC 0.02

/*
 * PACE_BELOW_WINDOWS: windows | not recorded | a slowdown is over when the pace has been below the
 * threshold for so long
 */
#define PACE_BELOW_WINDOWS 10u

/*
 * PACE_SLOW_FRAC: share of the baseline | paper, 4.1 | a mean that exceeds the baseline by less
 * is no slowdown
 */
#define PACE_SLOW_FRAC 0.05

/* PACE_NOISE_Z: standard errors | not recorded | a slowdown must exceed the noise by this */
#define PACE_NOISE_Z 6

/*
 * PACE_CLEAR_FACTOR: times the baseline | not recorded | windows with such a mean for as many
 * iterations as a window has, and PACE_CLEAR_NS, are a slowdown whatever the noise was
 */
#define PACE_CLEAR_FACTOR 1.5

/* PACE_CLEAR_NS: ns | not recorded | other programs disturb a job for less, mostly */
#define PACE_CLEAR_NS (5 * NSEC_PER_SEC)

/*
 * PACE_FEW_CNT: iterations | 1.3 s each, of 0.2 s before | so few are enough for PACE_CLEAR_FACTOR if
 * they took PACE_FEW_NS and all but two of them are as long each
 */
#define PACE_FEW_CNT 10u

/* PACE_FEW_NS: ns | 45 s | as PACE_CLEAR_NS, of few iterations */
#define PACE_FEW_NS (20 * NSEC_PER_SEC)

/*
 * PACE_LASTING_FACTOR: times the baseline | 1.5 | as PACE_CLEAR_FACTOR, for PACE_LASTING_WINDOWS
 * windows and PACE_LASTING_NS
 */
#define PACE_LASTING_FACTOR 1.4

/* PACE_LASTING_WINDOWS: windows | 3.6 | as many iterations are as long in the mean */
#define PACE_LASTING_WINDOWS 3u

/* PACE_LASTING_NS: ns | 55 s | as PACE_CLEAR_NS, of a smaller factor */
#define PACE_LASTING_NS (30 * NSEC_PER_SEC)

/*
 * PACE_PAUSE_FACTOR: times the median iteration | not recorded | from here on an iteration is a
 * long one
 */
#define PACE_PAUSE_FACTOR 2

/*
 * SEQUENCE_REPEAT_CNT: periods | paper, 4.1 | M: as many in a row must be alike to be the
 * iteration
 */
#define SEQUENCE_REPEAT_CNT 10

/*
 * LOOP_APART_PERIODS: times SEQUENCE_REPEAT_CNT | not recorded | after so many steps in which
 * nothing repeats, each step of an optimizer is an iteration
 */
#define LOOP_APART_PERIODS 10u

/*
 * LOOP_BACKWARD_CNT: backward passes | not recorded | as many without any optimizer step, and
 * they are the steps
 */
#define LOOP_BACKWARD_CNT 20u

/*
 * LOOP_IRREGULAR: iterations | not recorded | an iteration with further steps weighs as much as
 * so many without
 */
#define LOOP_IRREGULAR 8u

/*
 * LOOP_IRREGULAR_MAX: iterations | not recorded | with further steps, in excess of those without:
 * more, and each step is an iteration
 */
#define LOOP_IRREGULAR_MAX 4u

/*
 * LOOP_CLEAN_CNT: iterations | not recorded | alike in a row, they replace steps apart; twice
 * as many each further time
 */
#define LOOP_CLEAN_CNT 200u

/*
 * PHASE_FACTOR: times the usual iteration | not recorded | an iteration that takes longer may be
 * a phase of the job, such as a rollout
 */
#define PHASE_FACTOR 3

/* PHASE_FIRST_CNT: iterations | not recorded | the usual iteration is the lower quartile of them */
#define PHASE_FIRST_CNT 16u

/* PHASE_SEEN_CNT: runs of long iterations | not recorded | as many are seen before they are judged */
#define PHASE_SEEN_CNT 8u

/* PHASE_WINDOW_CNT: iterations | not recorded | N of the pace of long iterations */
#define PHASE_WINDOW_CNT 10u

/* PHASE_KEPT_CNT: iterations | not recorded | the first ones, sorted anew when phases are found */
#define PHASE_KEPT_CNT 1024u

/*
 * PHASE_SHARE: share of the time | not recorded | long iterations that take more have their own
 * baseline
 */
#define PHASE_SHARE 0.2

/* KIND_SHARE_CNT: iterations | not recorded | memory of what share of the time a kind takes */
#define KIND_SHARE_CNT 200

/*
 * SEQUENCE_LOST_CNT: marks | paper, 4.1 | K: after as many without an iteration it is learned anew
 */
#define SEQUENCE_LOST_CNT 200

/*
 * JOBWATCH_QUORUM_FRAC: share of workers | not recorded | as many must be slow or blocked for a
 * decision at once
 */
#define JOBWATCH_QUORUM_FRAC 0.25

/* JOBWATCH_LONE_NS: ns | not recorded | a job with fewer such workers is decided on after this */
#define JOBWATCH_LONE_NS (30 * NSEC_PER_SEC)

/* JOBWATCH_HOLD_NS: ns | not recorded | a job is slow when as many have been slow for so long */
#define JOBWATCH_HOLD_NS (2 * NSEC_PER_SEC)

/*
 * JOBWATCH_COST_NS: ns | a neighbor's burst makes a job 5 % slower for some seconds | and when it
 * has lost so much by that
 */
#define JOBWATCH_COST_NS NSEC_PER_SEC

/*
 * JOBWATCH_LENGTHEN_MAX: times | not recorded | the longest window of one slowdown, in first ones
 */
#define JOBWATCH_LENGTHEN_MAX 4u

/*
 * JOBWATCH_AGAIN_NS: ns | not recorded | a slowdown that lasts is profiled again, though a report
 * named its cause
 */
#define JOBWATCH_AGAIN_NS (4 * 3600 * NSEC_PER_SEC)

/*
 * SLOWDOWN_EXPLAINED: share of what iterations became longer by | half of the gain may be estimated away | of findings
 * that explain less of a slowdown, none is its cause
 */
#define SLOWDOWN_EXPLAINED (1.0 / 3)

/*
 * JOBWATCH_WORSE: times the iteration of the latest window | not recorded | a slow job that has
 * become as much slower is profiled again
 */
#define JOBWATCH_WORSE 1.5
/*
 * JOBWATCH_CONFIRM_NS: until a second window | measured: healthy jobs on two CPUs whose pace rose by
 * half for 1 to 9 s, because the host computed for others | longer delays a finding, shorter reports
 * such moments.
 */
#define JOBWATCH_CONFIRM_NS (5 * NSEC_PER_SEC)

/*
 * JOBWATCH_PAYS_FRAC: of what a slowdown costs meanwhile | measured: a job of a busy machine that became
 * 22 times slower waited 160 s for its next window, since the one before had stopped it for 5 s | while
 * a job is slow, windows may cost as much, if that is more than their budget
 */
#define JOBWATCH_PAYS_FRAC 0.2

/* JOBWATCH_MIN_GAP_NS: ns | not recorded | least time between two decisions of one kind */
#define JOBWATCH_MIN_GAP_NS (15 * NSEC_PER_SEC)

/*
 * SLOW_SURE_FACTOR: times the best pace | healthy jobs on virtual machines wander by 1.05 to 1.15 |
 * below it a slowdown without a cause is inconclusive
 */
#define SLOW_SURE_FACTOR 1.2

/*
 * UNSTEADY_FACTOR: times the best pace | not recorded | longer iterations are not healthy, whatever
 * the noise
 */
#define UNSTEADY_FACTOR 1.5

/*
 * WINDOW_SLOW_FACTOR: times the best pace | not recorded | a window whose own iterations take longer
 * is not healthy, also if the pace before it was
 */
#define WINDOW_SLOW_FACTOR 2

/* SLOW_SHOWN_MS: ms | not recorded | a profile makes shorter iterations longer by itself */
#define SLOW_SHOWN_MS 20

/*
 * BLOCKED_FACTOR: times the usual iteration | not recorded | no mark for so long, and the job is
 * blocked
 */
#define BLOCKED_FACTOR 5

/* BLOCKED_FLOOR_NS: ns | not recorded | a job is not blocked before */
#define BLOCKED_FLOOR_NS (10 * NSEC_PER_SEC)

/*
 * BLOCKED_SUSPENDED_FACTOR: times BLOCKED_FACTOR | profiled iterations take longer | in a window so
 * many iterations may be silent
 */
#define BLOCKED_SUSPENDED_FACTOR 2

/*
 * BLOCKED_PAUSE_LIMIT_NS: ns | not recorded | a pause of the job that lasts longer counts as
 * blocked
 */
#define BLOCKED_PAUSE_LIMIT_NS (300 * NSEC_PER_SEC)

/*
 * DETECT_SKIP_AFTER_RESUME: iterations | such an iteration still pays for it | iterations left
 * out after the profiler ended
 */
#define DETECT_SKIP_AFTER_RESUME 2u

/* PACE_RECORDS_IN_WINDOW: records | not recorded | records of the baseline that one window makes */
#define PACE_RECORDS_IN_WINDOW 5u

/*
 * PACE_DIFF_MAX: differences | not recorded | newest differences of windows that measure slow
 * noise
 */
#define PACE_DIFF_MAX 100u

/*
 * PACE_DIFF_MIN: differences | not recorded | below, slow noise is estimated from blocks of one
 * window
 */
#define PACE_DIFF_MIN 25u

/*
 * PACE_EARLY_BLOCKS: blocks | not recorded | blocks of one window that estimate slow noise at
 * first
 */
#define PACE_EARLY_BLOCKS 10u

/*
 * PACE_EARLY_WINDOWS: windows | not recorded | first windows that may do so; later ones may hold
 * the slowdown to find
 */
#define PACE_EARLY_WINDOWS 2u

/*
 * PACE_EARLY_MARGIN: factor | not recorded | slow noise that the blocks of one window do not show
 */
#define PACE_EARLY_MARGIN 4

/* PACE_MEDIAN_MIN: samples | not recorded | samples before a median is used */
#define PACE_MEDIAN_MIN 5u

/*
 * PACE_LONG_Z_FRAC: share of PACE_NOISE_Z | not recorded | for the long window: its mean is nearer
 * to normal, and fewer independent ones can be high by chance
 */
#define PACE_LONG_Z_FRAC 0.8

/*
 * PACE_SD_MARGIN: factor | windows overlap: 100 differences are 20 independent ones | margin of a
 * deviation from few independent differences
 */
#define PACE_SD_MARGIN 1.25

/* PACE_DISTANCE_CNT: distances | not recorded | equal distances that make pauses periodic */
#define PACE_DISTANCE_CNT 4u

/* PACE_PERIOD_MIN: iterations | not recorded | shortest period of pauses */
#define PACE_PERIOD_MIN 3u

/*
 * SLICES_ERROR_FRAC_MIN: share of an iteration | not recorded | no measured overhead is surer
 * than this
 */
#define SLICES_ERROR_FRAC_MIN 1e-4

/*
 * HUB_NO_MARKS_NS: ns | not recorded | a job without any mark for so long is given advice, once
 */
#define HUB_NO_MARKS_NS (30 * NSEC_PER_SEC)

/* --- Comparison of workers (equations 6 to 11) --- */

/*
 * DIFFER_DELTA: normalized distance | paper, eq. 10 | two workers that are further apart are
 * unlike
 */
#define DIFFER_DELTA 0.4

/* DIFFER_PEERS: workers | paper, eq. 9 | sampled peers that a worker is compared with */
#define DIFFER_PEERS 100

/*
 * DIFFER_K: median absolute deviations | paper, eq. 11 | a worker that is unlike more of its
 * peers than median + K MAD is abnormal
 */
#define DIFFER_K 5.0

/*
 * DIFFER_MIN_PEERS: workers | of two that differ, neither is the odd one | smallest peer group
 * that is compared
 */
#define DIFFER_MIN_PEERS 3

/* DIFFER_MIN_BETA: share of the window | paper, eq. 11 | functions below are not compared */
#define DIFFER_MIN_BETA 0.01

/*
 * COLUMNS_WHOLE_MAX: workers | measured: docs/center.md | in larger groups an exact threshold
 * comes from a sample of members
 */
#define COLUMNS_WHOLE_MAX 16384

/* COLUMNS_THRESHOLD_CNT: workers | measured: docs/center.md | members of that sample */
#define COLUMNS_THRESHOLD_CNT 2048

/*
 * ANYSIZE_BLAME_MAX: workers | measured: docs/center.md | larger jobs are localized by columns,
 * without blame
 */
#define ANYSIZE_BLAME_MAX 131072

/*
 * INGEST_WHOLE_MAX: workers | measured: docs/center.md | jobs that the center received as messages and that
 * are larger are compared by columns, without blame
 */
#define INGEST_WHOLE_MAX 32768

/*
 * EXCESS_MIN_BETA: share of the window | paper, eq. 11 | functions below are not compared with
 * the expectation
 */
#define EXCESS_MIN_BETA 0.01

/*
 * EXCESS_CALLER_GROWS: times the built-in's time | not recorded | a caller that holds so much
 * more than its built-in is named in its place
 */
#define EXCESS_CALLER_GROWS 1.25

/*
 * EXCESS_SLOWDOWN: share of a slowdown | docs/method.md, 10 | a function that is long everywhere,
 * or longer than in its own past, must explain this much of it
 */
#define EXCESS_SLOWDOWN 0.5

/*
 * PAST_SLOW_FRAC: share of an iteration | not recorded | a window that lost more than this since
 * its past shows a slow job; a steady job that lost less is as fast as ever
 */
#define PAST_SLOW_FRAC 0.2

/*
 * PART_LEAST: share of a slowdown | not recorded | where the machine is slow all code is, and what
 * explains less is any of it
 */
#define PART_LEAST 0.2

/*
 * PART_MAIN: share of a subtree | not recorded | a function with less of it is one of many that
 * became slower
 */
#define PART_MAIN 0.67

/*
 * CHECKUP_STARVED_PCT: percent of an iteration | other programs on the machine | in a check-up a
 * lack of CPU that costs less is a note
 */
#define CHECKUP_STARVED_PCT 5

/*
 * EXPECT_USUAL: times a slowdown | docs/method.md, 10 | what costs more was as long before the
 * slowdown
 */
#define EXPECT_USUAL 2.0

/*
 * EXPECT_ALL_FRAC: share of workers | not recorded | as many of them alike: it is the job, not a
 * worker
 */
#define EXPECT_ALL_FRAC 0.8

/*
 * EXPECT_OFTEN: share of a function's time | docs/method.md, 11 | what lies in a few long
 * iterations is an occasion
 */
#define EXPECT_OFTEN 0.5

/* EXPECT_RARE_MIN: iterations | not recorded | fewer cannot show a long one among them */
#define EXPECT_RARE_MIN 3

/*
 * EXPECT_RARE_ONE_IN: iterations | a loader of two processes makes every other one wait | what
 * lies in more of them than one in so many is no occasion
 */
#define EXPECT_RARE_ONE_IN 5

/*
 * EXPECT_SHOWS_FRAC: share of workers | one stage of a pipeline of ten | as many must show a
 * place where the others' devices hide it
 */
#define EXPECT_SHOWS_FRAC 0.1

/*
 * EXPECT_ALIKE: share of the thread's time where it shows | not recorded | workers that hide the
 * same code
 */
#define EXPECT_ALIKE 0.7

/*
 * EXPECT_JITTER: share of a place's time | not recorded | to lose that by turns, all may be as
 * long
 */
#define EXPECT_JITTER 0.3

/*
 * COMMON_MIN_FRAC: share of an iteration | docs/method.md, 10 | what is long on all workers alike
 * is a finding from here on
 */
#define COMMON_MIN_FRAC 0.05

/*
 * PEERS_ALIKE: weighted Jaccard similarity | docs/method.md, 1 | workers whose computing
 * functions are as similar are peers
 */
#define PEERS_ALIKE 0.6

/*
 * PEERS_WORK_MIN: share of the window | docs/method.md, 1 | workers that compute less are not told
 * apart: a function below what a fingerprint keeps seems absent
 */
#define PEERS_WORK_MIN 0.05

/* --- Which executions are one collective --- */

/*
 * SHIFT_MAX: collectives | not recorded | windows of one profile begin within so many collectives
 */
#define SHIFT_MAX 16

/*
 * SHIFT_MIN_PAIRS_FRAC: share of the shorter list | not recorded | a shift must pair as many
 * collectives
 */
#define SHIFT_MIN_PAIRS_FRAC 0.6

/* SHIFT_NAME_AGREE: share of matched pairs | not recorded | as many must be the same operation */
#define SHIFT_NAME_AGREE 0.9

/* SHIFT_WORST: pairs | not recorded | one in so many may be off by anything */
#define SHIFT_WORST 5

/*
 * SHIFT_QUEUED_NS: ns | kernels of one stream follow each other within 1 to 4 us | a collective
 * that begins as soon after the last one of its group was queued behind it
 */
#define SHIFT_QUEUED_NS 5000

/*
 * SHIFT_RESIDUAL_SHARE: share of the time between collectives | not recorded | ends must agree as
 * well, where groups are guessed
 */
#define SHIFT_RESIDUAL_SHARE 0.25

/*
 * OFFSET_LOOSER: ratio | second simulator, groups of experts: 18 and 280 | collectives whose ends
 * agree as much less than others', and differ by as much more, do not end together
 */
#define OFFSET_LOOSER 3

/* OFFSET_NOISE_NS: ns | not recorded | ends that agree as well agree */
#define OFFSET_NOISE_NS 20000

/*
 * JOBFILES_GAP_NS: nanoseconds | clocks of hosts agree better | windows of files further apart are
 * not one window, unless their collectives fit
 */
#define JOBFILES_GAP_NS (INT64_C(10) * NSEC_PER_SEC)

/*
 * JOBFILES_MEET_NS: nanoseconds | ranks of real jobs: at most 17 us; steps of one job that are not
 * the same: 15 us to 16 ms | ends of collectives that ranks have in common agree as well
 */
#define JOBFILES_MEET_NS 25000

/*
 * JOBFILES_DRIFT: share of the time | clocks that are kept in step drift by some 10 ppm, slewed ones
 * by 500 | clocks of two hosts may drift apart by as much
 */
#define JOBFILES_DRIFT 5e-4

/*
 * JOBFILES_MEET_PAIRS: pairs of ranks | in jobs with few steps one pair has too few collectives | as
 * many are looked at, if need be
 */
#define JOBFILES_MEET_PAIRS 8

/*
 * JOBFILES_MEET_GUESSES: pairs of ranks | two hosts of eight ranks have 64 | as many are looked at
 * where the traces do not say which ranks are of one process group
 */
#define JOBFILES_MEET_GUESSES 64

/*
 * JOBFILES_CLEARER: ratio | second simulator: some ranks that met have less, as few collectives are an iteration
 * | collectives taken an iteration apart must differ as much more
 */
#define JOBFILES_CLEARER 4

/*
 * JOBFILES_ALIKE: ratio | second simulator: pipelines at most 0.04 apart, as the first of three steps
 * differs | ranks of hosts that no collective relates take as long for the same steps, or are not of one job
 */
#define JOBFILES_ALIKE 0.05

/* JOBFILES_ALIKE_CNT: steps | fewer are as long by chance | as many must be common to them */
#define JOBFILES_ALIKE_CNT 3

/*
 * JOBFILES_ALIKE_NS: nanoseconds | hosts without time servers are minutes apart | hosts that no collective
 * relates, and which are further apart, are not of one job
 */
#define JOBFILES_ALIKE_NS (INT64_C(900) * NSEC_PER_SEC)

/* JOBFILES_MEET_CNT: collectives | fewer fit by chance | as many must agree */
#define JOBFILES_MEET_CNT 8

/*
 * INSTANCE_TOGETHER_SPREADS: deviations of the clocks | not recorded | ends that are further
 * apart are no one collective's
 */
#define INSTANCE_TOGETHER_SPREADS 4

/* INSTANCE_AHEAD_CNT: pairs | not recorded | pairs that are looked at to choose a shift */
#define INSTANCE_AHEAD_CNT 8u

/*
 * INSTANCE_TOGETHER_MIN_NS: ns | until a thread notices that it ended | ends of one collective
 * may always be as far apart
 */
#define INSTANCE_TOGETHER_MIN_NS (5 * NSEC_PER_MSEC)

/* INSTANCE_TOGETHER_MAX_NS: ns | not recorded | and never further */
#define INSTANCE_TOGETHER_MAX_NS (50 * NSEC_PER_MSEC)

/* --- The job's own past --- */

/*
 * PAST_SURE: standard errors | a wait in every other of seven iterations reaches it, in one of
 * sixteen not | by so much a function must exceed its own past
 */
#define PAST_SURE 2.5

/*
 * PAST_AGAIN: standard errors | as many as two or three occurrences | the same for what explains
 * all of a slowdown, half at least
 */
#define PAST_AGAIN 1.5

/*
 * PAST_MOST: share of a growth | not recorded | a callee that holds as much is the place, and not
 * its caller
 */
#define PAST_MOST 0.9

/* PAST_MOST_NEW: share of a growth | 0.85 | as PAST_MOST, of a callee that was not there before */
#define PAST_MOST_NEW 0.7

/* PAST_NEW_FRAC: share of a function's growth | not recorded | so long before at most: it is new */
#define PAST_NEW_FRAC 0.05

/*
 * PAST_ALIKE: share of the largest growth | not recorded | ranks on which a function grew as much
 * are accused together
 */
#define PAST_ALIKE 0.5

/*
 * PAST_REST_FRAC: share of a worker's time before | not recorded | the rest of a worker that had
 * less does not show how much slower the machine is
 */
#define PAST_REST_FRAC 0.1

/*
 * PAST_ALIKE_FRAC: share of a worker's time before | not recorded | if as much of it grew at least
 * half as much as all of it, the machine is slower and no function of the job
 */
#define PAST_ALIKE_FRAC 0.8

/* --- Blame --- */

/* BLAME_NOISE_FRAC: share of an iteration | not recorded | a smaller lead is not lateness */
#define BLAME_NOISE_FRAC 0.001

/* BLAME_NOISE_NS: ns | not recorded | the same, at least */
#define BLAME_NOISE_NS 20000.0

/*
 * GAIN_LEAST: times the smallest gain reported | no rounding takes it below | what a hidden fault
 * keeps as its gain
 */
#define GAIN_LEAST 1.001

/*
 * WORK_MIN_BETA: share of the window | not recorded | computing functions above define what a
 * worker has to do
 */
#define WORK_MIN_BETA 0.005

/*
 * WORK_AS_OFTEN: share of executions per iteration | windows begin and end anywhere | workers
 * that differ by less do the same work
 */
#define WORK_AS_OFTEN 0.05

/*
 * WORK_AS_MANY: share of the elements of an execution | padding makes them differ | executions
 * that differ by less do the same work
 */
#define WORK_AS_MANY 0.05

/*
 * BLAME_STANDS_OUT: times the typical worker's lost time | not recorded | a worker that lost less
 * does not stand out
 */
#define BLAME_STANDS_OUT 3.0

/*
 * BLAME_ONCE_FRAC: share of an iteration | a pause of a host in one iteration of a few happens in
 * healthy jobs | a rank that is late in one iteration alone must lose more
 */
#define BLAME_ONCE_FRAC 0.1

/* BLAME_ONCE_CNT: iterations | as few do not show how often it pauses | the same, in fewer than these */
#define BLAME_ONCE_CNT 5

/*
 * BLAME_ROTATE_FRAC: share of an iteration | not recorded | stragglers by turns need more than
 * jitter
 */
#define BLAME_ROTATE_FRAC 0.03

/*
 * BLAME_SINGLE_FRAC: share of all lost time | not recorded | what a worker must lose in a window
 * of one iteration
 */
#define BLAME_SINGLE_FRAC 0.6

/*
 * BLAME_SHARE_FRAC: share of all lost time | docs/method.md, 21 | beside a culprit, less is noise
 */
#define BLAME_SHARE_FRAC 0.1

/*
 * BLAME_SPREAD_SURE: standard errors | docs/method.md, 21 | by so much a spread loss must exceed
 * all others'
 */
#define BLAME_SPREAD_SURE 4.0

/*
 * EXTRA_FRAC: share of the accused's time | not recorded | what its peers may spend at a place that
 * only the accused have
 */
#define EXTRA_FRAC 0.05

/*
 * WORK_KNOWN_FRAC: share of the window | not recorded | operators and kernels that compute hold as
 * much where they are recorded
 */
#define WORK_KNOWN_FRAC 0.02

/* LEDGER_MOST: share of the lost time | not recorded | what a place must hold to be the place */
#define LEDGER_MOST 0.6

/*
 * PLACE_REGION_FACTOR: times the loss | not recorded | a place that normally takes this long is a
 * region, not a place
 */
#define PLACE_REGION_FACTOR 3.0

/* PLACE_EXTRA_FRAC: of a worker's time in a place | not recorded | peers with less never enter it */
#define PLACE_EXTRA_FRAC 0.02

/*
 * PLACE_SURE_FRAC: share of an iteration | healthy jobs of the second simulator: 1 to 3 % | less, and
 * chance must be ruled out, though the worker has a place
 */
#define PLACE_SURE_FRAC 0.05

/*
 * PLACE_LISTED: share of the lost time | recorded jobs: 0.05 to 0.2 where the named place was wrong | where functions
 * explain less, most of the reason is not known
 */
#define PLACE_LISTED 0.25

/*
 * PLACE_OWN_FRAC: share of an iteration | recorded jobs on crowded hosts: 0.2 and more with a lock or a sleep
 * | a rank that loses as much where no other rank is need not be late much more than others
 */
#define PLACE_OWN_FRAC 0.1

/* PLACE_OWN_OTHERS: share of its time | recorded jobs: 0 | other ranks are there for no longer */
#define PLACE_OWN_OTHERS 0.1

/* PLACE_LASTS: times the loss | not recorded | who is there for so much longer is there always */
#define PLACE_LASTS 2.0

/* PLACE_FRAC: share of the lost time | not recorded | one of several places holds at least this */
#define PLACE_FRAC 0.15

/*
 * PLACE_EXPLAIN_FRAC: share of the lost time | not recorded | what several places must hold
 * together
 */
#define PLACE_EXPLAIN_FRAC 0.4

/*
 * SPREAD_DEVICE_FRAC: share of an iteration | docs/method.md, 21 | a device that is slower in
 * everything is accused from here on
 */
#define SPREAD_DEVICE_FRAC 0.03

/*
 * SPREAD_DEVICE_GAIN: share of an iteration | healthy jobs of the second simulator, whose chips differ
 * by 0.8 %: at most 1.9 % | what the repair of such a device alone must give back
 */
#define SPREAD_DEVICE_GAIN 0.02

/* SPLIT_PEERS_MIN: workers | the scatter of fewer is uncertain | as many devices show what is chance */
#define SPLIT_PEERS_MIN 8

/*
 * SPLIT_PEERS_SURE: standard deviations | second simulator: slow devices from 25 on, others up to 4 | the gap to
 * slower devices is no chance
 */
#define SPLIT_PEERS_SURE 8

/*
 * CHIP_RATIO: ratio | second simulator, chips that differ by up to 0.8 %: at most 1.02 of 16 and 32; GPUs of
 * one kind in clusters differ by some percent | one device that computes longer by less, in all that it
 * does, is no fault
 */
#define CHIP_RATIO 1.03

/*
 * COMMON_WORK: share of what the accused lost there | second simulator, hosts that are slower than devices: 0.1
 * and less; other faults: 0.9 and more | a rank whose thread is in a function longer than the others' by less is
 * not late by it
 */
#define COMMON_WORK 0.25

/*
 * MINOR_COMM: share of the largest gain by repair of a late rank | docs/method.md, 21: a second culprit
 * needs a tenth | communication that loses less beside it is no finding
 */
#define MINOR_COMM 0.1

/*
 * MINOR_DESIGN: share of the largest gain of what all ranks do on their hosts or devices | second simulator: 0.06
 * where the loader of all ranks is slow | communication of all ranks that loses less beside it is no finding
 */
#define MINOR_DESIGN 0.5

/*
 * SPREAD_HOST_FRAC: share of an iteration | docs/method.md, 21: CPUs differ by some percent | the
 * same for a host
 */
#define SPREAD_HOST_FRAC 0.1

/*
 * COMPANION_ALIKE: share of the delay of the accused | not recorded | a companion has at least
 * this
 */
#define COMPANION_ALIKE 0.5

/*
 * COMPANION_PLACE_ALIKE: share of what the accused lose at a place | not recorded | a companion
 * there loses at least this
 */
#define COMPANION_PLACE_ALIKE 0.7

/*
 * COMPANION_UNUSUAL: times that of other hosts | not recorded | a companion's delay is at least
 * this
 */
#define COMPANION_UNUSUAL 3.0

/* COMPANION_FRAC_MIN: share of the window | not recorded | a smaller delay makes no companion */
#define COMPANION_FRAC_MIN .01

/* --- Two populations --- */

/* SPLIT_MIN_PEERS: workers | of fewer, neither part has a scatter | smallest group that is split */
#define SPLIT_MIN_PEERS 4

/* SPLIT_FAST_PART: one in so many | docs/method.md, 5 | smallest faster part */
#define SPLIT_FAST_PART 3

/*
 * SPLIT_GAP_SCATTER: times the range of the faster part | docs/method.md, 5 | chance leaves
 * smaller gaps
 */
#define SPLIT_GAP_SCATTER 2.

/*
 * SPLIT_SURE: standard errors | docs/method.md, 5 | means of one population do not differ by more
 */
#define SPLIT_SURE 4.0

/* SPLIT_MINOR: share of what the slowest loses at a place | not recorded | less is not named */
#define SPLIT_MINOR 0.15

/*
 * SPLIT_EXPLAINED: share of a worker's excess | not recorded | what listed functions must explain
 */
#define SPLIT_EXPLAINED 0.5

/*
 * SPLIT_PASSED_ON: share of a worker's excess | docs/method.md, 9 | by so much it must be busy
 * longer and wait less
 */
#define SPLIT_PASSED_ON 0.5

/*
 * SPLIT_COMMON: one in so many parts of a device | docs/method.md, 8 | what kernels of all stages
 * must take of it
 */
#define SPLIT_COMMON 3

/* --- Pauses and inputs --- */

/*
 * PAUSE_RANDOM_CNT: places | not recorded | as many that pause on a few workers each have one
 * cause
 */
#define PAUSE_RANDOM_CNT 3

/*
 * PAUSE_STRUCK_CNT: places | not recorded | the same, where they are known to pause in some
 * iterations only
 */
#define PAUSE_STRUCK_CNT 2

/* PAUSE_MIN_FRAC: share of an iteration | not recorded | shorter pauses happen on any host */
#define PAUSE_MIN_FRAC 0.02

/*
 * PAUSE_SOME_FACTOR: times the mean iteration | not recorded | a longest part above does not lie
 * in each iteration
 */
#define PAUSE_SOME_FACTOR 1.5

/* PAUSE_AT_ONCE: share of a pause | not recorded | what peers take there, at the most */
#define PAUSE_AT_ONCE 0.2

/*
 * PAUSE_APART_FRAC: share of the struck workers | not recorded | those of the typical place, at
 * the most
 */
#define PAUSE_APART_FRAC 0.7

/* PAUSE_ALIKE: ratio | second simulator: 1.0 | pauses of one program on several workers */
#define PAUSE_ALIKE 1.25

/*
 * PAUSE_AT_A_TIME: places in an iteration | second simulator: 1.0 | what pauses at random places is
 * seldom at two of them, in an iteration of a worker
 */
#define PAUSE_AT_A_TIME 1.5

/* PAUSE_ITERATIONS: iterations | not recorded | in fewer, a function that is long in some says nothing */
#define PAUSE_ITERATIONS 4

/*
 * PAUSE_SELDOM: ratio | collections of the second simulator come in each second to fourth iteration | a pause of
 * a worker comes in at most one of as many iterations
 */
#define PAUSE_SELDOM 2

/*
 * PAUSE_TURNS_FRAC: share of the struck workers | checkpoints: all | more pause in one iteration: the job does it
 */
#define PAUSE_TURNS_FRAC 0.75

/* PAUSE_TURNS_WORKERS: workers | with two, either may pause in half of the iterations | fewer show no turns */
#define PAUSE_TURNS_WORKERS 3

/* PAUSE_TURNS_CNT: pauses of a worker | checkpoints: 1 | what comes less often on the mean worker is an occasion */
#define PAUSE_TURNS_CNT 1.5

/*
 * PAUSE_MUCH_FRAC: share of all lateness | recorded job that writes a file on one rank: 3 % | pauses
 * that cost less come beside another fault
 */
#define PAUSE_MUCH_FRAC 0.2

/*
 * PAUSE_ONE_FRAC: share of what pauses cost | recorded job that waits for a lock on one rank: over 60 % | where one worker has lost more of it at one place, that place is slow
 */
#define PAUSE_ONE_FRAC 0.6

/*
 * PAUSE_EXPLAINED: share of an accusation's loss | not recorded | an accusation that pauses
 * explain is theirs
 */
#define PAUSE_EXPLAINED 0.5

/* THREAD_BUSY: CPU share | not recorded | above, a thread computes rather than waits */
#define THREAD_BUSY 0.5

/*
 * INPUTS_MIN_PEERS: workers | of fewer, times and inputs agree by chance | smallest group whose
 * times are compared with inputs
 */
#define INPUTS_MIN_PEERS 4

/* INPUTS_FOLLOWS: share of the variance of times | docs/method.md, 14 | what inputs must explain */
#define INPUTS_FOLLOWS 0.5

/* INPUTS_UNEVEN: relative deviation | not recorded | inputs of one size differ by less */
#define INPUTS_UNEVEN 0.005

/*
 * INPUTS_OFF_MEAN: deviations | docs/method.md, 14 | most workers are further from the mean, or
 * few are far off
 */
#define INPUTS_OFF_MEAN 0.33

/*
 * INPUTS_LIKE_TIME: factor | not recorded | a time must be as much longer as the input is larger,
 * within this
 */
#define INPUTS_LIKE_TIME 0.5

/* --- Links --- */

/*
 * FABRIC_MIN_PEERS: workers | of two that differ, neither is the odd one | smallest group whose
 * links are compared
 */
#define FABRIC_MIN_PEERS 3

/*
 * FABRIC_AS_LONG: share of the others' time | second simulator: 0.4 of slow GPUs, 1.0 of slow links | a rank that is
 * in a collective for less comes late to it
 */
#define FABRIC_AS_LONG 0.7

/*
 * FABRIC_LONGER: ratio | second simulator, links at 15 to 60 %: 1.7 to 5.5; one that coarse samples call slow: 1.01 | a collective over a slow link
 * lasts so many times as long as the same over others
 */
#define FABRIC_LONGER 1.05

/*
 * FABRIC_MOST: share of the links or hosts | docs/method.md, 17 | what as many have is the
 * network's
 */
#define FABRIC_MOST 0.5

/*
 * FABRIC_STEADY: share of the time | docs/method.md, 15 | a link that sends longer sends without
 * a pause
 */
#define FABRIC_STEADY 0.95

/*
 * FABRIC_STEADY_COARSE: share of the time | docs/method.md, 15 | the same, of transfers of a few samples,
 * of which the first and the last are partly silent
 */
#define FABRIC_STEADY_COARSE 0.85

/* FABRIC_FAR_SLOWER: share of the usual rate | not recorded | then coarse samples are enough */
#define FABRIC_FAR_SLOWER 0.7

/*
 * FABRIC_STEADIER: share of the silent time of the typical link | second simulator, even seeds: 0.44 | and
 * the link is silent for less
 */
#define FABRIC_STEADIER 0.6

/* FABRIC_SLOWER: share of the usual rate | docs/method.md, 15 | links of one kind differ by less */
#define FABRIC_SLOWER 0.85

/*
 * FABRIC_APART: times the least rate of the others | scoreboard, tuning seeds: links on which flows meet
 * by chance lie 0.93 apart | a slow link is slower than all others by as much
 */
#define FABRIC_APART 0.9

/*
 * FABRIC_ALIKE: share of the free rate | scoreboard, tuning seeds: links that flows slow down by chance
 * reach 0.6, others 0.95 | where a link that is not slow reaches less, none stands apart
 */
#define FABRIC_ALIKE 0.7

/* FABRIC_WAITS: share of the free rate | docs/method.md, 17 | a link that sends less is held up */
#define FABRIC_WAITS 0.85

/* FABRIC_MORE: times what its ring sends | docs/method.md, 16 | there is other traffic */
#define FABRIC_MORE 1.5

/* FABRIC_FAR_MORE: times the usual rate | not recorded | the same, where no ring shows it */
#define FABRIC_FAR_MORE 2.0

/*
 * FABRIC_ALL_OTHERS: share of a group | docs/method.md, 16 | nearly all others: more than the
 * rings of some NICs
 */
#define FABRIC_ALL_OTHERS .8

/* FABRIC_AT_FULL: share of the free rate | not recorded | pauses alone make such a link slower */
#define FABRIC_AT_FULL .85

/*
 * FABRIC_MESSAGES: times the collectives | windows have edges | more executions are
 * point-to-point messages
 */
#define FABRIC_MESSAGES 1.1

/*
 * FABRIC_FREE: quantile of rates | docs/method.md, 17 | what links reach when nothing holds them
 * up
 */
#define FABRIC_FREE 0.9

/*
 * FABRIC_IN_USE: share of what a link can carry | docs/method.md, 19 | where none sends more, the
 * link bounds nothing
 */
#define FABRIC_IN_USE 0.1

/*
 * FABRIC_WAITED: share of the time in collectives | a pause of one rank leaves the links of its
 * groups idle | the link of a worker that waits longer for late ranks is not judged
 */
#define FABRIC_WAITED 0.3

/*
 * FLOW_LEAST_BYTES: bytes of a window | docs/method.md, 25 | less is messages, at the rate of their
 * round trips
 */
#define FLOW_LEAST_BYTES 1000000u

/* FLOW_MUCH: share of the largest path's bytes | docs/method.md, 25 | paths that carry less are no peers */
#define FLOW_MUCH 0.25

/* FLOW_MIN_PATHS: paths | of two that differ, neither is the odd one | fewer are not compared */
#define FLOW_MIN_PATHS 3

/* FLOW_FREE: quantile of rates | docs/method.md, 25 | what paths carry that nothing slows down */
#define FLOW_FREE 0.75

/*
 * FLOW_SLOWER: share of the usual rate | docs/method.md, 25 | paths between healthy hosts that shared
 * two CPUs differed by less
 */
#define FLOW_SLOWER 0.6

/* FLOW_USED: share of the sender's communication | a slow path is used nearly always | least use of one */
#define FLOW_USED 0.5

/*
 * FLOW_OWN: share of the time with data on the way | docs/method.md, 25 | where the receiver's lateness
 * is more of it, the rate is unknown
 */
#define FLOW_OWN 0.25

/*
 * HOST_CROWDED_FRAC: share of the window with a task of the host that waits for a CPU | docs/method.md, 25 |
 * from here on the host's part of communication waits, too: it shows no slow link
 */
#define HOST_CROWDED_FRAC 0.5

/* FLOW_LOSSY: share of the bytes | a busy switch drops less | sent again: worth a line */
#define FLOW_LOSSY 0.01

/* FLOW_FEW: share of the hosts | where more are slow, paths differ by design | most that are accused */
#define FLOW_FEW 0.25

/*
 * STAGES_SLOWER: times the time of a kernel in another stage | chips differ by some percent | from
 * here on a stage is slow, not cut unevenly
 */
#define STAGES_SLOWER 1.05

/*
 * STAGES_MORE: ratio | one layer of eight | a stage that runs the kernels of all as many times as often has more
 * layers, not only other work
 */
#define STAGES_MORE 1.1

/* STAGES_GAIN: share of an iteration | second simulator: 3 % | what an even cut must save where one has more layers */
#define STAGES_GAIN 0.02

/*
 * SISTERS_SLOWER: times the sister groups' | groups of one kind differ by some percent, a bond that
 * lost a leg by 2 | a process group whose transfers take as much longer has a slow link
 */
#define SISTERS_SLOWER 1.25

/* SISTERS_TRANSFERS: transfers | fewer have no quartiles | a group is compared by as many */
#define SISTERS_TRANSFERS 3

/*
 * LINK_PAUSES: share of the free rate | not recorded | chunks of one size that jitter leave
 * smaller pauses
 */
#define LINK_PAUSES 0.95

/* --- Use of GPUs, on all workers alike --- */

/*
 * USAGE_COPIES_FRAC: share of the window | training jobs of real traces: at most 4.2 %; one that
 * copies its data again and again: 97 % | copies alone on the device are a finding from here on
 */
#define USAGE_COPIES_FRAC 0.1

/*
 * USAGE_ALLOC_FRAC: share of an iteration | dlrm4_sleep, behind its first step: 5.0 % in one of two
 * iterations | the device without work while the host allocates, in two iterations at least
 */
#define USAGE_ALLOC_FRAC 0.05

/*
 * USAGE_SYNC_FRAC: share of the window | jobs of real traces: at most 4.5 % | what waits of the host
 * for the device cost at most is a finding from here on
 */
#define USAGE_SYNC_FRAC 0.1

/*
 * USAGE_SYNCS_MIN: per iteration | reading the loss is one | fewer waits are not the fault: what the
 * host does behind them is
 */
#define USAGE_SYNCS_MIN 3.0

/*
 * USAGE_BLOCKING_FRAC: share of the kernels with a launch | short kernels of real traces: at most
 * 22 % end before their launch does | so many show launches that wait for their kernels
 */
#define USAGE_BLOCKING_FRAC 0.8

/*
 * USAGE_STARVED_FRAC: share of the window | training jobs of real traces: 1 to 40 %; jobs that are
 * bound by their host: 75 to 99 % | the device without work and without a launch
 */
#define USAGE_STARVED_FRAC 0.5

/*
 * USAGE_HOST_ALIKE: ratio | second simulator, CPUs that differ by up to 20 % from call to call: 1.05 | a host that
 * does as much as the typical one, though others wait for it, is slow as all are
 */
#define USAGE_HOST_ALIKE 1.15

/*
 * USAGE_STARVED_SELF: share of USAGE_STARVED_FRAC | second simulator, even seeds: 0.68 to 1.34 in one job |
 * as much without work is enough where a device waits for the other ranks the rest of it
 */
#define USAGE_STARVED_SELF 0.5

/*
 * USAGE_ITERATIONS: iterations | two have no middle | of as many the median counts, not the window
 */
#define USAGE_ITERATIONS 3u

/*
 * USAGE_OF_CALLER: share of the gain of an accused function | not recorded | calls inside it that
 * cost as much are the fault, and not the function
 */
#define USAGE_OF_CALLER 0.5

/* --- Stalls of the host at random places --- */

/* ONCE_ITERATIONS: iterations | not recorded | fewer do not show that something happens once */
#define ONCE_ITERATIONS 4

/*
 * ONCE_FRAC: share of the deviation of what lies in one iteration only | not recorded | a place with
 * more has nearly all of its time in one
 */
#define ONCE_FRAC 0.9

/*
 * STALL_MIN_NS: ns | a timer tick of the scheduler is 1 to 4 ms (CONFIG_HZ) | a shorter execution is
 * no stall
 */
#define STALL_MIN_NS 1000000

/*
 * STALL_USUAL_NS: ns | operators and launches take 1 to 150 us in recorded jobs on CPUs and GPUs |
 * only functions whose median execution is no longer can stall
 */
#define STALL_USUAL_NS 262144

/*
 * STALL_FACTOR: times the median execution | recorded healthy CPU jobs: none on idle CPUs | an
 * execution is a stall from here on
 */
#define STALL_FACTOR 16

/*
 * STALL_ITERATIONS: iterations | what is long in each iteration shows in as many | fewer show no
 * stalls
 */
#define STALL_ITERATIONS 3u

/*
 * STALL_RARE_FRAC: share of an iteration's executions | recorded jobs beside busy processes: 0.1 to
 * 1 % | where more are long, the iteration has more to do
 */
#define STALL_RARE_FRAC 0.05

/*
 * STALL_SWITCH_NS: ns | sys.getswitchinterval() of CPython: 5 ms | waits for the interpreter's lock are
 * multiples of it
 */
#define STALL_SWITCH_NS 5000000

/*
 * STALL_SWITCH_FRAC: share of the stalls | recorded job with a busy Python thread: 55 %; jobs beside
 * busy processes: 0 to 12 % | so many odd multiples of the switch interval are waits for the lock
 */
#define STALL_SWITCH_FRAC 0.3

/*
 * STALLS_MIN: stalls of a host's ranks | recorded jobs without a lack of CPUs: 0 to 9 in a window |
 * fewer show nothing
 */
#define STALLS_MIN 10u

/*
 * STALLS_HELD_MIN: stalls of a host's ranks | not recorded | so many show something where another
 * thread is seen to hold the interpreter's lock in them
 */
#define STALLS_HELD_MIN 5u

/*
 * STALL_NAMES_MIN: names of operators | a lock, a file or an allocator stalls one to three | stalls in
 * fewer may have a place
 */
#define STALL_NAMES_MIN 4u

/*
 * STALL_INSIDE_FRAC: share of the stalls | recorded jobs beside busy processes: 53 to 99 %; the
 * interpreter's lock and collections stall Python, between operators | less inside operators and calls
 * is no lack of CPUs
 */
#define STALL_INSIDE_FRAC 0.4

/*
 * STALL_ONE_FRAC: share of the stalls in operators | recorded job with more threads than CPUs: 60 % in
 * matrix products | one operator with more is the place
 */
#define STALL_ONE_FRAC 0.75

/*
 * STALL_WORKER_FRAC: share of a rank's window | the smallest gain that is reported | ranks of a host
 * that stall less are not accused
 */
#define STALL_WORKER_FRAC 0.01

/*
 * HOLDER_WITHIN_FRAC: share of the time in stalls | recorded jobs: 95 % beside a thread that holds the
 * lock in a C function, 0 to 18 % in 20 others | a thread that executes Python for so much of it may
 * hold the interpreter's lock
 */
#define HOLDER_WITHIN_FRAC 0.7

/*
 * HOLDER_BETWEEN_FACTOR: share of the time between stalls / share in them | the same job: 0.45; a
 * thread that waits in a call of C: 1 | a thread that executes as much between stalls does not hold it
 */
#define HOLDER_BETWEEN_FACTOR 0.75

/*
 * PLACELESS_WEIGHT: times its gain | recorded jobs on an overloaded machine: a function of one rank that
 * doubled the iteration could be given back for a third of what stalls everywhere were bound by | a
 * finding that names a function and a rank comes first if it gives back so much of the other's bound
 */
#define PLACELESS_WEIGHT 0.25

/*
 * STALL_WORKS_FRAC: share of an iteration | the smallest loss that a user acts on | who works longer
 * than all others in a place by so much, stalls aside, is not excused by stalls
 */
#define STALL_WORKS_FRAC 0.05

/*
 * STALL_PLACE_FRAC: share of a rank's stalls | recorded jobs with a contended lock: 0.6 and more; ranks that
 * lack CPUs: less than 0.1 at one place | a place with more of them is no random one
 */
#define STALL_PLACE_FRAC 0.5

/*
 * STALL_FRAC: share of the median iteration | real traces of training: at most 3 %; recorded jobs that
 * lack CPUs for a third of the time: 16 to 70 % | stalls are a finding from here on
 */
#define STALL_FRAC 0.05

/* --- Causes, confidence, verdict --- */

/*
 * FEW_ITERATIONS: iterations | second simulator: windows of three with a pause or a checkpoint in one |
 * in so few a long one shows nothing of how often it comes
 */
#define FEW_ITERATIONS 4

/*
 * FEW_STARVED: share of the window | second simulator, windows of 2 or 3 iterations with slow hosts: 0.09 to 0.31,
 * of healthy jobs: 0 to 0.03 | devices without work for as long do not make a few iterations healthy
 */
#define FEW_STARVED 0.05

/*
 * LONG_FACTOR: times the longest of the others | second simulator, healthy: at most 1.2; one that
 * pauses: 1.8 | an iteration is long from here on
 */
#define LONG_FACTOR 1.5

/*
 * CAUSE_EXPLAINS: share of the lost time | not recorded | a fact about the host that explains as
 * much is the cause
 */
#define CAUSE_EXPLAINS 0.5

/*
 * BLAME_MORE_WORK: times the peers' elements | not recorded | so much more to do is why a worker is
 * late, though noise makes it so in some iterations only
 */
#define BLAME_MORE_WORK 1.2

/* CAUSE_MORE_WORK: times the peers' elements | not recorded | less is chance of what is listed */
#define CAUSE_MORE_WORK 1.02

/*
 * HOST_PRESSURE_FRAC: share of the window | not recorded | below, a host has enough of a resource
 */
#define HOST_PRESSURE_FRAC 0.1

/*
 * GPU_DIFFERENCE_FRAC: difference from the peers | clocks wander by less | a GPU that differs by
 * more is evidence
 */
#define GPU_DIFFERENCE_FRAC 0.03

/* GAIN_HIDDEN_FRAC: share of the gain | not recorded | less of it hidden is not reported */
#define GAIN_HIDDEN_FRAC 0.25

/*
 * SPREAD_NAMED_FRAC: share of a spread loss | not recorded | a function that holds as much is
 * named for it
 */
#define SPREAD_NAMED_FRAC 0.25

/*
 * STACKS_UNKNOWN_FRAC: share of samples of stacks | not recorded | a finding below does not know
 * what held the time
 */
#define STACKS_UNKNOWN_FRAC 0.01

/*
 * CONFIDENCE_LAST_CNT: collectives | docs/method.md, 20 | a rank that is last in enough of them has
 * medium confidence after one iteration
 */
#define CONFIDENCE_LAST_CNT 10

/* CONFIDENCE_LAST_FRAC: share of a rank's collectives | docs/method.md, 20 | enough to be last in */
#define CONFIDENCE_LAST_FRAC 0.8

/*
 * CONFIDENCE_HALF_PCT: percent of an iteration | dlrm4_sleep_1s: 86 | a rank of three or more that
 * is in one function for so long has medium confidence after one iteration
 */
#define CONFIDENCE_HALF_PCT 50

/*
 * ONE_ITERATION_MET_CNT: matched collectives of each rank | twice what one rank must be last at | one
 * iteration with as many is no too short a window
 */
#define ONE_ITERATION_MET_CNT 20

/*
 * WARMUP_FACTOR: of the longest other iteration | dlrm4_sleep_20ms: 2.2 | a first annotated iteration
 * that is longer is warm-up
 */
#define WARMUP_FACTOR 1.5

/* WARMUP_ITERATIONS: iterations | two are left | fewer have no warm-up */
#define WARMUP_ITERATIONS 3

/*
 * LAG_FRAC: share of an iteration | real traces that read the loss each time: below 0.2 | a device
 * that is further behind a mark of the host ends the iteration
 */
#define LAG_FRAC 0.3

/*
 * LAG_UNEVEN: share of an iteration | the loss read every second time: 2 | by so much the lengths of
 * iterations must differ by the marks, and by less than half of it by the device's work
 */
#define LAG_UNEVEN 0.5

/*
 * CONFIDENCE_ITERATIONS: iterations | not recorded | a late worker has high confidence only with as
 * many
 */
#define CONFIDENCE_ITERATIONS 3

/*
 * CONFIDENCE_COST_PCT: percent of an iteration | not recorded | a late worker that costs less has
 * medium confidence, or low if it is late in less than half of the iterations
 */
#define CONFIDENCE_COST_PCT 3

/*
 * DIFFER_FEW_FRAC: share of an iteration | healthy jobs of three ranks | in jobs smaller than
 * CONFIDENCE_WORKERS, without collectives that show who waits, a difference costs so much
 */
#define DIFFER_FEW_FRAC 0.05

/*
 * CONFIDENCE_WORKERS: workers | not recorded | in smaller jobs a difference has no high confidence,
 * unless it is of all workers
 */
#define CONFIDENCE_WORKERS 8

/*
 * CONFIDENCE_DIFFER_PCT: percent of an iteration | not recorded | a difference that costs less has
 * no high confidence
 */
#define CONFIDENCE_DIFFER_PCT 5

/*
 * CONFIDENCE_PAST_PCT: percent of an iteration | hosts wander by less | what grew by less than this
 * has no high confidence
 */
#define CONFIDENCE_PAST_PCT 10

/*
 * VICTIM_FRAC: share of the longest wait | not recorded | a worker that waited less is not listed as
 * a victim
 */
#define VICTIM_FRAC 0.1

/*
 * NOTE_COMM_FRAC: share of the window | not recorded | less communication without a known late
 * worker is not noted
 */
#define NOTE_COMM_FRAC 0.05

/*
 * LINK_BUSY: utilization | second simulator, links without a fault: 0.4 to 0.8 of their peak in large
 * collectives | links that carry as much cannot be faster: what takes long is by design
 */
#define LINK_BUSY 0.7

/*
 * NOTE_HOST_FRAC: share of the window | not recorded | a device that waits longer for its host on
 * the typical worker is noted
 */
#define NOTE_HOST_FRAC 0.2

/*
 * MEASURED_MOST: share of the time in functions | not recorded | as much must be measured, or the
 * source is listed as absent
 */
#define MEASURED_MOST 0.5

/*
 * CHANCE_PCT: percent of an iteration | ranks of a small job are last by turns | a rank that is later
 * is no healthy one, though chance may explain it
 */
#define CHANCE_PCT 10

/*
 * COMPUTE_LITTLE: share of the window | second simulator, hosts of 4 to 10 times the usual work: 5 to
 * 7 %; healthy jobs: 38 % and more | devices that compute no more, and often have no work, do not make
 * a job healthy
 */
#define COMPUTE_LITTLE 0.1

/*
 * LOST_FRAC: share of a worker's records | docs/method.md, 20 | a worker that lost more makes a
 * healthy verdict inconclusive
 */
#define LOST_FRAC 0.25

/* --- The hunt for stalls (perftracker stalls) --- */

/*
 * HUNT_PART_MIN_NS: ns | shorter ones are the daily bread of a scheduler | a time without a CPU that
 * is looked at
 */
#define HUNT_PART_MIN_NS (1 * NSEC_PER_MSEC)

/*
 * HUNT_JOIN_NS: ns | a waiter for the GIL wakes every 5 ms | parts of one finding that are closer are
 * counted as one
 */
#define HUNT_JOIN_NS (1 * NSEC_PER_MSEC)

/*
 * HUNT_FOLLOW_NS: ns | a waiter that wakes every 5 ms may wait for a CPU between | parts that are closer
 * are one wait, which the thread that ends the last one held up
 */
#define HUNT_FOLLOW_NS (60 * NSEC_PER_MSEC)

/* HUNT_BURST_NS: ns | docs/stalls.md | parts that are closer belong to one burst */
#define HUNT_BURST_NS (300 * NSEC_PER_MSEC)

/* HUNT_PERIODS_MIN: bursts | docs/stalls.md | times between bursts that make a period */
#define HUNT_PERIODS_MIN 3u

/*
 * HUNT_PERIOD_SPREAD: share of the period | docs/stalls.md | longest less shortest time between
 * bursts, of a periodic cause
 */
#define HUNT_PERIOD_SPREAD 0.2

/*
 * HUNT_TURN_FRAC: share of bursts | docs/stalls.md | so many must keep the order of processes that are
 * hit in turn
 */
#define HUNT_TURN_FRAC 0.8

/*
 * HUNT_TOTAL_FRAC: share of the window | a healthy program alone loses less | a cause that takes more
 * is a stall
 */
#define HUNT_TOTAL_FRAC 0.002

/*
 * HUNT_STARVED_FRAC: share of the window | hosts always have some other work | starvation of CPU that
 * is a stall
 */
#define HUNT_STARVED_FRAC 0.02

/* HUNT_LONG_NS: ns | not recorded | a single part as long is a stall */
#define HUNT_LONG_NS (20 * NSEC_PER_MSEC)

/* HUNT_SHORT_NS: ns | a healthy program alone | a cause without a longer part needs a larger share */
#define HUNT_SHORT_NS (3 * NSEC_PER_MSEC)

/*
 * HUNT_IDLE_FRAC: share of a wait for a CPU | not recorded | an own CPU that was idle for longer was
 * not taken by another process
 */
#define HUNT_IDLE_FRAC 0.8

/*
 * HUNT_QUOTA_FRAC: share of a wait for a CPU | docs/stalls.md | a cgroup that was held back for longer
 * is the cause
 */
#define HUNT_QUOTA_FRAC 0.5

/*
 * HUNT_QUOTA_LATE_NS: ns | counters are read every 20 ms | later, the kernel's sum of the time held
 * back has grown
 */
#define HUNT_QUOTA_LATE_NS (2 * NSEC_PER_MSEC)

/*
 * HUNT_WORKER_FRAC: share of the window | not recorded | a thread that ran for longer is judged, not
 * the main one alone
 */
#define HUNT_WORKER_FRAC 0.1

/* HUNT_BUSY_FRAC: share of the window | not recorded | least work in the kernel that a verdict lists */
#define HUNT_BUSY_FRAC 0.05

/*
 * HUNT_BUSY_SAMPLES_MIN: samples | 199 Hz | fewer of one kind of work in the kernel are chance
 */
#define HUNT_BUSY_SAMPLES_MIN 10u

/*
 * HUNT_UNKNOWN_FRAC: share of the window | not recorded | waits of which nothing is known, from which on
 * "no stall" is not said
 */
#define HUNT_UNKNOWN_FRAC 0.1

/*
 * HUNT_TICKS_MIN: ticks of 10 ms | the kernel counts steal and interrupts in ticks | fewer are chance
 */
#define HUNT_TICKS_MIN 20u

/* HUNT_STEAL_FRAC: share of all CPU time | not recorded | stolen by the hypervisor */
#define HUNT_STEAL_FRAC 0.02

/* HUNT_IRQ_FRAC: share of all CPU time | not recorded | spent in interrupts */
#define HUNT_IRQ_FRAC 0.1

/*
 * HUNT_SIGNAL_NS: ns | not recorded | a stop that follows a signal within this time is its effect
 */
#define HUNT_SIGNAL_NS (100 * NSEC_PER_MSEC)

/* --- Sampling from outside --- */

/*
 * SAMPLED_ROUNDS_MIN: rounds | ten parts of six samples | fewer are judged as too few
 */
#define SAMPLED_ROUNDS_MIN 60u

/*
 * SAMPLED_BATCHES: parts of the window | Student's t with nine degrees of freedom | samples of one
 * part depend on each other, parts as good as not
 */
#define SAMPLED_BATCHES 10u

/*
 * SAMPLED_HOLD_FRAC: share of the rounds | healthy jobs of three ranks on two busy CPUs: at most 0.06
 * for the same rank in all parts | least time for which others wait for a rank that is accused
 */
#define SAMPLED_HOLD_FRAC 0.1

/*
 * SAMPLED_T_MIN: standard errors | Student's t, 1 in 1000 healthy windows | by which a rank must hold
 * others up more than the next one does
 */
#define SAMPLED_T_MIN 4.8

/*
 * SAMPLED_PART_FRAC: share of the parts | not recorded | in which a rank must be the one that holds
 * others up most
 */
#define SAMPLED_PART_FRAC 0.9

/*
 * SAMPLED_PLACE_FRAC: share of the time that others wait | not recorded | which a function of an
 * accused rank must take more than on its peers
 */
#define SAMPLED_PLACE_FRAC 0.5

/*
 * SAMPLED_QUEUE_FRAC: share of the time that others wait | not recorded | a rank, or its loader, that
 * waited longer for a CPU is not accused of a function
 */
#define SAMPLED_QUEUE_FRAC 0.4

/*
 * SAMPLED_INPUT_FRAC: share of the rounds | healthy small jobs: up to 0.15 | least wait for input
 * that is a finding without a peer, less three standard errors
 */
#define SAMPLED_INPUT_FRAC 0.25

/*
 * SAMPLED_STILL_FRAC: share of the samples | not recorded | in which a thread must be in one place to
 * count as not moving
 */
#define SAMPLED_STILL_FRAC 0.98

/*
 * SAMPLED_STILL_NS: ns | not recorded | a shorter window shows no hang
 */
#define SAMPLED_STILL_NS (8 * NSEC_PER_SEC)

/*
 * SAMPLED_CYCLES_MIN: iterations | not recorded | fewer give no length of an iteration
 */
#define SAMPLED_CYCLES_MIN 6u

/*
 * SAMPLED_RUN_MIN: samples | a phase of two periods is never missed | mean length of the phase by which
 * iterations are told apart, and of what is between
 */
#define SAMPLED_RUN_MIN 2.5
