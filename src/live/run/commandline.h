/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The command of a job on one line, for reports. Words are quoted as a shell needs them. Reports
 * are mailed: values of options and variables whose names look like those of secrets are "***".
 *
 *	torchrun --nproc-per-node 4 train.py --wandb-key=*** 'a b'
 */
#pragma once

#include "base/str.h"

#define COMMANDLINE_BYTES 4000u /* a longer one ends with "..." */
#define COMMANDLINE_WORD 1000u	/* so does a longer word, such as a script behind -c */

/* Appends the line. argv: NULL-terminated. */
void commandline_append(struct str *out, char *const *argv);
