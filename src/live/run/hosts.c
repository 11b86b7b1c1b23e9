/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/hosts.h"

#include "base/clock.h"
#include "base/file.h"
#include "base/log.h"
#include "live/link/broker.h"
#include "live/link/jobcert.h"
#include "live/spool/spool.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <ifaddrs.h>
#include <inttypes.h>
#include <limits.h>
#include <netdb.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

#define OTHERS_END_NS (15 * NSEC_PER_SEC) /* members end one after the other */
#define DELIVER_NS (30 * NSEC_PER_SEC)	  /* the last results of a follower */
#define UNREACHED_NS (20 * NSEC_PER_SEC)  /* then a line says that the hub is not reached */
#define REVIVE_NS (10 * NSEC_PER_SEC)	  /* between two starts of a broker that ends */
#define OFFLINE_NS (5 * NSEC_PER_SEC)	  /* at the end a member waits no longer for a broker */
#define AGAIN_NS (2 * NSEC_PER_SEC)	  /* the port of a broker that is ending */
#define AGAIN_LOOK_MS 100
#define SPOOL_BYTES (128u << 20)
#define NET_SLICE 128u /* messages of hosts */
#define NET_SLICES 64u /* then the loop does something else */
#define SECRET_MAX 256u
#define ORDER_EXPIRES_NS (3600 * NSEC_PER_SEC) /* clocks of a site differ by minutes */

struct hosts {
	const struct run_options *options;
	struct hub *hub;
	struct bus *local, *net;
	struct seal *seal; /* of the job's secret */
	struct broker broker;
	int64_t broker_ns;     /* when it was started last */
	struct leader *leader; /* one of these two */
	struct follower *follower;
	char dir[160], certificate[176], key[176]; /* removed at the end */
	char spool[PATH_MAX + 8];		   /* of a follower; removed if it is empty */
	char url[300], secret[SECRET_MAX], password[65], hub_password[40], host[64], id[80];
	int64_t opened_ns, online_ns,
		ended_ns; /* online: the broker answered last; ended: 0: not */
	bool told_unreached;
};

/* --- who leads --- */

static bool same_address(const struct sockaddr *a, const struct sockaddr *b)
{
	if (a == NULL || b == NULL || a->sa_family != b->sa_family)
		return false;
	if (a->sa_family == AF_INET)
		return ((const struct sockaddr_in *)a)->sin_addr.s_addr ==
		       ((const struct sockaddr_in *)b)->sin_addr.s_addr;
	return a->sa_family == AF_INET6 &&
	       memcmp(&((const struct sockaddr_in6 *)a)->sin6_addr,
		      &((const struct sockaddr_in6 *)b)->sin6_addr, sizeof(struct in6_addr)) == 0;
}

static bool is_of_this_host(const struct addrinfo *found)
{
	struct ifaddrs *own = NULL;
	bool ret = false;

	if (getifaddrs(&own) != 0)
		return false;
	for (const struct addrinfo *a = found; a != NULL; a = a->ai_next) {
		for (const struct ifaddrs *i = own; i != NULL && !ret; i = i->ifa_next)
			ret = same_address(a->ai_addr, i->ifa_addr);
	}
	freeifaddrs(own);
	return ret;
}

/* A rendezvous without numbers: the member on the host of its address is the first. */
static bool has_address(const char *address)
{
	const struct addrinfo hints = { .ai_socktype = SOCK_STREAM };
	struct addrinfo *found = NULL;
	bool ret;

	if (address[0] == '\0' || getaddrinfo(address, NULL, &hints, &found) != 0)
		return false;
	ret = is_of_this_host(found);
	freeaddrinfo(found);
	return ret;
}

static bool leads(const struct member *member)
{
	return member->index == 0 || (member->index < 0 && has_address(member->address));
}

/* --- the secret --- */

static int find_secret(struct hosts *hosts, struct err *err)
{
	const char *text = getenv("PERFTRACKER_SECRET"), *path = hosts->options->secret_file;
	int ret = 0;

	if (hosts->options->insecure)
		log_line(LOG_WARNING,
			 "event=insecure effect=\"hosts talk without encryption: everybody "
			 "on the network can read and forge what they say\"");
	if (path != NULL) {
		ret = file_read_line(path, "a secret", hosts->secret, sizeof(hosts->secret), err);
	} else if (text != NULL && text[0] != '\0') {
		(void)snprintf(hosts->secret, sizeof(hosts->secret), "%s", text);
	} else {
		(void)snprintf(hosts->secret, sizeof(hosts->secret), "%s",
			       hosts->options->member.job);
		log_line(
			LOG_WARNING,
			"event=weak-secret effect=\"any process that knows the job's id can join\" "
			"remedy=\"give all hosts the same PERFTRACKER_SECRET or --secret-file\"");
	}
	if (ret == 0)
		ret = jobcert_password(hosts->secret, "perftracker hosts", hosts->password, err);
	if (ret == 0)
		ret = seal_of_secret(hosts->secret, &hosts->seal, err);
	return ret;
}

