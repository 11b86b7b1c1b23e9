/* SPDX-License-Identifier: Apache-2.0 */
#include "base/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static int set_signals(posix_spawnattr_t *attributes)
{
	sigset_t none, all;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	(void)posix_spawnattr_setsigmask(attributes, &none);
	(void)posix_spawnattr_setsigdefault(attributes, &all);
	return posix_spawnattr_setflags(attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
}

static int set_files(posix_spawn_file_actions_t *files, const int fds[static 3])
{
	int error = 0;

	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO && error == 0; fd++) {
		if (fds[fd] == SUBPROCESS_NULL)
			error = posix_spawn_file_actions_addopen(files, fd, "/dev/null", O_RDWR, 0);
		else if (fds[fd] != SUBPROCESS_INHERIT)
			error = posix_spawn_file_actions_adddup2(files, fds[fd], fd);
	}
	return error;
}

int subprocess_start(const char *const *argv, const int fds[static 3], pid_t *ret)
{
	return subprocess_start_in(argv, (const char *const *)environ, fds, ret);
}

int subprocess_start_in(const char *const *argv, const char *const *environment,
			const int fds[static 3], pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attributes;
	int error;

	(void)posix_spawn_file_actions_init(&files);
	(void)posix_spawnattr_init(&attributes);
	error = set_signals(&attributes);
	if (error == 0)
		error = set_files(&files, fds);
	if (error ==
	    0) /* posix_spawnp() does not change the lists, although their type is not const */
		error = posix_spawnp(ret, argv[0], &files, &attributes,
				     (char *const *)(uintptr_t)argv,
				     (char *const *)(uintptr_t)environment);
	(void)posix_spawnattr_destroy(&attributes);
	(void)posix_spawn_file_actions_destroy(&files);
	return -error;
}

int subprocess_find(const char *name, char *ret, size_t size)
{
	const char *path = getenv("PATH");

	if (strchr(name, '/') != NULL)
		return (size_t)snprintf(ret, size, "%s", name) < size ? 0 : -ENAMETOOLONG;
	for (const char *at = path; at != NULL && *at != '\0';) {
		size_t len = strcspn(at, ":");

		if ((size_t)snprintf(ret, size, "%.*s/%s", (int)len, at, name) < size &&
		    access(ret, X_OK) == 0)
			return 0;
		at += len + (at[len] == ':');
	}
	return -ENOENT;
}

int subprocess_find_beside(const char *name, char *ret, size_t size)
{
	char program[PATH_MAX];
	ssize_t len;
	int error = subprocess_find(name, ret, size);

	if (error != -ENOENT)
		return error;
	len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	if (len <= 0)
		return -ENOENT;
	program[len] = '\0';
	*strrchr(program, '/') = '\0';
	if ((size_t)snprintf(ret, size, "%s/%s", program, name) >= size)
		return -ENAMETOOLONG;
	return access(ret, X_OK) == 0 ? 0 : -ENOENT;
}

int subprocess_reap(pid_t pid, int *ret_status)
{
	int status;
	pid_t got = pid > 1 ? waitpid(pid, &status, WNOHANG) : -1;

	if (got < 0)
		return -ECHILD;
	if (got == 0)
		return 0;
	*ret_status = status;
	return 1;
}

int subprocess_signal(pid_t pid, int number)
{
	if (pid <= 1)
		return -EINVAL;
	return kill(pid, number) == 0 ? 0 : -errno;
}

int subprocess_signal_group(pid_t leader, int number)
{
	if (leader <= 1 || leader == getpgrp())
		return -EINVAL;
	return kill(-leader, number) == 0 ? 0 : -errno;
}
