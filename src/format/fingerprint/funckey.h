/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The identity of functions: canonical names, and the key of a whole call stack. Two workers that
 * run the same code compute the same keys independently: addresses, line numbers, step numbers and
 * instance numbers are removed from the names before they are hashed.
 * Source: PerfTracker section 4.2 ("the entire call stack must be identical to be considered the
 * same function").
 */
#pragma once

#include "base/str.h"
#include "format/fingerprint/fingerprint.h"

/*
 * Appends the canonical form of a name. Removed are " at 0x..." and other addresses, "(line)" of
 * Python frames, "_3" of "nn.Module: Linear_3", numbers after '#', and the parameter list of
 * kernels.
 */
void funckey_canonical(enum event_kind kind, const char *name, struct str *out);

/* Appends the display form: as canonical, but Python frames keep their line. */
void funckey_display(enum event_kind kind, const char *name, struct str *out);

/*
 * Appends the hashed text of a frame: its kind, which distinguishes an operator from a Python
 * function of the same name, and its canonical name.
 */
void funckey_part(enum event_kind kind, const char *name, struct str *out);

/* The key of a frame below parent (NULL: a root). part: the frame's funckey_part() text. */
struct funckey funckey_under(const struct funckey *parent, const char *part);

/* Writes the 32 hex digits of key and a NUL. */
void funckey_hex(struct funckey key, char ret[static 33]);
