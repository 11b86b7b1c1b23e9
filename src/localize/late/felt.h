/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Whether the others felt that a worker was late. Where the host launches collectives onto a
 * device and goes on, a device that waits costs nothing, unless the host waits for the device:
 * it then shows in calls that synchronize. Without records of such calls every wait counts.
 * Source: not from the paper; resnet18_ddp2 of the real traces, in which one rank's device waits
 * 2.5 ms an iteration for the other's, and no host does.
 */
#pragma once

#include "localize/late/blame.h"

/* The longest that another worker stood still for w, over the window. O(waits for w + their leads). */
double felt_loss(const struct job *job, const struct blame *blame, uint32_t w);