/* The certificate of the job, and for the broker its key. */
static int make_certificate(struct hosts *hosts, bool key_too, struct err *err)
{
	(void)snprintf(hosts->certificate, sizeof(hosts->certificate), "%s/job.crt", hosts->dir);
	(void)snprintf(hosts->key, sizeof(hosts->key), "%s/job.key", hosts->dir);
	return jobcert_write(hosts->secret, hosts->certificate, key_too ? hosts->key : NULL, err);
}

/* --- begin --- */

static const char *scheme(const struct hosts *hosts)
{
	return hosts->options->insecure ? "nats://" : "tls://";
}

static int connect_bus(struct hosts *hosts, const char *user, const char *password,
		       void (*wake)(void *arg), void *wake_arg, struct err *err)
{
	const struct bus_login login = { .url = hosts->url,
					 .user = user,
					 .password = password,
					 .ca_file = hosts->certificate,
					 .broker_name = JOBCERT_NAME,
					 .insecure = hosts->options->insecure };

	return bus_connect(&login, wake, wake_arg, &hosts->net, err);
}

static struct cluster_setup setup_of(const struct hosts *hosts, struct bus *local)
{
	const struct member *member = &hosts->options->member;

	return (struct cluster_setup){ .local = local,
				       .net = hosts->net,
				       .job = member->job,
				       .id = hosts->id,
				       .host = hosts->host,
				       .out_dir = hosts->options->out_dir,
				       .seal = hosts->seal,
				       .epoch = hub_epoch(hosts->hub),
				       .spool_dir = hosts->spool[0] != '\0' ? hosts->spool : NULL,
				       .spool_bytes = SPOOL_BYTES,
				       .again = hosts->options->restarts > 0,
				       .node_rank = (uint32_t)MAX(member->index, 0),
				       .members = member->index < 0 ? 0 : member->members };
}

static int start_broker(struct hosts *hosts, struct err *err)
{
	struct broker_setup setup = { .dir = hosts->dir,
				      .address = "0.0.0.0",
				      .port = hosts->options->member.port,
				      .hub_password = hosts->hub_password,
				      .host_password = hosts->password };

	if (!hosts->options->insecure) {
		setup.certificate_file = hosts->certificate;
		setup.key_file = hosts->key;
	}
	hosts->broker_ns = clock_mono_ns();
	return broker_start(&setup, &hosts->broker, err);
}

static int lead(struct hosts *hosts, struct bus *local, void (*wake)(void *arg), void *wake_arg,
		struct err *err)
{
	const struct member *member = &hosts->options->member;
	struct cluster_setup setup;
	uint64_t random[2] = { 0 };
	int ret;

	if (getrandom(random, sizeof(random), 0) != (ssize_t)sizeof(random))
		return err_set(err, errno, "random numbers: %s", strerror(errno));
	(void)snprintf(hosts->hub_password, sizeof(hosts->hub_password),
		       "%016" PRIx64 "%016" PRIx64, random[0], random[1]);
	(void)snprintf(hosts->url, sizeof(hosts->url), "%s127.0.0.1:%u", scheme(hosts),
		       member->port);
	ret = make_certificate(hosts, true, err);
	if (ret == 0)
		ret = start_broker(hosts, err);
	if (ret == 0)
		ret = connect_bus(hosts, BROKER_HUB, hosts->hub_password, wake, wake_arg, err);
	if (ret < 0)
		return ret;
	setup = setup_of(hosts, local);
	if (leader_open(&setup, &hosts->leader) < 0)
		return err_set(err, ENOMEM, "out of memory");
	log_line(LOG_INFO, "event=hub members=%u job=\"%s\" listens=\"%s:%u\" launcher=\"%s\"",
		 member->members, member->job, member->address, member->port, member->launcher);
	return 0;
}

static int follow(struct hosts *hosts, struct bus *local, void (*wake)(void *arg), void *wake_arg,
		  struct err *err)
{
	const struct member *member = &hosts->options->member;
	bool is_v6 = strchr(member->address, ':') != NULL;
	struct cluster_setup setup;
	int ret;

