/* SPDX-License-Identifier: Apache-2.0 */
/* The daemons of jobs that hostd starts, knows and reaps. */
#include "base/clock.h"
#include "base/log.h"
#include "base/subprocess.h"
#include "format/shared/message.h"
#include "host/process/procfs.h"
#include "live/cluster/subject.h"
#include "live/fleet/hostservice_parts.h"
#include "live/run/commandline.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define START_NS (15 * NSEC_PER_SEC)  /* then a daemon that is not ready has failed */
#define FORGET_NS (10 * NSEC_PER_SEC) /* a failed start is not tried again before */
#define LOOK_NS (2 * NSEC_PER_SEC)    /* between two looks whether an earlier hostd's daemon runs */
#define WORDS 22

struct hostjob *hostjob_find(struct hostservice *service, const struct jobkey *key)
{
	vec_foreach(job, &service->jobs) {
		if (strcmp((*job)->key.text, key->text) == 0 && !(*job)->closing)
			return *job;
	}
	return NULL;
}

/* --- folders --- */

/*
 * Makes a folder that only this user can enter. Its parent belongs to hostd, so nothing in the way
 * of it is the user's.
 */
static int make_private(const char *path, uid_t uid, gid_t gid, struct err *err)
{
	bool made = mkdir(path, 0700) == 0;
	int fd, ret = 0;
	struct stat st;

	if (!made && errno != EEXIST)
		return err_set(err, errno, "%s: cannot make this folder: %s", path,
			       strerror(errno));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, errno, "%s: expected a folder: %s", path, strerror(errno));
	if (made && uid != geteuid() && fchown(fd, uid, gid) != 0)
		ret = err_set(err, errno, "%s: %s", path, strerror(errno));
	else if (fstat(fd, &st) != 0 || st.st_uid != uid)
		ret = err_set(err, EPERM, "%s: expected a folder of user %u: remove it", path,
			      (unsigned)uid);
	(void)close(fd);
	return ret;
}

/* The job's places in the folder and in the run folder of its user follow from its key. */
static int set_places(struct hostjob *job, uid_t uid, struct err *err)
{
	const struct hostservice *service = job->service;
	const char *folder = service->setup.site->values.hostd_folder;
	char digest[17];
	size_t socket, out;

	jobkey_digest(job->key.text, digest);
	socket = (size_t)snprintf(job->socket, sizeof(job->socket), "%s/u%u/%s.sock",
				  service->run_dir, (unsigned)uid, digest);
	out = (size_t)snprintf(job->out, sizeof(job->out), "%s/u%u/%s", folder, (unsigned)uid,
			       job->key.job);
	if (socket >= sizeof(job->socket) || out >= 500)
		return err_set(err, ENAMETOOLONG, "%s: path too long",
			       socket >= sizeof(job->socket) ? job->socket : job->out);
	(void)snprintf(job->trace_dir, sizeof(job->trace_dir), "%.500s/traces", job->out);
	return 0;
}

static int make_places(const struct hostservice *service, const struct hostask *ask,
		       struct err *err)
{
	char path[512];
	int ret;

	(void)snprintf(path, sizeof(path), "%s/u%u", service->run_dir, (unsigned)ask->uid);
	ret = make_private(path, ask->uid, ask->gid, err);
	(void)snprintf(path, sizeof(path), "%.480s/u%u", service->setup.site->values.hostd_folder,
		       (unsigned)ask->uid);
	return ret == 0 ? make_private(path, ask->uid, ask->gid, err) : ret;
}

/* hostd.spool_dir/uUSER, in which the job's daemon makes its own. */
static int find_spool(struct hostjob *job, const struct hostask *ask, struct err *err)
{
	const struct site_values *site = &job->service->setup.site->values;
	char path[512], user[540];
	int ret;

	if (site->hostd_spool_dir[0] != '\0')
		(void)snprintf(path, sizeof(path), "%.500s", site->hostd_spool_dir);
	else
		(void)snprintf(path, sizeof(path), "%.490s/spool", site->hostd_folder);
	(void)snprintf(user, sizeof(user), "%s/u%u", path, (unsigned)ask->uid);
	ret = rundir_make(path, 0755, err);
	if (ret == 0)
		ret = make_private(user, ask->uid, ask->gid, err);
	if (ret == 0 && (size_t)snprintf(job->spool, 500, "%s/%s", user, job->key.job) >= 500)
		ret = err_set(err, ENAMETOOLONG, "%s: path too long", job->spool);
	return ret;
}

