/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/jobchild.h"

#include "base/subprocess.h"
#include "base/vec.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define NICE 10 /* training goes first */
#define ENV_MAX 16
#define WORDS_MAX 32
#define FDS_MAX 65536
#define CLOSE_ON_EXEC 4u /* CLOSE_RANGE_CLOEXEC of <linux/close_range.h> */

#ifndef SYS_close_range
#define SYS_close_range 436 /* on all architectures */
#endif

extern char **environ;

void jobchild_find_user(uid_t uid, gid_t gid, struct jobchild_user *ret)
{
	char buffer[4096];
	struct passwd entry, *found = NULL;
	int cnt = ARRAY_SIZE(ret->groups);

	*ret = (struct jobchild_user){ .uid = uid, .gid = gid, .groups = { gid }, .group_cnt = 1 };
	(void)snprintf(ret->home, sizeof(ret->home), "/");
	if (getpwuid_r(uid, &entry, buffer, sizeof(buffer), &found) != 0 || found == NULL)
		return; /* as in many containers: its own group is all that it has */
	(void)snprintf(ret->name, sizeof(ret->name), "%s", entry.pw_name);
	(void)snprintf(ret->home, sizeof(ret->home), "%s", entry.pw_dir);
	if (getgrouplist(entry.pw_name, gid, ret->groups, &cnt) > 0)
		ret->group_cnt = (size_t)cnt;
}

/* --- in the child: hostd has threads, so only system calls until exec --- */

static int become(const struct jobchild_user *user)
{
	if (user == NULL || geteuid() != 0)
		return 0;
	if (setgroups(user->group_cnt, user->groups) != 0 ||
	    setresgid(user->gid, user->gid, user->gid) != 0 ||
	    setresuid(user->uid, user->uid, user->uid) != 0)
		return -errno;
	/* Never root by mistake. */
	return user->uid != 0 && setuid(0) == 0 ? -EPERM : 0;
}

static void reset_signals(void)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t none;

	for (int number = 1; number < NSIG; number++)
		(void)sigaction(number, &usual, NULL);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Standard input is the control, standard output the relay. */
static int set_files(int control_fd, int relay_fd)
{
	int null_fd = relay_fd < 0 ? open("/dev/null", O_RDWR | O_CLOEXEC) : relay_fd;

	return null_fd < 0 || dup2(control_fd, STDIN_FILENO) < 0 || dup2(null_fd, STDOUT_FILENO) < 0
		       ? -errno
		       : 0;
}

/* Libraries may have opened some without O_CLOEXEC: the connection to the bus is not for users. */
static void close_others_on_exec(void)
{
	struct rlimit limit = { .rlim_cur = 1024 };

	if (syscall(SYS_close_range, 3, ~0u, CLOSE_ON_EXEC) == 0)
		return;
	(void)getrlimit(RLIMIT_NOFILE, &limit); /* before Linux 5.11 */
	for (int fd = 3; fd < (int)MIN(limit.rlim_cur, (rlim_t)FDS_MAX); fd++)
		(void)fcntl(fd, F_SETFD, FD_CLOEXEC);
}

struct plan {
	const struct jobchild_setup *setup;
	char *argv[WORDS_MAX];
	char **env;
	int control_fd, relay_fd, error_fd;
};

_noreturn_ static void be_child(const struct plan *plan)
{
	int error;

	(void)setsid(); /* out of the terminal's reach */
	reset_signals();
	error = set_files(plan->control_fd, plan->relay_fd);
	close_others_on_exec();
	(void)setpriority(PRIO_PROCESS, 0, NICE);
	if (error == 0)
		error = become(plan->setup->user);
	if (error == 0) {
		(void)execve(plan->setup->program, plan->argv, plan->env);
		error = -errno;
	}
	(void)!write(plan->error_fd, &error, sizeof(error));
	_exit(127);
}

/* --- in the parent --- */

/* Of hostd's environment a job's daemon gets only what has no secrets. */
static void set_environment(const struct jobchild_user *user, char texts[ENV_MAX][320],
			    char *ret[ENV_MAX + 1])
{
	static const char *const kept[] = { "PATH",
					    "LANG",
					    "LC_ALL",
					    "TZ",
					    "TMPDIR",
					    "PERFTRACKER_AGENT",
					    "PERFTRACKER_PYTHONPATH" };
	size_t cnt = 0;

	(void)snprintf(texts[cnt++], 320, "HOME=%s", user->home);
	(void)snprintf(texts[cnt++], 320, "USER=%s", user->name);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++) {
		const char *value = getenv(kept[i]);

		if (value != NULL && strlen(value) < 256)
			(void)snprintf(texts[cnt++], 320, "%s=%s", kept[i], value);
	}
	for (size_t i = 0; i < cnt; i++)
		ret[i] = texts[i];
	ret[cnt] = NULL;
}

