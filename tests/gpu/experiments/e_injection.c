/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Experiment E1: a library for CUDA_INJECTION64_PATH that writes down when CUDA's driver
 * calls it, into the file E1_LOG, one line of JSON for each call, and then calls the agent's
 * (E1_NEXT), as a second tool would be chained.
 */
#include "base/base.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

__attribute__((visibility("default"))) int InitializeInjection(void);

/* Of the context at this moment: 1, 0, or -1 when the driver refuses to say. */
static int has_context(void)
{
	void *driver = dlopen("libcuda.so.1", RTLD_LAZY | RTLD_NOLOAD);
	void *symbol = driver != NULL ? dlsym(driver, "cuCtxGetCurrent") : NULL;
	int (*current)(void **ret);
	void *context = NULL;

	if (symbol == NULL)
		return -1;
	memcpy(&current, &symbol, sizeof(current));
	return current(&context) != 0 ? -1 : context != NULL;
}

static int call_next(void)
{
	const char *path = getenv("E1_NEXT");
	void *library = path != NULL ? dlopen(path, RTLD_LAZY) : NULL;
	void *symbol = library != NULL ? dlsym(library, "InitializeInjection") : NULL;
	int (*next)(void);

	if (symbol == NULL)
		return -1;
	memcpy(&next, &symbol, sizeof(next));
	return next();
}

int InitializeInjection(void)
{
	const char *path = getenv("E1_LOG");
	int fd = path != NULL ? open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600) : -1;

	if (fd >= 0) {
		(void)dprintf(fd, "{\"pid\": %d, \"tid\": %d, \"context\": %d, \"next\": %d}\n",
			      (int)getpid(), (int)gettid(), has_context(), call_next());
		(void)close(fd);
	}
	return 1;
}
