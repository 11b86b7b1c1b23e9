/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SOCKET_BYTES 128u

int rundir_make(const char *path, mode_t mode, struct err *err)
{
	char partial[4096];
	struct stat st;

	if ((size_t)snprintf(partial, sizeof(partial), "%s", path) >= sizeof(partial))
		return err_set(err, ENAMETOOLONG, "%s: path too long", path);
	for (char *c = strchr(partial + 1, '/'); c != NULL; c = strchr(c + 1, '/')) {
		*c = '\0';
		if (mkdir(partial, 0755) != 0 && errno != EEXIST)
			return err_set(err, errno, "%s: cannot make this directory: %s", partial,
				       strerror(errno));
		*c = '/';
	}
	if (mkdir(path, mode) == 0)
		return 0;
	if (errno != EEXIST)
		return err_set(err, errno, "%s: cannot make this directory: %s", path,
			       strerror(errno));
	if (stat(path, &st) != 0 || !S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "%s: expected a directory", path);
	return 0;
}

static void base_path(char *ret, size_t size)
{
	const char *runtime = getenv("XDG_RUNTIME_DIR");

	if (runtime != NULL && runtime[0] == '/')
		(void)snprintf(ret, size, "%s/perftracker", runtime);
	else
		(void)snprintf(ret, size, "/tmp/perftracker-%u", (unsigned)geteuid());
}

static int check_private(const char *path, struct err *err)
{
	struct stat st;

	if (lstat(path, &st) != 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	if (!S_ISDIR(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 077) != 0)
		return err_set(
			err, EPERM,
			"%s: expected a directory of mode 0700 that belongs to you; remove it",
			path);
	return 0;
}

int rundir_private(const char *path, struct err *err)
{
	if (mkdir(path, 0700) != 0 && errno != EEXIST)
		return err_set(err, errno, "%s: cannot make this directory: %s", path,
			       strerror(errno));
	return check_private(path, err);
}

int rundir_socket(char *ret, size_t size, struct err *err)
{
	char base[100], path[128];
	int r;

	base_path(base, sizeof(base));
	r = rundir_make(base, 0700, err);
	if (r == 0)
		r = check_private(base, err);
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/%d.sock", base, (int)getpid());
	if (strlen(path) >= size || strlen(path) >= sizeof(((struct sockaddr_un *)NULL)->sun_path))
		return err_set(err, ENAMETOOLONG, "%s: path too long for a socket", path);
	(void)snprintf(ret, size, "%s", path);
	return 0;
}

/*
 * A socket whose daemon was killed remains, but refuses connections. EAGAIN: a daemon listens, and
 * is behind with accepting.
 */
bool rundir_is_served(const char *path)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	bool served;

	if (fd < 0 || strlen(path) >= sizeof(addr.sun_path))
		return false;
	memcpy(addr.sun_path, path, strlen(path));
	served = connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) == 0 || errno == EAGAIN;
	(void)close(fd);
	return served;
}

static bool is_socket(const char *path)
{
	struct stat st;

	return stat(path, &st) == 0 && S_ISSOCK(st.st_mode);
}

int rundir_visit_folder(const char *base, int (*visit)(void *arg, const char *path), void *arg)
{
	struct dirent *entry;
	DIR *dir = opendir(base);
	int ret = 0;

	while (dir != NULL && ret == 0 && (entry = readdir(dir)) != NULL) {
		char path[512];

		(void)snprintf(path, sizeof(path), "%s/%s", base, entry->d_name);
		if (strlen(path) < SOCKET_BYTES && is_socket(path) && rundir_is_served(path))
			ret = visit(arg, path);
	}
	if (dir != NULL)
		(void)closedir(dir);
	return ret;
}

/* Where hostd of a fleet has the daemons of this user's jobs. */
static void fleet_path(char *ret, size_t size)
{
	const char *hostd = getenv("PERFTRACKER_HOSTD");
	const char *slash;

	if (hostd == NULL || hostd[0] == '\0')
		hostd = RUNDIR_HOSTD_SOCKET;
	slash = strrchr(hostd, '/');
	(void)snprintf(ret, size, "%.*s/u%u", slash != NULL ? (int)(slash - hostd) : 1,
		       slash != NULL ? hostd : ".", (unsigned)geteuid());
}

int rundir_visit(int (*visit)(void *arg, const char *path), void *arg)
{
	char base[100], fleet[SOCKET_BYTES];
	int ret;

	base_path(base, sizeof(base));
	fleet_path(fleet, sizeof(fleet));
	ret = rundir_visit_folder(base, visit, arg);
	return ret == 0 ? rundir_visit_folder(fleet, visit, arg) : ret;
}

struct newest {
	char path[SOCKET_BYTES];
	struct timespec time;
};

static int consider(void *arg, const char *path)
{
	struct newest *newest = arg;
	struct stat st;

	if (stat(path, &st) != 0 || st.st_mtim.tv_sec < newest->time.tv_sec ||
	    (st.st_mtim.tv_sec == newest->time.tv_sec &&
	     st.st_mtim.tv_nsec <= newest->time.tv_nsec))
		return 0;
	newest->time = st.st_mtim;
	(void)snprintf(newest->path, sizeof(newest->path), "%s", path);
	return 0;
}

int rundir_newest(char *ret, size_t size, struct err *err)
{
	struct newest newest = { .path = "" };
	char base[100];

	base_path(base, sizeof(base));
	if (rundir_visit(consider, &newest) < 0 || newest.path[0] == '\0')
		return err_set(err, ENOENT,
			       "no running job found in %s: start one with perftracker run, or "
			       "name its folder with --job",
			       base);
	(void)snprintf(ret, size, "%s", newest.path);
	return 0;
}

static int link_path(const char *out_dir, char *ret, size_t size)
{
	return (size_t)snprintf(ret, size, "%s/socket", out_dir) < size ? 0 : -ENAMETOOLONG;
}

int rundir_of_job(const char *out_dir, char *ret, size_t size)
{
	char path[4096], target[128];
	int r = link_path(out_dir, path, sizeof(path));
	ssize_t len = r == 0 ? readlink(path, target, sizeof(target) - 1) : r;

	if (len < 0)
		return r < 0 ? r : -errno;
	target[len] = '\0';
	if ((size_t)len >= size || !rundir_is_served(target))
		return -ENOENT;
	(void)snprintf(ret, size, "%s", target);
	return 0;
}

void rundir_link(const char *out_dir, const char *socket_path)
{
	char path[4096];

	if (link_path(out_dir, path, sizeof(path)) < 0)
		return;
	(void)unlink(path); /* left by a daemon that was killed */
	(void)!symlink(socket_path, path);
}

void rundir_unlink(const char *out_dir, const char *socket_path)
{
	char path[4096], target[128] = "";

	if (link_path(out_dir, path, sizeof(path)) == 0 &&
	    readlink(path, target, sizeof(target) - 1) > 0 && strcmp(target, socket_path) == 0)
		(void)unlink(path);
}