static void make_spool(struct hostjob *job, const struct hostask *ask)
{
	struct err err;

	if (find_spool(job, ask, &err) == 0)
		return;
	job->spool[0] = '\0';
	log_line(
		LOG_WARNING,
		"event=spool-off job=\"%s\" why=\"%s\" effect=\"results of this host are in memory "
		"only until the hub has them\" remedy=\"hostd.spool_dir\"",
		job->key.text, err.text);
}

/* --- the daemon --- */

static void set_words(const struct hostjob *job, char texts[WORDS][800], const char *ret[WORDS + 1])
{
	const struct site_values *site = &job->service->setup.site->values;
	char words[sizeof(job->origin.command)], *argv[JOBKEY_WORDS_MAX];
	struct str command = { 0 };
	size_t cnt = 0;

	(void)snprintf(words, sizeof(words), "%s", job->origin.command);
	jobkey_divide(words, argv);
	commandline_append(&command, argv); /* without values that look like secrets */
#define WORD(...) (void)snprintf(texts[cnt++], sizeof(texts[0]), __VA_ARGS__)
	WORD("role=member");
	WORD("key=%s", job->key.text);
	WORD("name=%s", job->name);
	WORD("out=%s", job->out);
	WORD("socket=%s", job->socket);
	WORD("command=%s", str_borrow(&command));
	WORD("set=host=%s", site->host);
	WORD("set=hostd.keep_jobs=%u", site->hostd_keep_jobs);
	WORD("set=hostd.cpu_percent=%u", site->hostd_cpu_percent);
	WORD("set=hostd.max_window_seconds=%u", site->hostd_max_window_seconds);
	WORD("set=hostd.max_windows_per_hour=%u", site->hostd_max_windows_per_hour);
	WORD("set=hostd.spool_bytes=%u", site->hostd_spool_bytes);
	if (job->spool[0] != '\0')
		WORD("spool=%s", job->spool);
	WORD("set=orders.key=%s", site->orders_key);
	WORD("set=jobs.linger_seconds=%u", site->jobs_linger_seconds);
	WORD("set=jobs.slowdown_percent=%u", site->jobs_slowdown_percent);
	WORD("set=jobs.min_gap_seconds=%u", site->jobs_min_gap_seconds);
	WORD("set=jobs.audit=%s", site->jobs_audit ? "yes" : "no");
#undef WORD
	str_done(&command);
	for (size_t i = 0; i < cnt; i++)
		ret[i] = texts[i];
	ret[cnt] = NULL;
}

static void fail(struct hostjob *job, const char *why)
{
	struct err line;

	/* The text may come from a child: without control characters. */
	(void)err_set(&line, EIO, "%s", why);
	(void)snprintf(job->why, sizeof(job->why), "%.250s", line.text);
	job->state = HOSTJOB_FAILED;
	if (job->child.pid > 0)
		(void)subprocess_signal(job->child.pid, SIGKILL); /* it may hang */
	log_line(LOG_ERROR, "event=job-not-started job=\"%s\" why=\"%s\"", job->key.text, job->why);
	hostask_answer_waiting(job->service, job);
}

static void control_readable(uv_poll_t *poll, int status, int events)
{
	struct hostjob *job = poll->data;
	struct daemon_ready ready;
	int got = jobchild_take_ready(&job->child, &ready);

	(void)status;
	(void)events;
	if (got == 0)
		return;
	if (got < 0 || ready.status != 0) {
		(void)uv_poll_stop(poll);
		if (job->state == HOSTJOB_STARTING)
			fail(job, got < 0 ? "the daemon of the job ended at once" : ready.text);
		return;
	}
	(void)snprintf(job->trace_dir, sizeof(job->trace_dir), "%s", ready.trace_dir);
	job->state = HOSTJOB_READY;
	job->service->say_ns = 0; /* the hub hears of it at once */
	job->service->changed = true;
	log_line(LOG_INFO, "event=job-started job=\"%s\" pid=%d folder=\"%s\"", job->key.text,
		 (int)job->child.pid, job->out);
	hostask_answer_waiting(job->service, job);
}