	if (member->address[0] == '\0')
		return err_set(err, EDESTADDRREQ,
			       "the address of the first of %u hosts is not known: --hub HOST:PORT",
			       member->members);
	(void)snprintf(hosts->url, sizeof(hosts->url), is_v6 ? "%s[%s]:%u" : "%s%s:%u",
		       scheme(hosts), member->address, member->port);
	ret = make_certificate(hosts, false, err);
	if (ret == 0)
		ret = connect_bus(hosts, BROKER_HOST, hosts->password, wake, wake_arg, err);
	if (ret < 0)
		return ret;
	(void)snprintf(hosts->spool, sizeof(hosts->spool), "%s/spool", hosts->options->out_dir);
	setup = setup_of(hosts, local);
	if (follower_open(&setup, &hosts->follower) < 0)
		return err_set(err, ENOMEM, "out of memory");
	log_line(LOG_INFO, "event=member index=%d members=%u job=\"%s\" hub=\"%s\" launcher=\"%s\"",
		 member->index, member->members, member->job, hosts->url, member->launcher);
	return 0;
}

/* A second first member, as with a rendezvous without numbers on one host, follows. */
static int join(struct hosts *hosts, struct bus *local, void (*wake)(void *arg), void *wake_arg,
		struct err *err)
{
	int64_t until_ns = clock_mono_ns() + (hosts->options->restarts > 0 ? AGAIN_NS : 0);
	bool first = leads(&hosts->options->member);
	int ret = first ? lead(hosts, local, wake, wake_arg, err) : -EADDRINUSE;

	/* The broker of a daemon that was killed ends with it, in a moment. */
	while (first && ret == -EADDRINUSE && clock_mono_ns() < until_ns) {
		(void)poll(NULL, 0, AGAIN_LOOK_MS);
		ret = lead(hosts, local, wake, wake_arg, err);
	}
	if (ret == -EADDRINUSE)
		ret = follow(hosts, local, wake, wake_arg, err);
	return ret;
}

int hosts_open(const struct run_options *options, struct bus *local, struct hub *hub,
	       const char *dir, void (*wake)(void *arg), void *wake_arg, struct hosts **ret,
	       struct err *err)
{
	struct hosts *hosts;
	int r;

	*ret = NULL;
	if (options->member.members == 1)
		return 0;
	hosts = calloc(1, sizeof(*hosts));
	if (hosts == NULL)
		return err_set(err, ENOMEM, "out of memory");
	hosts->options = options;
	hosts->hub = hub;
	hosts->local = local;
	hosts->opened_ns = clock_mono_ns();
	(void)snprintf(hosts->dir, sizeof(hosts->dir), "%s", dir);
	if (gethostname(hosts->host, sizeof(hosts->host) - 1) != 0)
		(void)snprintf(hosts->host, sizeof(hosts->host), "unknown");
	if (options->member.index >= 0)
		(void)snprintf(hosts->id, sizeof(hosts->id), "n%d", options->member.index);
	else
		(void)snprintf(hosts->id, sizeof(hosts->id), "%s-%d", hosts->host, (int)getpid());
	r = find_secret(hosts, err);
	if (r == 0)
		r = join(hosts, local, wake, wake_arg, err);
	if (r < 0) {
		(void)hosts_close(hosts);
		return r;
	}
	*ret = hosts;
	return 0;
}

int hosts_open_fleet(const struct run_options *options, struct bus *local, struct bus *net,
		     struct hub *hub, struct hosts **ret, struct err *err)
{
	const struct fleet_job *fleet = options->fleet;
	const struct cluster_setup setup = { .local = local,
					     .net = net,
					     .job = fleet->key,
					     .id = fleet->host,
					     .host = fleet->host,
					     .out_dir = options->out_dir,
					     .no_workers = true,
					     .seal = fleet->seal,
					     .expires_ns = ORDER_EXPIRES_NS,
					     .window_ns = fleet->window_ns,
					     .windows_per_hour = fleet->windows_per_hour,
					     .spool_dir = fleet->spool_dir,
					     .spool_bytes = fleet->spool_bytes,
					     .epoch = hub_epoch(hub) };
	struct hosts *hosts = calloc(1, sizeof(*hosts));
	int r = -ENOMEM;

	if (hosts == NULL) {
		(void)bus_close(net);
		return err_set(err, ENOMEM, "out of memory");
	}
	hosts->options = options;
	hosts->hub = hub;
	hosts->local = local;
	hosts->net = net;
	hosts->opened_ns = clock_mono_ns();
	if (fleet->role == FLEET_LEADER)
		r = leader_open(&setup, &hosts->leader);
	else
		r = follower_open(&setup, &hosts->follower);
	if (r < 0) {
		(void)hosts_close(hosts);
		return err_set(err, -r, "%s: %s", fleet->key, strerror(-r));
	}
	if (hosts->leader != NULL) /* hosts that have waited speak before the first tick */
		leader_tick(hosts->leader, hosts->opened_ns);
	*ret = hosts;
	return 0;
}

