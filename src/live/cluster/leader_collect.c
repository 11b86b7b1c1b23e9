/* SPDX-License-Identifier: Apache-2.0 */
/* The part of the leader that gathers the flight recorders of all hosts in its own folder. */
#include "base/log.h"
#include "live/cluster/leader_parts.h"
#include "live/hostd/recordername.h"
#include "live/link/wire_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void reply(struct leader *l, uint64_t client, int status)
{
	struct wire_reply reply = { .client = client, .status = status };

	(void)snprintf(reply.text, sizeof(reply.text), "%.480s/" RECORD_FOLDER, l->setup.out_dir);
	(void)bus_pub(l->setup.local, SUBJECT_REPLY, &reply, sizeof(reply));
}

void leader_take_collect(void *arg, const struct bus_message *message)
{
	struct leader *l = arg;
	struct collecting *c = &l->collecting;
	const struct wire_collect *collect = message->data;

	if (message->len != sizeof(*collect))
		return;
	if (c->asker_cnt >= COLLECT_ASKERS) {
		reply(l, collect->client, EBUSY);
		return;
	}
	c->askers[c->asker_cnt++] = collect->client;
	if (c->until_ns != 0)
		return; /* the same recorders serve both */
	c->id++;
	c->until_ns = l->now_ns + COLLECT_NS;
	c->bytes = c->dropped = 0;
	l->urgent = true;
}

bool leader_keep_recorder(struct leader *l, struct remote *remote, const char *name)
{
	struct collecting *c = &l->collecting;
	uint64_t size = remote->file.size;
	struct err err;
	char path[4096];

	if (recordername_rank(name) < 0)
		return false;
	(void)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER, l->setup.out_dir);
	(void)mkdir(path, 0755); /* other errors than EEXIST show when the file is written */
	(void)snprintf(path, sizeof(path), "%s/" RECORD_FOLDER "/%s", l->setup.out_dir, name);
	if (c->bytes + size > COLLECT_BYTES_MAX ||
	    remote_save_file(remote, remote->file.worker, remote->file.order, path, &err) < 0)
		c->dropped++;
	else
		c->bytes += size;
	return true;
}

void leader_take_saved(struct leader *l, struct remote *remote, const Cluster__Saved *saved)
{
	if (saved->id != l->collecting.id)
		return;
	remote->collected = saved->id;
	l->collecting.dropped += saved->dropped;
}

void leader_mind_collect(struct leader *l)
{
	struct collecting *c = &l->collecting;
	size_t missing = 0;

	if (c->until_ns == 0)
		return;
	vec_foreach(remote, &l->remotes)
		missing += !remote->ended && !remote->silent && remote->collected != c->id;
	if (missing > 0 && l->now_ns < c->until_ns)
		return;
	if (missing > 0 || c->dropped > 0)
		log_line(LOG_WARNING,
			 "event=recorders-missing hosts=%zu recorders=%" PRIu64
			 " effect=\"the timeline is without them\"",
			 missing, c->dropped);
	for (size_t i = 0; i < c->asker_cnt; i++)
		reply(l, c->askers[i], missing > 0 || c->dropped > 0 ? ETIMEDOUT : 0);
	c->asker_cnt = 0;
	c->until_ns = 0;
}
