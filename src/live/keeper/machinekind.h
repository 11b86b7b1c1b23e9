/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The kind of this machine as one line, so that the paces of two runs are compared only where both had
 * the same: the model of its CPUs, how many this process may use, and the models of its NVIDIA
 * GPUs. root: of /proc, "" on a real machine.
 */
#pragma once

#include "base/base.h"

/* "AMD EPYC 7B13, 8 CPUs, 2 NVIDIA H100 80GB HBM3"; what is not known is left out. */
void machinekind_describe(const char *root, char *ret, size_t size);
