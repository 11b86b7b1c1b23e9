/* SPDX-License-Identifier: Apache-2.0 */
/* For processes that play a job: a check that ends them, and functions of libraries that they opened. */
#pragma once

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(condition)                                                                \
	do {                                                                            \
		if (!(condition)) {                                                     \
			fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #condition); \
			fflush(stderr);                                                 \
			_exit(1);                                                       \
		}                                                                       \
	} while (0)

/* Sets the pointer to a function at *function. */
static inline void find(void *library, const char *symbol, void *function)
{
	void *found = dlsym(library, symbol);

	CHECK(found != NULL);
	memcpy(function, &found, sizeof(found));
}