static int set_words(const struct jobchild_setup *setup, char *ret[WORDS_MAX])
{
	static char name[] = "perftracker", command[] = "__fleet-job";
	size_t cnt = 0;

	ret[cnt++] = name;
	ret[cnt++] = command;
	for (size_t i = 0; setup->words[i] != NULL; i++) {
		if (cnt >= WORDS_MAX - 1)
			return -E2BIG;
		ret[cnt++] = (char *)(uintptr_t)setup->words[i];
	}
	ret[cnt] = NULL;
	return 0;
}

static void close_pair(int fds[static 2])
{
	for (int i = 0; i < 2; i++) {
		if (fds[i] >= 0)
			(void)close(fds[i]);
		fds[i] = -1;
	}
}

/* Waits for exec. Returns 0 or the child's -errno. */
static int await_exec(pid_t pid, int fd)
{
	int error = 0;
	ssize_t len;

	do {
		len = read(fd, &error, sizeof(error));
	} while (len < 0 && errno == EINTR);
	if (len != (ssize_t)sizeof(error))
		return 0; /* end of file: exec succeeded */
	(void)waitpid(pid, NULL, 0);
	return error;
}

static int fork_child(struct plan *plan, int errors[static 2], pid_t *ret)
{
	if (pipe2(errors, O_CLOEXEC) != 0)
		return -errno;
	plan->error_fd = errors[1];
	*ret = fork();
	if (*ret == 0)
		be_child(plan);
	if (*ret < 0)
		return -errno;
	(void)close(errors[1]);
	errors[1] = -1;
	return await_exec(*ret, errors[0]);
}

int jobchild_start(const struct jobchild_setup *setup, struct jobchild *ret, struct err *err)
{
	int control[2] = { -1, -1 }, relay[2] = { -1, -1 }, errors[2] = { -1, -1 };
	struct plan plan = { .setup = setup, .env = environ };
	char texts[ENV_MAX][320], *env[ENV_MAX + 1];
	pid_t pid = 0;
	int error = set_words(setup, plan.argv);

	if (setup->user != NULL) {
		set_environment(setup->user, texts, env);
		plan.env = env;
	}
	if (error == 0 && socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, control) != 0)
		error = -errno;
	if (error == 0 && setup->relay &&
	    socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, relay) != 0)
		error = -errno;
	plan.control_fd = control[1];
	plan.relay_fd = relay[1];
	if (error == 0)
		error = fork_child(&plan, errors, &pid);
	close_pair(errors);
	if (error == 0) {
		*ret = (struct jobchild){ .pid = pid,
					  .control_fd = control[0],
					  .relay_fd = relay[0] };
		control[0] = relay[0] = -1;
	}
	close_pair(control);
	close_pair(relay);
	return error == 0 ? 0
			  : err_set(err, -error, "%s: cannot start it for a job: %s",
				    setup->program, strerror(-error));
}

void jobchild_ask_end(const struct jobchild *child)
{
	const struct daemon_news news = { .exit_status = -1, .signal = SIGTERM };

	if (child->control_fd >= 0)
		(void)send(child->control_fd, &news, sizeof(news), MSG_NOSIGNAL | MSG_DONTWAIT);
}

int jobchild_take_ready(const struct jobchild *child, struct daemon_ready *ret)
{
	ssize_t len = recv(child->control_fd, ret, sizeof(*ret), MSG_DONTWAIT);

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return 0;
	if (len != (ssize_t)sizeof(*ret))
		return -ECONNRESET;
	/* The child runs as a user, who may have taken it over. */
	ret->text[sizeof(ret->text) - 1] = '\0';
	ret->socket[sizeof(ret->socket) - 1] = '\0';
	ret->trace_dir[sizeof(ret->trace_dir) - 1] = '\0';
	return 1;
}

void jobchild_close(struct jobchild *child)
{
	if (child->control_fd >= 0)
		(void)close(child->control_fd);
	if (child->relay_fd >= 0)
		(void)close(child->relay_fd);
	child->control_fd = child->relay_fd = -1;
}

void jobchild_kill(struct jobchild *child)
{
	if (child->pid <= 0)
		return;
	(void)subprocess_signal(child->pid, SIGKILL);
	(void)waitpid(child->pid, NULL, 0);
	child->pid = 0;
}
