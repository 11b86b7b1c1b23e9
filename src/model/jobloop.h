/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The training loop of a live job for its report: which marks make an iteration, as the detectors
 * of the ranks have learned.
 */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define REPORT_LOOP_TEXT 96u

struct report_loop {
	char marks[REPORT_LOOP_TEXT]; /* "loader, optimizer 1"; "": unknown */
	uint64_t since_step;	      /* learned at this step */
	size_t worker_cnt;	      /* of which this is the iteration, of known_cnt */
	size_t known_cnt;
};
