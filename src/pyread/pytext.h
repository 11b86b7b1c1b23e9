/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Copies a Python string without the GIL: its header has the width of its characters, which follow
 * it. Only compact strings, which all names in code objects are.
 */
#pragma once

#include "pyread/pylayout.h"
#include "pyread/selfmem.h"

enum pytext_part { PYTEXT_START, PYTEXT_END };

/*
 * object: the address of a str. Writes UTF-8 with a NUL to ret[size], of a string too long for it
 * (or for 256 characters) the start or the end, in whole characters. False, and nothing written,
 * when the string was freed.
 */
_must_check_ bool pytext_copy(const struct selfmem *mem, const struct pylayout *layout,
			      uintptr_t object, enum pytext_part part, char *ret, size_t size);
