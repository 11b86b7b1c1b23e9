/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/daemon.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "live/cluster/subject.h"
#include "live/fleet/relay.h"
#include "live/hostd/hostd.h"
#include "live/hub/hub.h"
#include "live/link/wire.h"
#include "live/metrics/scrape.h"
#include "live/run/fleetend.h"
#include "live/run/hosts.h"
#include "live/run/rundir.h"
#include "live/ui/uijob.h"
#include "live/ui/uiserver.h"
#include "store/store.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#define TICK_MS 100

/* The time to finish a profile under way after the job's end. */
#define LAST_PROFILE_NS (90 * NSEC_PER_SEC)

struct daemon {
	const struct run_options *options;
	int control_fd;
	uv_loop_t loop;
	uv_async_t wake; /* the bus has something to deliver */
	uv_timer_t tick;
	uv_poll_t control;
	struct bus *bus;
	struct hostd *hostd;
	struct hub *hub;
	struct keeper *keeper;	      /* NULL: nothing is kept */
	struct uijob *ui;	      /* NULL: no page */
	struct webhook *webhook;      /* NULL: reports are not sent */
	struct hosts *hosts;	      /* NULL: no other members of the job */
	struct metrics_host *metrics; /* NULL: /metrics is off */
	struct metrics_page *page;
	struct relay *relay; /* of a fleet's member, to hostd; else NULL */
	struct bus *relayed; /* what it passes; owned by hosts */
	struct fleetend fleetend;
	bool job_ended;
	struct job_end end;
	int64_t ended_ns;
};

static void wake_loop(void *arg)
{
	struct daemon *daemon = arg;

	(void)uv_async_send(&daemon->wake);
}

static void close_all(struct daemon *daemon)
{
	hostd_close(daemon->hostd);
	daemon->hostd = NULL;
	daemon->relay = relay_close(daemon->relay);
	uv_close((uv_handle_t *)&daemon->tick, NULL);
	uv_close((uv_handle_t *)&daemon->control, NULL);
	uv_close((uv_handle_t *)&daemon->wake, NULL);
}

static void run_bus(uv_async_t *wake)
{
	struct daemon *daemon = wake->data;

	(void)bus_run(daemon->bus, clock_mono_ns());
	hosts_run(daemon->hosts, clock_mono_ns());
}

static void end_when_done(struct daemon *daemon, int64_t now_ns)
{
	/* Waits for another tick: the workers' last messages are on the bus. */
	if (now_ns - daemon->ended_ns < 2 * TICK_MS * NSEC_PER_MSEC)
		return;
	/* The other hosts keep their results until these are reported, and end then. */
	if (hosts_may_finish(daemon->hosts, false, now_ns))
		hub_recover_all(daemon->hub);
	if (!hub_idle(daemon->hub) && now_ns - daemon->ended_ns < LAST_PROFILE_NS)
		return;
	if (!hosts_may_finish(daemon->hosts, hostd_is_idle(daemon->hostd), now_ns))
		return;
	hub_finish(daemon->hub, &daemon->end);
	hosts_finish(daemon->hosts);
	/* Delivers the replies to clients that still wait for a profile. */
	(void)bus_run(daemon->bus, now_ns);
	close_all(daemon);
}

static void job_ends(struct daemon *daemon, int status, int signal)
{
	daemon->job_ended = true;
	daemon->ended_ns = clock_mono_ns();
	daemon->end.exit_status = status;
	daemon->end.signal = signal;
	hosts_job_ended(daemon->hosts, &daemon->end, daemon->ended_ns);
	(void)uv_poll_stop(&daemon->control);
}

/* In a fleet no supervisor reports the end of the job. */
static void mind_fleet(struct daemon *daemon, int64_t now_ns)
{
	struct leader_ends hosts;

	if (daemon->options->fleet->role == FLEET_MEMBER) {
		if (fleetend_of_host(&daemon->fleetend, hostd_workers(daemon->hostd), now_ns))
			job_ends(daemon, fleetend_status(&daemon->fleetend), 0);
		return;
	}
	hosts = hosts_ends(daemon->hosts);
	if (fleetend_of_hosts(&daemon->fleetend, &hosts, now_ns))
		job_ends(daemon, hub_ended_well(daemon->hub) ? 0 : hosts.exit_status, 0);
}

static void on_tick(uv_timer_t *tick)
{
	struct daemon *daemon = tick->data;
	int64_t now_ns = clock_mono_ns();

	(void)bus_run(daemon->bus, now_ns);
	hosts_tick(daemon->hosts, now_ns);
	hub_tick(daemon->hub, now_ns);
	metrics_page_tick(daemon->page, now_ns);
	if (daemon->options->fleet != NULL && !daemon->job_ended)
		mind_fleet(daemon, now_ns);
	if (daemon->job_ended)
		end_when_done(daemon, now_ns);
}

