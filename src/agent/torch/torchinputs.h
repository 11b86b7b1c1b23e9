/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How much an operator of PyTorch works on: the elements of the tensors among its
 * arguments, as torch.profiler's "Input Dims" has them.
 *
 * The C++ objects are read by offset. The first ones are read through the kernel,
 * and only when enough of them were what they should be, plain loads take over;
 * were they something else, all stays unknown from then on.
 */
#pragma once

#include "agent/torch/torchlayout.h"
#include "base/base.h"

/*
 * libtorch: dlopen's handle of libtorch_cpu.so. Everything stays unknown when layout is
 * NULL, or a symbol is not there.
 */
void torchinputs_open(void *libtorch, const struct torch_layout *layout);

/* Whether it is worth asking torch for the arguments. */
bool torchinputs_known(void);

/*
 * function: an at::RecordFunction in a start callback that needs inputs. Lists of tensors are not
 * looked into. Returns the sum over the tensors; -1: no tensors, or one without plain sizes. On any
 * thread; keeps errno. Some loads for each argument, in the first calls system calls instead.
 * Beside it torch copies the arguments: 30 to 100 ns an operator together, measured. Asking for one
 * in sixteen by a callback with a probability cost as much.
 */
int64_t torchinputs_elements(const void *function);
