/* SPDX-License-Identifier: Apache-2.0 */
/*
 * A job whose libraries are linked to two versions of CUDA's runtime, with the agent library as
 * it was built: each gets its own, however often and from wherever it calls.
 *
 *	LD_PRELOAD=AGENT callers_harness FOLDER [--shim]
 *
 * --shim: libshim.so is preloaded behind the agent.
 */
#include "play_hostd.h"

#include <dlfcn.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLACES 40
#define RELOADS 20

static const char *folder;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static _Atomic bool waits;

typedef int launch_from(int place);

static void *load(const char *name, int how)
{
	char path[PATH_MAX];
	void *library;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	library = dlopen(path, RTLD_NOW | how);
	CHECK(library != NULL);
	return library;
}

static launch_from *launcher(void *library)
{
	launch_from *function;

	*(void **)&function = dlsym(library, "launch_from");
	CHECK(function != NULL);
	return function;
}

static void check_versions(int new_version, int old_version)
{
	launch_from *new = launcher(load("libkernels12.so", RTLD_GLOBAL));
	launch_from *old = launcher(load("libkernels11.so", RTLD_LOCAL));

	for (int i = 0; i < PLACES; i++) {
		CHECK(new (i) == new_version + i);
		CHECK(old(i) == old_version + i);
	}
}

/* --- a constructor that waits for a thread that launches --- */

__attribute__((visibility("default"))) void take_and_give_back(void);

void take_and_give_back(void)
{
	atomic_store(&waits, true);
	(void)pthread_mutex_lock(&lock);
	(void)pthread_mutex_unlock(&lock);
}

static void *load_slowly(void *arg)
{
	(void)arg;
	(void)load("libslowstart.so", RTLD_LOCAL);
	return NULL;
}

/* A launch that took the dynamic linker's lock would wait for ever. */
static void check_no_deadlock(void)
{
	launch_from *launch = launcher(load("libkernels12.so", RTLD_LOCAL));
	pthread_t thread;

	CHECK(launch(0) == 12);
	CHECK(pthread_mutex_lock(&lock) == 0);
	CHECK(pthread_create(&thread, NULL, load_slowly, NULL) == 0);
	while (!atomic_load(&waits))
		(void)usleep(1000);
	for (int i = 0; i < PLACES; i++)
		CHECK(launch(i) == 12 + i);
	CHECK(pthread_mutex_unlock(&lock) == 0);
	CHECK(pthread_join(thread, NULL) == 0);
}

/* --- libraries that are unloaded --- */

static bool is_loaded(const char *name)
{
	char path[PATH_MAX];
	void *library;

	(void)snprintf(path, sizeof(path), "%s/%s", folder, name);
	library = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
	if (library != NULL)
		(void)dlclose(library);
	return library != NULL;
}

/* Where one was another is: returns where. */
static launch_from *use_and_unload(const char *name, int version)
{
	void *library = load(name, RTLD_LOCAL);
	launch_from *launch = launcher(library);

	CHECK(launch(1) == version + 1 && launch(PLACES - 1) == version + PLACES - 1);
	(void)dlclose(library);
	/* With older C libraries the caller is unknown: there it stays. */
	CHECK(!is_loaded(name) || dlsym(RTLD_DEFAULT, "_dl_find_object") == NULL);
	return launch;
}

static void check_unloading(void)
{
	int same = 0;

	for (int i = 0; i < RELOADS; i++) {
		launch_from *old = use_and_unload("libkernels11.so", 11);

		same += use_and_unload("libkernels12.so", 12) == old;
	}
	printf("%d of %d at the same address\n", same, RELOADS);
}

int main(int argc, char **argv)
{
	CHECK(argc >= 2);
	folder = argv[1];
	if (argc > 2 && strcmp(argv[2], "--shim") == 0) {
		check_versions(1012, 1012); /* the tool itself asks for the first there is */
		return 0;
	}
	check_unloading();
	check_no_deadlock();
	check_versions(12, 11);
	printf("ok\n");
	return 0;
}
