/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/hubservice.h"

#include "base/clock.h"
#include "base/log.h"
#include "live/cluster/cluster.pb-c.h"
#include "live/cluster/subject.h"
#include "live/fleet/hubservice_parts.h"
#include "live/run/rundir.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define BEAT_NS NSEC_PER_SEC
#define CLAIM_NS (4 * NSEC_PER_SEC) /* another hub is heard within this time */
#define END_NS (5 * NSEC_PER_SEC)

/* --- what hosts say --- */

static void note_version(struct hubservice *hub, const Cluster__Presence *presence)
{
	if (hub->version_logged)
		return;
	hub->version_logged = true;
	log_line(
		LOG_ERROR,
		"event=other-protocol host=\"%.60s\" version=\"%.40s\" here=" PT_VERSION
		" effect=\"that host is watched alone\" remedy=\"install one version on all hosts\"",
		presence->host, presence->program);
}

static void take_presence(void *arg, const struct bus_message *message)
{
	struct hubservice *hub = arg;
	Cluster__Presence *presence = cluster__presence__unpack(NULL, message->len, message->data);

	if (presence == NULL || presence->boot == 0) {
		hub->unreadable++;
	} else if (presence->version != SERVICE_VERSION) {
		note_version(hub, presence);
	} else if (strcmp(presence->cluster, hub->setup.site->values.cluster) != 0) {
		hub->unknown_cluster++; /* of another hub on the same bus */
	} else if (hub->serving) {
		for (size_t i = 0; i < MIN(presence->n_jobs, (size_t)SERVICE_JOBS_MAX); i++)
			hubjobs_hear(hub, presence->jobs[i]->key, clock_mono_ns());
	}
	if (presence != NULL)
		cluster__presence__free_unpacked(presence, NULL);
}

/* --- other hubs --- */

static void leave_to(struct hubservice *hub, const Cluster__HubBeat *beat)
{
	if (hub->refused)
		return;
	hub->refused = true;
	log_line(LOG_ERROR,
		 "event=hub-refused why=\"a hub of cluster %s runs on host %.60s since before this "
		 "one\" remedy=\"end that one first, or give this one another cluster name\"",
		 hub->setup.site->values.cluster, beat->host);
	hub->end_ns = clock_mono_ns() + END_NS;
	hubjobs_drop_all(hub);
}

static void take_beat(void *arg, const struct bus_message *message)
{
	struct hubservice *hub = arg;
	Cluster__HubBeat *beat = cluster__hub_beat__unpack(NULL, message->len, message->data);

	if (beat == NULL || beat->version != SERVICE_VERSION)
		hub->unreadable++;
	else if (strcmp(beat->cluster, hub->setup.site->values.cluster) == 0 &&
		 beat->epoch != hub->epoch && (!hub->serving || beat->epoch < hub->epoch))
		leave_to(hub, beat);
	if (beat != NULL)
		cluster__hub_beat__free_unpacked(beat, NULL);
}

static void say_beat(struct hubservice *hub)
{
	const struct site_values *site = &hub->setup.site->values;
	char subject[BUS_SUBJECT_MAX];
	Cluster__HubBeat beat;
	uint8_t bytes[512];

	cluster__hub_beat__init(&beat);
	beat.version = SERVICE_VERSION;
	beat.epoch = hub->epoch;
	beat.host = site->host;
	beat.cluster = site->cluster;
	beat.program = (char *)(uintptr_t)PT_VERSION;
	beat.jobs = (uint32_t)hub->jobs.cnt;
	if (cluster__hub_beat__get_packed_size(&beat) > sizeof(bytes))
		return; /* names are short: site_check() */
	subject_write(subject, SERVICE_SUBJECT, "down", NULL);
	(void)bus_pub(hub->service.bus, subject, bytes, cluster__hub_beat__pack(&beat, bytes));
}

/* --- the loop --- */

static void close_everything(struct hubservice *hub)
{
	hubjobs_close_all(hub);
	for (size_t i = 0; i < ARRAY_SIZE(hub->subs); i++)
		hub->subs[i] = bus_unsub(hub->service.bus, hub->subs[i]);
	service_stop(&hub->service);
}

/* Before it serves, a hub listens for another one. */
static void claim(struct hubservice *hub, int64_t now_ns)
{
	if (!service_is_online(&hub->service)) {
		hub->connected_ns = 0;
		return;
	}
	if (hub->connected_ns == 0)
		hub->connected_ns = now_ns;
	if (now_ns - hub->connected_ns < CLAIM_NS)
		return;
	hub->serving = true;
	hub->ui = hubui_open(hub->setup.site);
	log_line(LOG_INFO, "event=hub-serves cluster=\"%s\" folder=\"%s\"",
		 hub->setup.site->values.cluster, hub->setup.site->values.hub_folder);
}

