/* SPDX-License-Identifier: Apache-2.0 */
/* Parts of the hand-made reports (test_reports.h): who, when, where, and the data of pictures. */
#pragma once

#include "model/report.h"

/* A number in 0..1 that depends on its arguments only. */
double test_noise(int rank, int salt);

/* A factor around 1, near ones more often. */
double test_wobble(int rank, int salt, double spread);

/* Two hosts, a window and its steps. command: of a live job, which has a run and a date, or NULL. */
void test_set_origin(struct report *report, const char *command);

/*
 * Lateness of all workers in their iterations, lanes of the first two, and call stacks of rank 2,
 * whose functions are called name.
 */
void test_set_pictures(struct report *report, const char *name);

/* 50 steps, slower from the 30th. */
void test_set_pace(struct report *report);

/* The same with one text as command, run and host. */
void test_set_named(struct report *report, const char *text);

/* Of a hang: two ranks in all_reduce, one in a checkpoint, each with a second thread. */
void test_set_hang_stacks(struct report *report);
