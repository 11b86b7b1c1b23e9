/* SPDX-License-Identifier: Apache-2.0 */
/* Subjects of cluster.h. */
#pragma once

#include "live/link/bus.h"

/*
 * Writes "pt.v1.JOB.KIND" or, with a host, "pt.v1.JOB.KIND.HOST". Characters that subjects cannot
 * have become '_'; a name that was changed or is long gets a hash, so that two never become one.
 */
void subject_write(char ret[BUS_SUBJECT_MAX], const char *job, const char *kind, const char *host);
