/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Readable names of C++ functions. CUPTI reports kernels by their mangled names. demangle() uses
 * the system's libstdc++ when it is present. Without it, or when the name is truncated or too
 * intricate (CUTLASS), demangle() extracts the function's own name without its parameters; a hash
 * of the whole name replaces the template arguments: "cutlass::device_kernel<~89abcdef01234567>".
 * Source: Itanium C++ ABI, section 5.1.
 */
#pragma once

#include "base/str.h"

/* Appends name, demangled if it is mangled. Errors are those of str. */
void demangle(const char *name, struct str *out);

/* The fallback alone: "_ZN2at6native6kernelIfE..." is "at::native::kernel". False: not possible. */
bool demangle_plain(const char *name, struct str *out);