static bool has_children(const struct hubservice *hub)
{
	vec_foreach(job, &hub->jobs) {
		if ((*job)->child.pid > 0)
			return true;
	}
	return false;
}

static void on_tick(void *arg, int64_t now_ns)
{
	struct hubservice *hub = arg;

	if (hub->end_ns != 0) {
		if (now_ns > hub->end_ns || !has_children(hub))
			close_everything(hub);
		return;
	}
	if (!hub->serving)
		claim(hub, now_ns);
	if (!hub->serving)
		return;
	hubjobs_tick(hub, now_ns);
	if (now_ns >= hub->beat_ns) {
		hub->beat_ns = now_ns + BEAT_NS;
		say_beat(hub);
	}
}

static void on_children(void *arg)
{
	hubjobs_reap(arg);
}

static void on_end(void *arg)
{
	struct hubservice *hub = arg;

	if (hub->end_ns != 0)
		return;
	hub->end_ns = clock_mono_ns() + END_NS;
	log_line(
		LOG_INFO,
		"event=hub-ends jobs=%zu effect=\"hosts watch their jobs alone until a hub is there\"",
		hub->jobs.cnt);
	hubjobs_drop_all(hub);
}

/* --- begin --- */

static int listen_to_hosts(struct hubservice *hub, struct err *err)
{
	char ups[BUS_SUBJECT_MAX], down[BUS_SUBJECT_MAX];
	int ret;

	subject_write(ups, SERVICE_SUBJECT, "up", NULL);
	(void)snprintf(ups + strlen(ups), sizeof(ups) - strlen(ups), ".>");
	subject_write(down, SERVICE_SUBJECT, "down", NULL);
	ret = bus_sub(hub->service.bus, ups, take_presence, hub, &hub->subs[0]);
	if (ret == 0)
		ret = bus_sub(hub->service.bus, down, take_beat, hub, &hub->subs[1]);
	return ret == 0 ? 0 : err_set(err, -ret, "out of memory");
}

static int open_all(struct hubservice *hub, struct err *err)
{
	static const struct service_calls calls = { on_tick, on_children, on_end };
	struct site *site = hub->setup.site;
	struct seal *seal = NULL; /* leaders sign: this is whether they can */
	int ret = site_login(site, &hub->login, err);

	if (ret == 0)
		ret = site_seal(site, true, &seal, err);
	(void)seal_close(seal);
	if (ret == 0 && strlen(site->values.hub_run) > 80)
		ret = err_set(err, ENAMETOOLONG, "%s: hub.run: expected a path of at most 80 bytes",
			      site->values.hub_run);
	if (ret == 0)
		ret = rundir_make(site->values.hub_folder, 0755, err);
	if (ret == 0)
		ret = rundir_make(site->values.hub_run, 0700, err);
	if (ret == 0)
		ret = rundir_private(site->values.hub_run, err);
	if (ret == 0)
		ret = service_open(&hub->service, &hub->login, &calls, hub, err);
	return ret == 0 ? listen_to_hosts(hub, err) : ret;
}

int hubservice_run(const struct hubservice_setup *setup)
{
	struct hubservice hub = { .setup = *setup };
	const struct site_values *site = &setup->site->values;
	struct err err = { "" };
	uint64_t lost;

	hub.epoch = (uint64_t)clock_wall_ns();
	if (open_all(&hub, &err) < 0) {
		log_line(LOG_ERROR, "event=hub-not-started why=\"%s\"", err.text);
		return 1; /* the process ends, so nothing is freed */
	}
	log_line(LOG_INFO, "event=hub-starts cluster=\"%s\" host=\"%s\" bus=\"%s\"", site->cluster,
		 site->host, site->bus_url);
	if (site->bus_insecure)
		log_line(LOG_WARNING,
			 "event=insecure effect=\"hosts talk without encryption: "
			 "everybody on the network can read and forge what they say\"");
	service_run(&hub.service);
	hub.ui = hubui_close(hub.ui);
	lost = service_close(&hub.service);
	log_line(LOG_INFO,
		 "event=hub-ended unreadable=%" PRIu64 " other_cluster=%" PRIu64
		 " jobs_dropped=%" PRIu64 " messages_dropped=%" PRIu64,
		 hub.unreadable, hub.unknown_cluster, hub.dropped, lost);
	return hub.refused ? 2 : 0;
}
