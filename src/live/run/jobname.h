/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The name of a job, made from its command: that of the script or module that it runs.
 *
 *	torchrun --nproc-per-node 4 gpt/train.py --lr 1	     train
 *	python -m mypackage.train			     mypackage.train
 *	./start.sh					     start.sh
 */
#pragma once

#include "base/base.h"

#define JOBNAME_BYTES 64u

/* Writes the name with letters, digits, '.', '_' and '-' only; others become '-'. */
void jobname_clean(const char *text, char ret[static JOBNAME_BYTES]);

/* argv: the command, NULL-terminated. */
void jobname_of_command(char *const *argv, char ret[static JOBNAME_BYTES]);
