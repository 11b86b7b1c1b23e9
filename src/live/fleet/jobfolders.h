/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The folders of one user's jobs on one host, or of the hub. Each has the lock of run/outdir.h while
 * its job runs. The newest of those that are over are kept.
 */
#pragma once

#include "base/base.h"

/*
 * Removes the oldest folders beside own, an absolute path, until keep of them are left; folders that
 * are in use stay and do not count. What cannot be removed stays.
 */
void jobfolders_prune(const char *own, unsigned keep);