/* Only the first signal counts: people press Ctrl-C again when a job ends slowly. */
static void asked_to_end(struct daemon *daemon, int signal)
{
	if (daemon->end.asked_signal != 0)
		return;
	if (daemon->options->fleet != NULL) {
		/* hostd ends, the job does not: how it goes on is not known. */
		job_ends(daemon, -1, 0);
		return;
	}
	daemon->end.asked_signal = signal;
	daemon->end.asked_ns = clock_mono_ns();
	hub_expect_end(daemon->hub);
}

/*
 * The process that started this one has ended. A job of a fleet goes on: its member watches its
 * workers until they end, and another hub starts another leader.
 */
static void lose_supervisor(struct daemon *daemon)
{
	const struct fleet_job *fleet = daemon->options->fleet;

	if (fleet == NULL) {
		job_ends(daemon, -1, 0);
		return;
	}
	(void)uv_poll_stop(&daemon->control);
	log_line(LOG_WARNING, "event=supervisor-ended effect=\"%s\"",
		 fleet->role == FLEET_LEADER ? "the next hub goes on with this job"
					     : "this host is watched alone until hostd is back");
	if (fleet->role == FLEET_MEMBER)
		return;
	close_all(daemon);
}

static void on_control(uv_poll_t *poll, int status, int events)
{
	struct daemon *daemon = poll->data;
	struct daemon_news news;
	ssize_t len = recv(daemon->control_fd, &news, sizeof(news), MSG_DONTWAIT);

	(void)status;
	(void)events;
	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return;
	if (len != (ssize_t)sizeof(news))
		lose_supervisor(daemon);
	else if (news.exit_status >= 0)
		job_ends(daemon, news.exit_status, news.signal);
	else if (news.signal != 0)
		asked_to_end(daemon, news.signal);
	else
		hostd_set_job(daemon->hostd, (uint32_t)news.pid);
}

static int make_dirs(const struct run_options *options, struct daemon_ready *ready, struct err *err)
{
	char path[4200];
	int ret;

	if ((size_t)snprintf(ready->trace_dir, sizeof(ready->trace_dir), "%s/traces",
			     options->out_dir) >= sizeof(ready->trace_dir) - 64)
		return err_set(err, ENAMETOOLONG, "%s: path too long", options->out_dir);
	(void)snprintf(path, sizeof(path), "%s/fingerprints", options->out_dir);
	ret = rundir_make(options->out_dir, 0755, err);
	if (ret == 0)
		ret = rundir_make(ready->trace_dir, 0700, err);
	if (ret == 0)
		ret = rundir_make(path, 0755, err);
	if (ret == 0 && options->fleet != NULL)
		(void)snprintf(ready->socket, sizeof(ready->socket), "%s", options->fleet->socket);
	else if (ret == 0 && options->restarts > 0)
		(void)snprintf(ready->socket, sizeof(ready->socket), "%s", options->socket);
	else if (ret == 0)
		ret = rundir_socket(ready->socket, sizeof(ready->socket), err);
	return ret;
}

/* An error is logged; the job is watched without /metrics. With a page they are there, too. */
static void open_metrics(struct daemon *daemon)
{
	const struct run_options *options = daemon->options;
	bool with_page = uiserver_is_wanted(&options->ui) && options->fleet == NULL &&
			 options->member.index == 0;
	struct err err = { "out of memory" };

	if (options->metrics.host[0] == '\0' && !with_page)
		return;
	daemon->metrics = metrics_host_new(options);
	if (daemon->metrics != NULL && options->metrics.host[0] == '\0')
		return;
	if (daemon->metrics != NULL &&
	    metrics_page_open(daemon->metrics, options, &daemon->page, &err) == 0) {
		log_line(LOG_INFO, "event=metrics url=http://%s/metrics",
			 metrics_page_borrow_address(daemon->page));
		return;
	}
	if (!with_page)
		daemon->metrics = metrics_host_free(daemon->metrics);
	log_line(LOG_WARNING, "event=metrics-off why=\"%s\"", err.text);
}

/* An error is logged; this host is watched alone. */
static void open_hosts(struct daemon *daemon, const struct daemon_ready *ready)
{
	struct err err = { "" };
	char dir[sizeof(ready->socket) + 8];

	(void)snprintf(dir, sizeof(dir), "%s.hub", ready->socket);
	if (rundir_private(dir, &err) < 0 ||
	    hosts_open(daemon->options, daemon->bus, daemon->hub, dir, wake_loop, daemon,
		       &daemon->hosts, &err) < 0)
		log_line(LOG_WARNING,
			 "event=no-hub members=%u why=\"%s\" effect=\"this host is watched alone\"",
			 daemon->options->member.members, err.text);
}

