/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/fleetjob.h"

#include "base/clock.h"
#include "live/fleet/jobfolders.h"
#include "live/run/daemon.h"
#include "live/run/outdir.h"
#include "live/run/runlog.h"
#include "live/site/site.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

struct words {
	const char *role, *key, *name, *out, *socket, *command, *config, *spool;
};

static const char *from_environment(const char *name)
{
	return getenv(name);
}

/* The value of "NAME=VALUE"; NULL: another name. */
static const char *value_of(const char *word, const char *name)
{
	size_t len = strlen(name);

	return strncmp(word, name, len) == 0 && word[len] == '=' ? word + len + 1 : NULL;
}

static void take_words(int argc, char **argv, struct words *ret)
{
	const struct {
		const char *name, **field;
	} fields[] = {
		{ "role", &ret->role },	    { "key", &ret->key },
		{ "name", &ret->name },	    { "out", &ret->out },
		{ "socket", &ret->socket }, { "command", &ret->command },
		{ "config", &ret->config }, { "spool", &ret->spool },
	};

	for (int i = 0; i < argc; i++) {
		for (size_t k = 0; k < ARRAY_SIZE(fields); k++) {
			const char *value = value_of(argv[i], fields[k].name);

			if (value != NULL)
				*fields[k].field = value;
		}
	}
}

/* A member has no right to read the site's file: it gets what it needs by set=. */
static int read_site(const struct words *words, int argc, char **argv, struct site *site,
		     struct err *err)
{
	struct site_problems problems = { .cnt = 0 };
	int ret = site_init(site);

	if (ret == 0 && words->config != NULL) {
		site_take_file(site, words->config, &problems);
		site_take_environment(site, from_environment, &problems);
	}
	for (int i = 0; i < argc && ret == 0; i++) {
		const char *pair = value_of(argv[i], "set");

		if (pair != NULL)
			site_take_option(site, pair, &problems);
	}
	if (ret == 0 && problems.cnt > 0)
		ret = err_set(err, EINVAL, "%.*s", (int)strcspn(str_borrow(&problems.lines), "\n"),
			      str_borrow(&problems.lines));
	site_problems_done(&problems);
	return ret;
}

static void set_options(const struct site_values *site, bool leads, struct run_options *options)
{
	long cpus = sysconf(_SC_NPROCESSORS_ONLN);

	options->slowdown_frac = site->jobs_slowdown_percent / 100.0;
	options->min_gap_ns = site->jobs_min_gap_seconds * NSEC_PER_SEC;
	options->no_audit = !site->jobs_audit;
	options->store = leads ? site->hub_store : "none";
	options->jobs = (unsigned int)MAX(cpus * (long)site->hostd_cpu_percent / 100, 1L);
	options->member = (struct member){ .index = -1, .launcher = "fleet" };
}

/* Standard input and output become free for libraries that print. */
static int take_fds(int *ret_control, int *ret_relay)
{
	int null_fd = open("/dev/null", O_RDWR | O_CLOEXEC);

	*ret_control = fcntl(STDIN_FILENO, F_DUPFD_CLOEXEC, 3);
	*ret_relay = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 3);
	if (null_fd < 0 || *ret_control < 0 || *ret_relay < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
	    dup2(null_fd, STDOUT_FILENO) < 0)
		return -errno;
	(void)close(null_fd);
	return 0;
}

static void open_log(const char *out)
{
	char path[PATH_MAX + 16];
	int fd;

	(void)snprintf(path, sizeof(path), "%s/" FLEETJOB_LOG, out);
	fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | O_NOFOLLOW, 0644);
	if (fd >= 0) {
		(void)dup2(fd, STDERR_FILENO);
		(void)close(fd);
	}
	runlog_open(RUNLOG_LOGFMT, false, false);
}

static int run(const struct words *words, struct site *site, int control_fd, int relay_fd)
{
	struct run_options options = run_options_preset();
	bool leads = strcmp(words->role, "leader") == 0;
	struct fleet_job fleet = { .role = leads ? FLEET_LEADER : FLEET_MEMBER,
				   .key = words->key,
				   .host = site->values.host,
				   .socket = words->socket,
				   .relay_fd = relay_fd,
				   .shown = leads && site->values.hub_ui[0] != '\0',
				   .linger_ns = site->values.jobs_linger_seconds * NSEC_PER_SEC,
				   .window_ns =
					   site->values.hostd_max_window_seconds * NSEC_PER_SEC,
				   .windows_per_hour = site->values.hostd_max_windows_per_hour,
				   .spool_dir = leads ? NULL : words->spool,
				   .spool_bytes = site->values.hostd_spool_bytes };
	struct daemon_ready failed = { .status = EIO };
	struct bus_login login = { .url = NULL };
	struct seal *seal = NULL;
	char program[PATH_MAX];
	struct outdir outdir = { .lock_fd = -1 };
	struct err err = { "" };
	ssize_t len = readlink("/proc/self/exe", program, sizeof(program) - 1);
	int ret = leads ? site_login(site, &login, &err) : 0;

	program[MAX(len, (ssize_t)0)] = '\0';
	if (ret == 0)
		ret = site_seal(site, leads, &seal, &err);
	if (ret == 0)
		ret = outdir_open(&outdir, words->out, words->name, &err);
	if (ret < 0) {
		failed.status = -ret;
		(void)snprintf(failed.text, sizeof(failed.text), "%.500s", err.text);
		(void)send(control_fd, &failed, sizeof(failed), MSG_NOSIGNAL);
		return 1;
	}
	open_log(outdir.path);
	jobfolders_prune(outdir.path,
			 leads ? site->values.hub_keep_jobs : site->values.hostd_keep_jobs);
	if (fleet.spool_dir != NULL)
		jobfolders_prune(fleet.spool_dir, site->values.hostd_keep_jobs);
	set_options(&site->values, leads, &options);
	fleet.login = &login;
	fleet.seal = seal;
	options.fleet = &fleet;
	options.out_dir = outdir.path;
	options.job_name = words->name;
	options.command = words->command;
	options.program = program;
	ret = daemon_run(&options, control_fd);
	(void)seal_close(seal);
	return ret;
}

int fleetjob_main(int argc, char **argv)
{
	struct words words = { .role = "" };
	struct err err = { "out of memory" };
	int control_fd = -1, relay_fd = -1, ret;
	struct site site;

	take_words(argc, argv, &words);
	if (words.key == NULL || words.name == NULL || words.out == NULL || words.socket == NULL) {
		(void)fprintf(stderr,
			      "perftracker: __fleet-job is started by hostd and hub only\n");
		return 2;
	}
	ret = take_fds(&control_fd, &relay_fd);
	if (ret == 0)
		ret = read_site(&words, argc, argv, &site, &err);
	if (ret < 0) {
		(void)fprintf(stderr, "perftracker: %s: %s\n", words.key, err.text);
		return 1;
	}
	ret = run(&words, &site, control_fd, relay_fd);
	site_done(&site);
	return ret;
}
