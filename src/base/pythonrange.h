/* SPDX-License-Identifier: Apache-2.0 */
/* The supported versions of CPython. docs/python-versions.md has the steps for a new one. */
#pragma once

#define PYTHON_OLDEST 8 /* of 3.x */
#define PYTHON_NEWEST 14

#define PYTHON_TEXT_(minor) "3." #minor
#define PYTHON_TEXT(minor) PYTHON_TEXT_(minor)
#define PYTHON_RANGE PYTHON_TEXT(PYTHON_OLDEST) " to " PYTHON_TEXT(PYTHON_NEWEST)
