/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The style sheet of the HTML report. Light, dark and print share one set of
 * classes and differ in variables only; the colors of the classes of events
 * keep their order of brightness for color-blind readers.
 */
#pragma once

extern const char report_style[];
