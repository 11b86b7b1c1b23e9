/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Counters of the host that tell of stalls: time stolen by a hypervisor, interrupts, waits for memory
 * to be compacted or reclaimed, pressure. Source: proc(5), Documentation/accounting/psi.rst.
 */
#pragma once

#include "model/stalls/stallrecording.h"

/* Fills the fields of the host; what can't be read stays 0. */
void hostcounters_read(const char *root, struct stall_counters *ret);

/* text: the file /proc/stat, /proc/vmstat. */
void hostcounters_parse_stat(const char *text, struct stall_counters *ret);
void hostcounters_parse_vmstat(const char *text, struct stall_counters *ret);