/* The job's own subjects: what other hosts and other jobs say stays out of reach. */
static int open_relay(struct hostjob *job, int fd, struct err *err)
{
	struct hostservice *service = job->service;
	const char *host = service->setup.site->values.host;
	char up[BUS_SUBJECT_MAX], down[BUS_SUBJECT_MAX], to[BUS_SUBJECT_MAX];
	struct relay_setup setup = { .loop = &service->service.loop,
				     .bus = service->service.bus,
				     .fd = fd,
				     .takes = { up },
				     .passes = { down, to } };
	int ret;

	subject_write(up, job->key.text, "up", host);
	subject_write(down, job->key.text, "down", NULL);
	subject_write(to, job->key.text, "to", host);
	ret = relay_open(&setup, &job->relay);
	return ret == 0 ? 0 : err_set(err, -ret, "no way to the bus: %s", strerror(-ret));
}

static int start_child(struct hostjob *job, const struct hostask *ask, struct err *err)
{
	struct hostservice *service = job->service;
	char texts[WORDS][800];
	const char *words[WORDS + 1];
	struct jobchild_user user;
	struct jobchild_setup setup = {
		.program = service->setup.program, .words = words, .user = &user, .relay = true
	};
	int ret;

	set_words(job, texts, words);
	jobchild_find_user(ask->uid, ask->gid, &user);
	ret = jobchild_start(&setup, &job->child, err);
	if (ret < 0)
		return ret;
	job->control.data = job;
	(void)uv_poll_init(&service->service.loop, &job->control, job->child.control_fd);
	(void)uv_poll_start(&job->control, UV_READABLE | UV_DISCONNECT, control_readable);
	ret = open_relay(job, job->child.relay_fd, err);
	job->child.relay_fd = -1; /* the relay's */
	if (ret < 0)
		log_line(LOG_WARNING, "event=job-alone job=\"%s\" why=\"%s\"", job->key.text,
			 err->text);
	return 0;
}

/* --- begin and end --- */

static void free_job(struct hostjob *job)
{
	vec_done(&job->ranks);
	free(job);
}

static void control_closed(uv_handle_t *handle)
{
	struct hostjob *job = handle->data;

	jobchild_close(&job->child);
	free_job(job);
}

/* Takes the job out of the list; those that wait for it are refused. */
static void close_job(struct hostjob *job)
{
	struct hostservice *service = job->service;

	if (job->state == HOSTJOB_STARTING)
		fail(job, "the daemon of the job ended at once");
	hostask_answer_waiting(service, job);
	for (size_t i = 0; i < service->jobs.cnt; i++) {
		if (service->jobs.data[i] == job) {
			service->jobs.data[i] = service->jobs.data[--service->jobs.cnt];
			break;
		}
	}
	job->closing = true;
	service->say_ns = 0;
	service->changed = true;
	job->relay = relay_close(job->relay);
	if (job->control.data != NULL)
		uv_close((uv_handle_t *)&job->control, control_closed);
	else
		free_job(job);
}

static int check_room(const struct hostservice *service, uid_t uid, struct err *err)
{
	const struct site_values *site = &service->setup.site->values;
	size_t own = 0;

	vec_foreach(job, &service->jobs)
		own += (*job)->uid == uid;
	if (service->jobs.cnt >= site->hostd_max_jobs)
		return err_set(err, EAGAIN,
			       "%u jobs are watched on this host, which is hostd.max_jobs",
			       site->hostd_max_jobs);
	if (own >= site->hostd_max_jobs_per_user)
		return err_set(err, EAGAIN,
			       "%zu jobs of user %u are watched on this host, which is "
			       "hostd.max_jobs_per_user",
			       own, (unsigned)uid);
	return 0;
}

/* NULL: too many jobs, or no memory. */
static struct hostjob *add_job(struct hostservice *service, const struct jobkey *key, uid_t uid,
			       struct err *err)
{
	struct hostjob *job;

