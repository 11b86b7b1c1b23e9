/* SPDX-License-Identifier: Apache-2.0 */
/*
 * OpenSSL's libcrypto, which libnats needs anyway. It is loaded at the first use: by daemons that
 * talk to other hosts, and never into a training process.
 */
#pragma once

#include "base/err.h"
#include "base/symbols.h"

/*
 * Fills the functions of table[cnt]. The library stays loaded. Returns 0, or -ENOPKG with a line in err.
 */
_must_check_ int cryptolibrary_open(const struct symbol *table, size_t cnt, struct err *err);