struct hosts *hosts_close(struct hosts *hosts)
{
	if (hosts == NULL)
		return NULL;
	hosts->leader = leader_close(hosts->leader);
	hosts->follower = follower_close(hosts->follower);
	if (hosts->spool[0] != '\0')
		spool_remove(hosts->spool);
	hosts->net = bus_close(hosts->net);
	hosts->seal = seal_close(hosts->seal);
	broker_stop(&hosts->broker);
	if (hosts->dir[0] != '\0') {
		(void)unlink(hosts->certificate);
		(void)unlink(hosts->key);
		(void)rmdir(hosts->dir);
	}
	free(hosts);
	return NULL;
}

/* --- while the job runs --- */

/* Each message of a host becomes several for the hub, whose queue has a limit: it takes them by turns. */
void hosts_run(struct hosts *hosts, int64_t now_ns)
{
	size_t cnt = NET_SLICE;

	for (unsigned i = 0; hosts != NULL && i < NET_SLICES && cnt == NET_SLICE; i++) {
		cnt = bus_run_some(hosts->net, now_ns, NET_SLICE);
		(void)bus_run(hosts->local, now_ns);
	}
}

/* One that was killed, or ended by itself, is started again; its clients reconnect. */
static void revive_broker(struct hosts *hosts, int64_t now_ns)
{
	struct err err = { "" };

	if (broker_lives(&hosts->broker) || now_ns - hosts->broker_ns < REVIVE_NS)
		return;
	if (start_broker(hosts, &err) < 0)
		log_line(LOG_WARNING, "event=broker-not-started why=\"%s\"", err.text);
	else
		log_line(LOG_WARNING, "event=broker-restarted why=\"nats-server had ended\"");
}

static void mind_broker(struct hosts *hosts, int64_t now_ns)
{
	char why[256];

	if (bus_is_connected(hosts->net, why, sizeof(why))) {
		hosts->online_ns = now_ns;
		hosts->told_unreached = false;
		return;
	}
	if (hosts->told_unreached ||
	    now_ns - MAX(hosts->opened_ns, hosts->online_ns) < UNREACHED_NS)
		return;
	hosts->told_unreached = true;
	log_line(
		LOG_WARNING,
		"event=hub-not-reached why=\"%s\" effect=\"this host is watched alone until it is\"",
		why[0] != '\0' ? why : hosts->url);
}

void hosts_tick(struct hosts *hosts, int64_t now_ns)
{
	if (hosts == NULL)
		return;
	hosts_run(hosts, now_ns);
	mind_broker(hosts, now_ns);
	if (hosts->leader != NULL) {
		if (hosts->options->fleet == NULL)
			revive_broker(hosts, now_ns);
		leader_tick(hosts->leader, now_ns);
		return;
	}
	follower_tick(hosts->follower, now_ns);
	hub_follow(hosts->hub, follower_is_led(hosts->follower));
}

struct leader_ends hosts_ends(const struct hosts *hosts)
{
	return leader_ends(hosts->leader);
}

/* --- end --- */

void hosts_job_ended(struct hosts *hosts, const struct job_end *end, int64_t now_ns)
{
	if (hosts == NULL)
		return;
	hosts->ended_ns = now_ns;
	if (hosts->follower != NULL)
		follower_end(hosts->follower, end);
}

bool hosts_may_finish(struct hosts *hosts, bool idle, int64_t now_ns)
{
	if (hosts == NULL)
		return true;
	if (hosts->leader != NULL)
		return leader_running(hosts->leader) == 0 ||
		       now_ns - hosts->ended_ns > OTHERS_END_NS;
	return (idle && follower_is_done(hosts->follower)) ||
	       now_ns - hosts->ended_ns > DELIVER_NS || now_ns - hosts->online_ns > OFFLINE_NS;
}

void hosts_finish(struct hosts *hosts)
{
	if (hosts == NULL)
		return;
	if (hosts->leader != NULL) {
		leader_end(hosts->leader);
		return;
	}
	if (follower_is_led(hosts->follower) && !hosts->options->quiet)
		log_line(LOG_INFO, "event=report-elsewhere reports=\"%s:%s\"",
			 follower_leader(hosts->follower), follower_out(hosts->follower));
}