	if (check_room(service, uid, err) < 0)
		return NULL;
	job = calloc(1, sizeof(*job));
	if (job == NULL || vec_push(&service->jobs, job) < 0) {
		free(job);
		(void)err_set(err, ENOMEM, "out of memory");
		return NULL;
	}
	job->service = service;
	job->uid = uid;
	job->key = *key;
	job->started_ns = clock_mono_ns();
	job->child = (struct jobchild){ .control_fd = -1, .relay_fd = -1 };
	(void)snprintf(job->name, sizeof(job->name), "%.60s", key->job);
	return job;
}

/* It was added last. */
static void undo_job(struct hostservice *service)
{
	free_job(service->jobs.data[--service->jobs.cnt]);
}

int hostjob_start(struct hostservice *service, const struct jobkey *key, const struct hostask *ask,
		  const struct joborigin *origin, struct hostjob **ret, struct err *err)
{
	struct hostjob *job = add_job(service, key, ask->uid, err);
	int r;

	if (job == NULL)
		return -EAGAIN;
	job->origin = *origin;
	r = set_places(job, ask->uid, err);
	if (r == 0)
		r = make_places(service, ask, err);
	if (r == 0)
		make_spool(job, ask);
	if (r == 0)
		r = start_child(job, ask, err);
	if (r < 0) {
		undo_job(service);
		return r;
	}
	*ret = job;
	return 0;
}

/* --- jobs of an earlier hostd --- */

/* Sends one end of a stream to the daemon, which asks nothing back. Returns 0 or -errno. */
static int send_stream(const struct hostjob *job, int stream)
{
	struct message message = { .magic = MESSAGE_MAGIC,
				   .version = MESSAGE_VERSION,
				   .type = MSG_RELAY };
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(sizeof(int))] = { 0 };
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control) };
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	struct cmsghdr *c = CMSG_FIRSTHDR(&header);
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0), ret = 0;

	(void)snprintf(message.text, sizeof(message.text), "%s", job->key.text);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%.107s", job->socket);
	c->cmsg_level = SOL_SOCKET;
	c->cmsg_type = SCM_RIGHTS;
	c->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(c), &stream, sizeof(stream));
	if (fd < 0 || connect(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    sendmsg(fd, &header, MSG_NOSIGNAL | MSG_DONTWAIT) != (ssize_t)sizeof(message))
		ret = -errno;
	if (fd >= 0)
		(void)close(fd);
	return ret;
}

static int reconnect(struct hostjob *job, struct err *err)
{
	int fds[2], ret;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, fds) != 0)
		return err_set(err, errno, "%s", strerror(errno));
	ret = send_stream(job, fds[1]);
	(void)close(fds[1]);
	if (ret == 0)
		return open_relay(job, fds[0], err);
	(void)close(fds[0]);
	return err_set(err, -ret, "%s: %s", job->socket, strerror(-ret));
}

void hostjob_adopt(struct hostservice *service, const struct jobkey *key, uid_t uid)
{
	struct err err = { "" };
	struct hostjob *job =
		hostjob_find(service, key) == NULL ? add_job(service, key, uid, &err) : NULL;

	if (job == NULL)
		return;
	if (set_places(job, uid, &err) < 0 || !rundir_is_served(job->socket)) {
		undo_job(service); /* it has ended meanwhile */
		return;
	}
	job->state = HOSTJOB_READY;
	if (reconnect(job, &err) < 0)
		log_line(LOG_WARNING, "event=job-alone job=\"%s\" why=\"%s\"", key->text, err.text);
	else
		log_line(LOG_INFO, "event=job-found job=\"%s\" why=\"an earlier hostd started it\"",
			 key->text);
}

/* --- two jobs with one key --- */

static bool is_alive(const struct hostjob_rank *known)
{
	struct procfs_stat stat;

	return procfs_read_stat("", known->pid, 0, &stat) == 0 && stat.start == known->start &&
	       stat.state != 'Z' && stat.state != 'X';
}

/* Of a rank: the process that has it. Without ranks: another script that still runs. */
static const struct hostjob_rank *find_rival(const struct hostjob *job, int rank, uint32_t pid,
					     const struct joborigin *origin,
					     struct hostjob_rank *script)
{
	vec_foreach(known, &job->ranks) {
		if (rank >= 0 && known->rank == rank && known->pid != pid && is_alive(known))
			return known;
	}
	*script = (struct hostjob_rank){ .pid = job->origin.pid, .start = job->origin.start };
	if (rank < 0 && origin->pid != 0 && job->origin.pid != 0 &&
	    origin->pid != job->origin.pid && is_alive(script))
		return script;
	return NULL;
}

