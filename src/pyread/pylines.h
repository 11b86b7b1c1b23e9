/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The source line of an instruction, from a code object's table of line numbers. The format differs
 * between versions: co_lnotab in 3.8 and 3.9, co_linetable of pairs in 3.10, of variable length
 * from 3.11 on. Source: Objects/lnotab_notes.txt and Objects/locations.md of CPython.
 */
#pragma once

#include "base/base.h"

/*
 * minor: of CPython 3.x. first_line: co_firstlineno. table[len]: the contents of the bytes object.
 * instr: byte offset of the instruction. Returns a line; of an instruction that has none, the line
 * before it. Any bytes are safe to parse.
 */
uint32_t pylines_find(uint32_t minor, uint32_t first_line, const unsigned char *table, size_t len,
		      uint32_t instr);
