/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/outdir.h"

#include "base/clock.h"
#include "live/run/rundir.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#define LOCK "lock"
#define EARLIER "earlier"
#define FOLDERS_MAX 1000 /* of one job in one second */
#define HOST_BYTES 65

/* What a run writes to its folder, but for the lock and the link to its socket. */
static const char *const results[] = {
	"fingerprints", "flight",   "flight.before", "traces",
	"metrics.json", "report.*", "report-*.*",    "spool",
};

/* The results that exist from the start, empty. */
static const char *const prepared[] = { "fingerprints", "traces" };

static bool is_result(const char *name)
{
	for (size_t i = 0; i < ARRAY_SIZE(results); i++) {
		if (fnmatch(results[i], name, 0) == 0)
			return true;
	}
	return false;
}

/* "20261123-120341" */
static void put_time(time_t time, char ret[static 16])
{
	struct tm tm;

	(void)localtime_r(&time, &tm);
	(void)strftime(ret, 16, "%Y%m%d-%H%M%S", &tm);
}

/* Makes PATH, PATH-2, ... whichever is new. Returns 0 or -errno. */
static int make_new(char *path, size_t size, mode_t mode)
{
	size_t len = strlen(path);

	for (int i = 2; mkdir(path, mode) != 0; i++) {
		if (errno != EEXIST || i > FOLDERS_MAX)
			return -errno;
		if ((size_t)snprintf(path + len, size - len, "-%d", i) >= size - len)
			return -ENAMETOOLONG;
	}
	return 0;
}

static int make_absolute(const char *path, char *ret, size_t size)
{
	char here[PATH_MAX];
	int len;

	if (path[0] == '/')
		len = snprintf(ret, size, "%s", path);
	else if (getcwd(here, sizeof(here)) == NULL)
		return -errno;
	else
		len = snprintf(ret, size, "%s/%s", here, path);
	return len < 0 || (size_t)len >= size ? -ENAMETOOLONG : 0;
}

static int make_default(struct outdir *outdir, const char *job, struct err *err)
{
	char time[16];
	size_t len;
	int ret = make_absolute(OUTDIR_BASE, outdir->path, sizeof(outdir->path));

	if (ret < 0)
		return err_set(err, -ret, "the current folder: %s", strerror(-ret));
	outdir->base_made = access(outdir->path, F_OK) != 0;
	ret = rundir_make(outdir->path, 0755, err);
	if (ret < 0)
		return ret;
	put_time((time_t)(clock_wall_ns() / NSEC_PER_SEC), time);
	len = strlen(outdir->path);
	if ((size_t)snprintf(outdir->path + len, sizeof(outdir->path) - len, "/%s-%s", time, job) >=
	    sizeof(outdir->path) - len)
		ret = -ENAMETOOLONG;
	else
		ret = make_new(outdir->path, sizeof(outdir->path), 0755);
	if (ret < 0)
		return err_set(err, -ret, "%s: cannot make this directory: %s", outdir->path,
			       strerror(-ret));
	outdir->by_default = outdir->made = true;
	return 0;
}

static int make_given(struct outdir *outdir, const char *given, struct err *err)
{
	int ret = make_absolute(given, outdir->path, sizeof(outdir->path));

	if (ret < 0)
		return err_set(err, -ret, "%s: %s", given, strerror(-ret));
	outdir->made = access(outdir->path, F_OK) != 0;
	return rundir_make(outdir->path, 0755, err);
}

static void host_name(char ret[static HOST_BYTES])
{
	memset(ret, 0, HOST_BYTES);
	(void)gethostname(ret, HOST_BYTES - 1);
}

/* Says who has the lock. Returns -EBUSY, or -EAGAIN when a process on another host has it. */
static int complain(const struct outdir *outdir, int fd, struct err *err)
{
	char text[128] = "", own[HOST_BYTES], host[HOST_BYTES] = "";
	int pid = 0;

	(void)!pread(fd, text, sizeof(text) - 1, 0);
	host_name(own);
	if (sscanf(text, "%d %64s", &pid, host) == 2 && strcmp(host, own) != 0)
		return -EAGAIN;
	return err_set(err, EBUSY,
		       "%s is in use by a running job (perftracker run, process %d): name another "
		       "folder, or omit --output for a new one",
		       outdir->path, pid);
}

