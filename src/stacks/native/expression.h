/* SPDX-License-Identifier: Apache-2.0 */
/*
 * DWARF expressions as they occur in unwind information: procedure linkage tables, signal frames,
 * hand-written assembly. Source: DWARF 5, section 2.5.
 */
#pragma once

#include "stacks/native/registers.h"

#include <elfutils/libdw.h>

/*
 * frame: its registers are read. cfa: the value of DW_OP_call_frame_cfa. *ret_is_value: the result
 * is the value itself, else the address of the value. False: an operation is unknown, or a register
 * or memory that is needed is.
 */
_must_check_ bool expression_evaluate(const Dwarf_Op *ops, size_t cnt,
				      const struct registers *frame, struct stackcopy *stack,
				      uint64_t cfa, uint64_t *ret, bool *ret_is_value);
