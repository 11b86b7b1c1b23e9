/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The numbers of windows and reports of a folder that a daemon before this one has used: the next
 * ones have others, so that nothing that it wrote is overwritten.
 */
#pragma once

#include "base/base.h"

/* The greatest of all, 0: none. *ret_report: of the reports. */
uint64_t takennumbers_find(const char *out_dir, uint64_t *ret_report);
