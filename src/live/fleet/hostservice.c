/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/hostservice.h"

#include "base/clock.h"
#include "base/log.h"
#include "live/cluster/cluster.pb-c.h"
#include "live/cluster/subject.h"
#include "live/fleet/hostservice_parts.h"
#include "live/fleet/hoststate.h"
#include "live/run/attach.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SAY_NS (5 * NSEC_PER_SEC)
#define END_NS (10 * NSEC_PER_SEC) /* for the daemons to end */
#define BACKLOG 1024

/* --- the bus --- */

static void publish(struct hostservice *h, Cluster__Presence *presence)
{
	size_t len = cluster__presence__get_packed_size(presence);
	_cleanup_free_ uint8_t *bytes = malloc(len + 1);

	if (bytes == NULL)
		return; /* it is said again */
	(void)cluster__presence__pack(presence, bytes);
	(void)bus_pub(h->service.bus, h->subject, bytes, len);
}

/* Which jobs are here; the hub starts a leader for each. */
static void say_presence(struct hostservice *h)
{
	const struct site_values *site = &h->setup.site->values;
	size_t cnt = MIN(h->jobs.cnt, (size_t)SERVICE_JOBS_MAX), said = 0;
	_cleanup_free_ Cluster__FleetJob *jobs = calloc(cnt + 1, sizeof(*jobs));
	_cleanup_free_ Cluster__FleetJob **pointers = calloc(cnt + 1, sizeof(*pointers));
	Cluster__Presence presence;

	if (jobs == NULL || pointers == NULL)
		return;
	cluster__presence__init(&presence);
	presence.version = SERVICE_VERSION;
	presence.host = site->host;
	presence.cluster = site->cluster;
	presence.boot = h->boot;
	presence.program = (char *)(uintptr_t)PT_VERSION;
	for (size_t i = 0; i < cnt; i++) {
		struct hostjob *job = h->jobs.data[i];

		if (job->state != HOSTJOB_READY || job->relay == NULL)
			continue;
		cluster__fleet_job__init(&jobs[said]);
		jobs[said].key = job->key.text;
		pointers[said] = &jobs[said];
		said++;
	}
	presence.jobs = pointers;
	presence.n_jobs = said;
	publish(h, &presence);
}

/* --- the loop --- */

static void close_everything(struct hostservice *h)
{
	hostask_close_all(h);
	hostjob_close_all(h);
	say_presence(h); /* without jobs */
	uv_close((uv_handle_t *)&h->listener, NULL);
	service_stop(&h->service);
}

static void on_tick(void *arg, int64_t now_ns)
{
	struct hostservice *h = arg;

	hostask_tick(h, now_ns);
	hostjob_tick(h, now_ns);
	if (h->changed) {
		h->changed = false;
		hoststate_save(h);
	}
	if (now_ns >= h->say_ns) {
		h->say_ns = now_ns + SAY_NS;
		say_presence(h);
	}
	if (h->end_ns != 0 && (h->jobs.cnt == 0 || now_ns > h->end_ns))
		close_everything(h);
}

static void on_children(void *arg)
{
	hostjob_reap(arg);
}

static void on_end(void *arg)
{
	struct hostservice *h = arg;

	if (h->end_ns != 0)
		return;
	h->end_ns = clock_mono_ns() + END_NS;
	log_line(
		LOG_INFO,
		"event=hostd-ends jobs=%zu effect=\"training goes on, and is not watched any more\"",
		h->jobs.cnt);
	hostjob_ask_all_to_end(h);
}

/* --- begin --- */

