/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Names of C++ functions as people write them. CUPTI gives kernels the names of the
 * linker. The C++ library of the system does it where there is one; without it, or when
 * the name was cut off or is too intricate (CUTLASS), the function's own name is taken out,
 * without its parameters; for its template's arguments stands a hash of the whole:
 * "cutlass::device_kernel<~89abcdef01234567>".
 * Source: Itanium C++ ABI, section 5.1.
 */
#pragma once

#include "base/str.h"

/* Appends name, demangled if it is a mangled one. An error is the string's. */
void demangle(const char *name, struct str *out);

/* The second way alone: "_ZN2at6native6kernelIfE..." is "at::native::kernel". False: not possible. */
bool demangle_plain(const char *name, struct str *out);
