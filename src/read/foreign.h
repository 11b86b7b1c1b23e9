/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Files that lie beside traces and are none: what they are, and what to do with them. Recognized
 * by their first bytes, unpacked; a file that may be a trace is not recognized.
 */
#pragma once

/* "a report of PerfTracker: give the traces it was made from"; NULL: may be a trace. Static. */
const char *foreign_describe(const char *path);