/* fd: owned. Returns 0 or -errno. */
static int open_relay(struct daemon *daemon, int fd)
{
	const struct fleet_job *fleet = daemon->options->fleet;
	char up[BUS_SUBJECT_MAX], down[BUS_SUBJECT_MAX], to[BUS_SUBJECT_MAX];
	const struct relay_setup setup = { .loop = &daemon->loop,
					   .bus = daemon->relayed,
					   .fd = fd,
					   .takes = { down, to },
					   .passes = { up } };

	subject_write(up, fleet->key, "up", fleet->host);
	subject_write(down, fleet->key, "down", NULL);
	subject_write(to, fleet->key, "to", fleet->host);
	return relay_open(&setup, &daemon->relay);
}

/* The bus of a member ends at hostd; the leader has a connection of its own. */
static int open_net(struct daemon *daemon, struct bus **ret, struct err *err)
{
	const struct fleet_job *fleet = daemon->options->fleet;
	int r;

	if (fleet->role == FLEET_LEADER)
		return bus_connect(fleet->login, wake_loop, daemon, ret, err);
	r = bus_open("inproc:", wake_loop, daemon, &daemon->relayed);
	if (r == 0)
		r = open_relay(daemon, fleet->relay_fd);
	if (r < 0)
		return err_set(err, -r, "no way to hostd: %s", strerror(-r));
	*ret = daemon->relayed;
	return 0;
}

/* hostd was started again, and has another stream. */
static void take_relay(void *arg, int fd)
{
	struct daemon *daemon = arg;
	int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);

	daemon->relay = relay_close(daemon->relay);
	if (own >= 0 && open_relay(daemon, own) == 0)
		log_line(LOG_INFO, "event=hostd-back");
}

static int open_fleet(struct daemon *daemon, struct err *err)
{
	struct bus *net;
	int ret = open_net(daemon, &net, err);

	fleetend_init(&daemon->fleetend, daemon->options->fleet->linger_ns);
	if (ret == 0)
		ret = hosts_open_fleet(daemon->options, daemon->bus, net, daemon->hub,
				       &daemon->hosts, err);
	if (ret == 0)
		ret = bus_sub(daemon->bus, SUBJECT_STATE, fleetend_take_state, &daemon->fleetend,
			      NULL);
	return ret == -ENOMEM ? err_set(err, ENOMEM, "out of memory") : ret;
}

/* An error is logged; the job is watched without the store. */
static void open_keeper(struct daemon *daemon)
{
	const struct run_options *options = daemon->options;
	struct err err = { "" };
	char where[4200];
	struct keeper_setup setup = { .where = where,
				      .name = options->job_name,
				      .folder = options->out_dir,
				      .command = options->command,
				      .remote = options->fleet != NULL };

	store_place(options->store, where, sizeof(where));
	if (where[0] == '\0')
		return;
	if (keeper_open(&setup, &daemon->keeper, &err) < 0)
		log_line(LOG_WARNING, "event=store-off why=\"%s\"", err.text);
	keeper_remember(daemon->keeper);
	hub_keep(daemon->hub, daemon->keeper);
}

/* An error is logged; the reports of the job are not sent. */
static void open_webhook(struct daemon *daemon)
{
	const struct run_options *options = daemon->options;
	const struct webhook_setup setup = { .file = options->webhook,
					     .job = options->job_name,
					     .key = keeper_borrow_key(daemon->keeper),
					     .folder = options->out_dir };
	struct err err = { "" };

	if (options->webhook == NULL)
		return;
	if (webhook_open(&setup, &daemon->webhook, &err) < 0)
		log_line(LOG_WARNING, "event=webhook-off why=\"%s\"", err.text);
	hub_call(daemon->hub, daemon->webhook);
}

/* The page of a fleet is the hub's; it reads what its leaders say in files beside their sockets. */
static void write_live(void *arg, const struct str *live)
{
	const struct fleet_job *fleet = arg;
	char path[160];

	(void)snprintf(path, sizeof(path), "%s" FLEET_LIVE_END, fleet->socket);
	(void)!file_replace(path, str_borrow(live), live->len, 0600);
}

static void remove_live(const struct fleet_job *fleet)
{
	char path[160];

	if (fleet == NULL || !fleet->shown)
		return;
	(void)snprintf(path, sizeof(path), "%s" FLEET_LIVE_END, fleet->socket);
	(void)unlink(path);
}

