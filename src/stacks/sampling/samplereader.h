/* SPDX-License-Identifier: Apache-2.0 */
/* The reader of one process that is sampled (sampling.h). Runs in a process of its own. */
#pragma once

#include "stacks/sampling/sampling.h"

void samplereader_run(struct sampling_shared *shared);
