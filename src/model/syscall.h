/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of the system calls in which a training job's threads are found waiting.
 * The recorder carries numbers, which are those of the machine it ran on: what reads
 * it runs on the same kind.
 */
#pragma once

#include <stdint.h>

/* "read", "futex"; NULL for a number without a name here. Never freed. */
const char *syscall_name(int64_t number);