/* Of several members the first one has the page: its hub decides. */
static void open_page(struct daemon *daemon, const struct daemon_ready *ready)
{
	const struct run_options *options = daemon->options;
	const struct hub_show show = { .say = write_live,
				       .arg = (void *)(uintptr_t)options->fleet };

	if (options->fleet != NULL && options->fleet->shown)
		hub_show(daemon->hub, &show);
	if (!uiserver_is_wanted(&options->ui) || options->fleet != NULL)
		return;
	if (options->member.index > 0) {
		log_line(LOG_INFO,
			 "event=page-off why=\"the page is on the first host of the job\"");
		return;
	}
	daemon->ui =
		uijob_open(options, ready->socket, daemon->keeper, daemon->hub,
			   daemon->metrics != NULL ? metrics_host_borrow(daemon->metrics) : NULL);
	if (daemon->keeper == NULL)
		hub_keep(daemon->hub, uijob_keeper(daemon->ui));
}

static int open_parts(struct daemon *daemon, const struct daemon_ready *ready, struct err *err)
{
	struct hostd_setup setup = { .loop = &daemon->loop,
				     .options = daemon->options,
				     .socket_path = ready->socket,
				     .trace_dir = ready->trace_dir };
	int ret = bus_open("inproc:", wake_loop, daemon, &daemon->bus);

	if (ret == 0)
		ret = hub_open(daemon->bus, daemon->options, &daemon->hub);
	if (ret < 0)
		return err_set(err, -ret, "out of memory");
	if (daemon->options->fleet != NULL)
		ret = open_fleet(daemon, err);
	else if (daemon->options->member.members != 1)
		open_hosts(daemon, ready);
	if (ret < 0)
		return ret;
	open_keeper(daemon);
	open_webhook(daemon);
	open_metrics(daemon);
	open_page(daemon, ready);
	if (daemon->relayed != NULL) {
		setup.take_relay = take_relay;
		setup.relay_arg = daemon;
	}
	setup.metrics = daemon->metrics;
	setup.bus = daemon->bus;
	return hostd_open(&setup, &daemon->hostd, err);
}

static void start_handles(struct daemon *daemon)
{
	(void)uv_timer_init(&daemon->loop, &daemon->tick);
	(void)uv_poll_init(&daemon->loop, &daemon->control, daemon->control_fd);
	daemon->tick.data = daemon->control.data = daemon;
	(void)uv_timer_start(&daemon->tick, on_tick, TICK_MS, TICK_MS);
	(void)uv_poll_start(&daemon->control, UV_READABLE | UV_DISCONNECT, on_control);
}

/* The terminal's signals are meant for the job; the daemon ends after it. */
static void ignore_signals(void)
{
	static const int ignored[] = { SIGINT,	SIGTERM, SIGHUP,  SIGQUIT,
				       SIGUSR1, SIGUSR2, SIGPIPE, SIGTTOU };

	for (size_t i = 0; i < ARRAY_SIZE(ignored); i++)
		(void)signal(ignored[i], SIG_IGN);
}

int daemon_run(const struct run_options *options, int control_fd)
{
	struct daemon daemon = { .options = options, .control_fd = control_fd };
	struct daemon_ready ready = { 0 };
	struct err err = { "" };
	int ret;

	ignore_signals();
	(void)uv_loop_init(&daemon.loop);
	(void)uv_async_init(&daemon.loop, &daemon.wake, run_bus);
	daemon.wake.data = &daemon;
	ret = make_dirs(options, &ready, &err);
	if (ret == 0)
		ret = open_parts(&daemon, &ready, &err);
	if (ret == 0)
		rundir_link(options->out_dir, ready.socket);
	ready.status = -ret;
	(void)snprintf(ready.text, sizeof(ready.text), "%.500s", err.text);
	if (send(control_fd, &ready, sizeof(ready), MSG_NOSIGNAL) != (ssize_t)sizeof(ready) ||
	    ret < 0)
		return 1; /* the process ends, so nothing is freed */
	start_handles(&daemon);
	(void)uv_run(&daemon.loop, UV_RUN_DEFAULT);
	rundir_unlink(options->out_dir, ready.socket);
	daemon.hosts = hosts_close(daemon.hosts);
	daemon.page = metrics_page_close(daemon.page);
	daemon.hub = hub_close(daemon.hub);
	daemon.keeper = keeper_close(daemon.keeper);
	daemon.webhook = webhook_close(daemon.webhook);
	daemon.ui = uijob_close(daemon.ui);
	daemon.metrics = metrics_host_free(daemon.metrics); /* which the page reads */
	remove_live(options->fleet);
	daemon.bus = bus_close(daemon.bus);
	fleetend_done(&daemon.fleetend);
	(void)uv_loop_close(&daemon.loop);
	return 0;
}