/* The folder of the socket, in which each user gets one, too. */
static int open_run_dir(struct hostservice *h, struct err *err)
{
	const char *path = h->setup.site->values.hostd_socket;
	const char *slash = strrchr(path, '/');
	struct stat st;

	(void)snprintf(h->run_dir, sizeof(h->run_dir), "%.*s", (int)MAX((ptrdiff_t)1, slash - path),
		       path);
	if (strlen(path) > 80)
		return err_set(err, ENAMETOOLONG,
			       "%s: hostd.socket: expected a path of at most 80 bytes, found %zu",
			       path, strlen(path));
	if (mkdir(h->run_dir, 0755) != 0 && errno != EEXIST)
		return err_set(err, errno,
			       "%s: expected a folder for hostd.socket: %s; make it, or name "
			       "another socket",
			       h->run_dir, strerror(errno));
	if (stat(h->run_dir, &st) != 0 || !S_ISDIR(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & 022) != 0)
		return err_set(err, EPERM,
			       "%s: expected a folder of hostd's own user, which others cannot "
			       "write to",
			       h->run_dir);
	return 0;
}

static int open_socket(struct hostservice *h, struct err *err)
{
	const char *path = h->setup.site->values.hostd_socket;
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	mode_t mode = geteuid() == 0 ? 0666 : 0600;
	int fd, ret = 0;

	if (rundir_is_served(path))
		return err_set(err, EADDRINUSE,
			       "%s: another hostd of this host listens there: end it first", path);
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	(void)unlink(path);
	if (fd < 0 || bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0 ||
	    chmod(path, mode) != 0 || listen(fd, BACKLOG) != 0) {
		ret = err_set(err, errno, "%s: cannot listen: %s", path, strerror(errno));
		if (fd >= 0)
			(void)close(fd);
		return ret;
	}
	h->listen_fd = fd;
	return 0;
}

static int open_all(struct hostservice *h, struct err *err)
{
	static const struct service_calls calls = { on_tick, on_children, on_end };
	struct site *site = h->setup.site;
	char package[PATH_MAX];
	int ret = attach_find(h->setup.program, h->agent, package, err);

	if (ret == 0)
		ret = site_login(site, &h->login, err);
	if (ret == 0)
		ret = rundir_make(site->values.hostd_folder, 0755, err);
	if (ret == 0)
		ret = open_run_dir(h, err);
	if (ret == 0)
		ret = open_socket(h, err);
	if (ret == 0)
		ret = service_open(&h->service, &h->login, &calls, h, err);
	return ret;
}

int hostservice_run(const struct hostservice_setup *setup)
{
	struct hostservice h = { .setup = *setup, .listen_fd = -1 };
	const struct site_values *site = &setup->site->values;
	struct err err = { "" };
	uint64_t lost;

	h.boot = (uint64_t)clock_wall_ns();
	if (open_all(&h, &err) < 0) {
		log_line(LOG_ERROR, "event=hostd-not-started why=\"%s\"", err.text);
		return 1; /* the process ends, so nothing is freed */
	}
	subject_write(h.subject, SERVICE_SUBJECT, "up", site->host);
	h.listener.data = &h;
	(void)uv_poll_init(&h.service.loop, &h.listener, h.listen_fd);
	(void)uv_poll_start(&h.listener, UV_READABLE, hostask_accept);
	log_line(LOG_INFO,
		 "event=hostd cluster=\"%s\" host=\"%s\" socket=\"%s\" bus=\"%s\" enable=%s",
		 site->cluster, site->host, site->hostd_socket, site->bus_url,
		 site->jobs_enable == SITE_ENABLE_ALL ? "all" : "environment");
	if (site->bus_insecure)
		log_line(LOG_WARNING,
			 "event=insecure effect=\"hosts talk without encryption: "
			 "everybody on the network can read and forge what they say\"");
	if (site->orders_key[0] == '\0')
		log_line(LOG_INFO,
			 "event=orders-unsigned effect=\"the broker's permissions alone keep other "
			 "hosts from ordering windows here\" remedy=\"orders.key: docs/fleet.md\"");
	hoststate_load(&h);
	service_run(&h.service);
	(void)unlink(site->hostd_socket);
	(void)close(h.listen_fd);
	lost = service_close(&h.service);
	log_line(LOG_INFO,
		 "event=hostd-ended attached=%" PRIu64 " refused=%" PRIu64
		 " messages_dropped=%" PRIu64,
		 h.attached, h.refused, lost);
	return 0;
}