/* Returns 0, -EBUSY, -EAGAIN as complain() does, or -errno; the lock's last user at *ret_used. */
static int take_lock(struct outdir *outdir, time_t *ret_used, struct err *err)
{
	char path[PATH_MAX + 8], text[96], host[HOST_BYTES];
	struct stat st;
	int fd, len, ret;

	(void)snprintf(path, sizeof(path), "%s/" LOCK, outdir->path);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	/* Some network file systems have no locks: then two runs are not told apart. */
	if (flock(fd, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK) {
		ret = complain(outdir, fd, err);
		(void)close(fd);
		return ret;
	}
	*ret_used = fstat(fd, &st) == 0 && st.st_size > 0 ? st.st_mtime : time(NULL);
	host_name(host);
	len = snprintf(text, sizeof(text), "%d %s\n", (int)getpid(), host);
	(void)!ftruncate(fd, 0);
	(void)!pwrite(fd, text, (size_t)len, 0);
	outdir->lock_fd = fd;
	return 0;
}

static void move_results(const char *from, const char *to)
{
	struct dirent *entry;
	DIR *dir = opendir(from);

	while (dir != NULL && (entry = readdir(dir)) != NULL) {
		char old[PATH_MAX + 320], new[PATH_MAX + 320];

		if (!is_result(entry->d_name))
			continue;
		(void)snprintf(old, sizeof(old), "%s/%s", from, entry->d_name);
		(void)snprintf(new, sizeof(new), "%s/%s", to, entry->d_name);
		(void)rename(old, new);
	}
	if (dir != NULL)
		(void)closedir(dir);
}

static bool has_results(const char *path)
{
	struct dirent *entry;
	bool found = false;
	DIR *dir = opendir(path);

	while (dir != NULL && !found && (entry = readdir(dir)) != NULL)
		found = is_result(entry->d_name);
	if (dir != NULL)
		(void)closedir(dir);
	return found;
}

/* used: when the earlier run began. */
static int keep_earlier(struct outdir *outdir, time_t used, struct err *err)
{
	char time[16];
	int ret;

	if (!has_results(outdir->path))
		return 0;
	(void)snprintf(outdir->earlier, sizeof(outdir->earlier), "%s/" EARLIER, outdir->path);
	if (mkdir(outdir->earlier, 0755) != 0 && errno != EEXIST)
		return err_set(err, errno, "%s: %s", outdir->earlier, strerror(errno));
	put_time(used, time);
	(void)snprintf(outdir->earlier, sizeof(outdir->earlier), "%s/" EARLIER "/%s", outdir->path,
		       time);
	ret = make_new(outdir->earlier, sizeof(outdir->earlier), 0755);
	if (ret < 0)
		return err_set(err, -ret, "%s: %s", outdir->earlier, strerror(-ret));
	move_results(outdir->path, outdir->earlier);
	return 0;
}

/* Takes a folder of this host in the folder of another host's run. */
static int open_shared(struct outdir *outdir, time_t *ret_used, struct err *err)
{
	char host[HOST_BYTES], path[PATH_MAX + HOST_BYTES + 1];
	int ret;

	host_name(host);
	(void)snprintf(path, sizeof(path), "%s/%s", outdir->path, host);
	ret = make_given(outdir, path, err);
	if (ret == 0)
		ret = take_lock(outdir, ret_used, err);
	return ret == -EAGAIN ? err_set(err, EBUSY, "%s is in use", path) : ret;
}

int outdir_open(struct outdir *outdir, const char *given, const char *job, struct err *err)
{
	time_t used = 0;
	int ret;

	*outdir = (struct outdir){ .lock_fd = -1 };
	ret = given != NULL ? make_given(outdir, given, err) : make_default(outdir, job, err);
	if (ret == 0)
		ret = take_lock(outdir, &used, err);
	if (ret == -EAGAIN)
		ret = open_shared(outdir, &used, err);
	if (ret == 0)
		ret = keep_earlier(outdir, used, err);
	if (ret < 0)
		outdir->path[0] = '\0';
	return ret;
}

void outdir_started(const struct outdir *outdir)
{
	char link[PATH_MAX + 8], temporary[PATH_MAX + 32];
	const char *slash = strrchr(outdir->path, '/');

	if (!outdir->by_default || slash == NULL)
		return;
	(void)snprintf(link, sizeof(link), "%.*s/" OUTDIR_LATEST, (int)(slash - outdir->path),
		       outdir->path);
	(void)snprintf(temporary, sizeof(temporary), "%s.%d", link, (int)getpid());
	if (symlink(slash + 1, temporary) == 0 && rename(temporary, link) != 0)
		(void)unlink(temporary);
}

void outdir_undo(struct outdir *outdir)
{
	char path[PATH_MAX + 32];
	char *slash = strrchr(outdir->path, '/');

	if (slash == NULL)
		return;
	for (size_t i = 0; i < ARRAY_SIZE(prepared); i++) {
		(void)snprintf(path, sizeof(path), "%s/%s", outdir->path, prepared[i]);
		(void)rmdir(path);
	}
	(void)snprintf(path, sizeof(path), "%s/metrics.json", outdir->path);
	(void)unlink(path);
	if (outdir->earlier[0] != '\0') {
		move_results(outdir->earlier, outdir->path);
		(void)rmdir(outdir->earlier);
		*strrchr(outdir->earlier, '/') = '\0';
		(void)rmdir(outdir->earlier);
	}
	(void)snprintf(path, sizeof(path), "%s/" LOCK, outdir->path);
	(void)unlink(path);
	if (outdir->made)
		(void)rmdir(outdir->path);
	*slash = '\0';
	if (outdir->base_made)
		(void)rmdir(outdir->path);
	outdir->path[0] = '\0';
}
