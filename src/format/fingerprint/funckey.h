/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of functions: canonical names, and the key of a whole call stack.
 * Two workers that run the same code get the same keys without talking: addresses,
 * line numbers, step numbers and instance numbers are taken out of the names before
 * they are hashed.
 * Source: PerfTracker section 4.2 ("the entire call stack must be identical to be
 * considered the same function").
 */
#pragma once

#include "base/str.h"
#include "format/fingerprint/fingerprint.h"

/*
 * Appends the canonical form of a name: " at 0x..." and other addresses,
 * "(line)" of Python frames, "_3" of "nn.Module: Linear_3", numbers behind '#',
 * and the parameter list of kernels are left out.
 */
void funckey_canonical(enum event_kind kind, const char *name, struct str *out);

/* Appends the form shown to people: as canonical, but Python frames keep their line. */
void funckey_display(enum event_kind kind, const char *name, struct str *out);

/*
 * Appends what is hashed of a frame: its kind, which keeps an operator and a Python
 * function of one name apart, and its canonical name.
 */
void funckey_part(enum event_kind kind, const char *name, struct str *out);

/* The key of a frame below parent (NULL: a root); part: its funckey_part(). */
struct funckey funckey_under(const struct funckey *parent, const char *part);

/* Writes the 32 hex digits of key and a NUL. */
void funckey_hex(struct funckey key, char ret[static 33]);
