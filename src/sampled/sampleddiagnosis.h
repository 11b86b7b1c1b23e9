/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The report of a job that was sampled from outside: where the training threads spend their time,
 * for which rank the others wait and in which function it is then, or that all stand still. It never
 * says HEALTHY: what samples of host threads do not show (devices, single iterations, moments) may be
 * wrong. Pure: samples in, report out.
 *
 * Accused is, in this order:
 *  1. a rank for which the others wait in all parts of the window, far longer than for any other
 *     (sampledblame.h), if one function takes the time (sampledplace.h) and no want of CPUs does;
 *  2. without such a rank, all ranks that wait for their loader for a large share of the time.
 * Source: docs/attach.md.
 */
#pragma once

#include "model/report.h"
#include "model/sampled/sampledjob.h"

/*
 * Fills a report whose arena is initialized; texts are in that arena, static, or the job's. Returns 0
 * or -ENOMEM.
 */
_must_check_ int sampleddiagnosis_make(const struct sampled_job *job, struct report *report);

/*
 * Whether nothing moves: the training threads of at least half of the ranks stayed at one line of
 * Python for the whole window, blocked, in collectives if any rank moved. Then the stacks of all
 * threads say more (hang/hangdiagnosis.h). Returns 1, 0 or -ENOMEM.
 */
_must_check_ int sampleddiagnosis_stands(const struct sampled_job *job);