static void note_rank(struct hostjob *job, int rank, uint32_t pid, const struct joborigin *origin)
{
	struct hostjob_rank fresh = { .rank = rank, .pid = pid };
	struct procfs_stat stat;

	if (procfs_read_stat("", pid, 0, &stat) == 0)
		fresh.start = stat.start;
	if (rank < 0)
		job->origin = *origin; /* of the latest script */
	vec_foreach(known, &job->ranks) {
		if (known->rank == rank) {
			*known = fresh;
			return;
		}
	}
	if (rank >= 0 && job->ranks.cnt < HOSTJOB_RANKS_MAX)
		(void)!vec_push(&job->ranks, fresh); /* no memory: a second one is not noticed */
}

bool hostjob_admit(struct hostjob *job, const struct hostask *ask, int rank,
		   const struct joborigin *origin, char *why, size_t size)
{
	struct hostjob_rank script;
	const struct hostjob_rank *rival = find_rival(job, rank, ask->pid, origin, &script);

	if (rival == NULL) {
		note_rank(job, rank, ask->pid, origin);
		return true;
	}
	(void)snprintf(why, size, "process %u has this place in job %s and still runs", rival->pid,
		       job->key.job);
	if (!job->twice_logged)
		log_line(LOG_WARNING,
			 "event=job-twice job=\"%s\" rank=%d pids=\"%u, %u\" effect=\"the second "
			 "process is not watched\" remedy=\"give each job a PERFTRACKER_JOB of its "
			 "own\"",
			 job->key.text, rank, rival->pid, ask->pid);
	job->twice_logged = true;
	return false;
}

/* --- all --- */

/* Messages of the job that did not pass, and why. */
static void note_lost(const struct hostjob *job)
{
	struct relay_stats stats;

	if (job->relay == NULL)
		return;
	stats = relay_stats(job->relay);
	if (stats.refused + stats.dropped > 0)
		log_line(LOG_WARNING,
			 "event=job-messages-lost job=\"%s\" refused=%" PRIu64 " dropped=%" PRIu64,
			 job->key.text, stats.refused, stats.dropped);
}

void hostjob_reap(struct hostservice *service)
{
	for (size_t i = 0; i < service->jobs.cnt;) {
		struct hostjob *job = service->jobs.data[i];
		int status;

		if (job->child.pid <= 0 || subprocess_reap(job->child.pid, &status) != 1) {
			i++;
			continue;
		}
		job->child.pid = 0;
		log_line(status == 0 ? LOG_INFO : LOG_WARNING,
			 "event=job-ended job=\"%s\" status=%d folder=\"%s\"", job->key.text,
			 WIFSIGNALED(status) ? 128 + WTERMSIG(status) : WEXITSTATUS(status),
			 job->out);
		note_lost(job);
		close_job(job);
	}
}

/* A daemon of an earlier hostd is no child: its socket says when it has ended. */
static bool has_left(struct hostjob *job, int64_t now_ns)
{
	if (job->state != HOSTJOB_READY || now_ns < job->look_ns)
		return false;
	job->look_ns = now_ns + LOOK_NS;
	return !rundir_is_served(job->socket);
}

void hostjob_tick(struct hostservice *service, int64_t now_ns)
{
	for (size_t i = 0; i < service->jobs.cnt;) {
		struct hostjob *job = service->jobs.data[i];

		if (job->state == HOSTJOB_STARTING && now_ns - job->started_ns > START_NS)
			fail(job, "the daemon of the job is not ready after 15 s");
		if (job->child.pid == 0 &&
		    (job->state == HOSTJOB_FAILED ? now_ns - job->started_ns > FORGET_NS
						  : has_left(job, now_ns)))
			close_job(job);
		else
			i++;
	}
}

void hostjob_ask_all_to_end(struct hostservice *service)
{
	vec_foreach(job, &service->jobs)
		jobchild_ask_end(&(*job)->child);
}

void hostjob_close_all(struct hostservice *service)
{
	while (service->jobs.cnt > 0) {
		struct hostjob *job = service->jobs.data[0];

		jobchild_kill(&job->child);
		close_job(job);
	}
	vec_done(&service->jobs);
}
