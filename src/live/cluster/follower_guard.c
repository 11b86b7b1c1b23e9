/* SPDX-License-Identifier: Apache-2.0 */
/* What a follower takes from a leader: messages that are signed and new, and windows within this host's limits. */
#include "base/clock.h"
#include "base/log.h"
#include "live/cluster/follower_parts.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define SAY_EVERY_NS (60 * NSEC_PER_SEC)
#define HOUR_NS (3600 * NSEC_PER_SEC)

static bool may_say(struct follower *f)
{
	int64_t now_ns = clock_mono_ns();
	bool ret = f->refused_ns == 0 || now_ns - f->refused_ns >= SAY_EVERY_NS;

	if (ret)
		f->refused_ns = now_ns;
	return ret;
}

size_t follower_subject(const struct bus_message *message)
{
	const char *last = strrchr(message->subject, '.');

	return last != NULL && strcmp(last, ".down") == 0 ? 0 : 1;
}

/* A leader that was started later has the greater epoch; without a leader any will do. */
static bool is_new(const struct follower *f, const struct bus_message *message,
		   const Cluster__Down *down)
{
	if (down->epoch == f->epoch)
		return down->sequence > f->taken[follower_subject(message)];
	return !f->led || f->leader_ended || down->epoch > f->epoch;
}

static bool is_of_this_hour(const struct follower *f, const Cluster__Down *down)
{
	int64_t age_ns = 0;

	if (f->setup.expires_ns == 0)
		return true;
	return !__builtin_sub_overflow(clock_wall_ns(), down->sent_wall_ns, &age_ns) &&
	       age_ns <= f->setup.expires_ns && age_ns >= -f->setup.expires_ns;
}

bool follower_trusts(struct follower *f, const struct bus_message *message,
		     const Cluster__Down *down)
{
	const char *why = NULL;

	if (f->setup.seal == NULL)
		return true;
	if (!seal_is_valid(f->setup.seal, message->subject, message->data, message->len))
		why = "its signature is not the hub's\" remedy=\"compare orders.key of this host with "
		      "orders.seed_file of the hub, or the secret of the job on all hosts";
	else if (!is_of_this_hour(f, down))
		why = "by the clocks of both hosts it is too old or of the future\" "
		      "remedy=\"synchronize the clocks";
	else if (!is_new(f, message, down))
		why = "it was taken before, or is of an earlier hub";
	if (why == NULL)
		return true;
	f->stats.forged++;
	if (may_say(f))
		log_line(LOG_WARNING,
			 "event=order-refused hub=\"%.60s\" refused=%" PRIu64 " why=\"%s\"",
			 down->host, f->stats.forged, why);
	return false;
}

/* As many as an hour allows, and no more of them at once. */
static bool take_window(struct follower *f)
{
	double most = f->setup.windows_per_hour;

	if (f->windows_ns == 0)
		f->windows_left = most;
	else
		f->windows_left += most * (double)(f->now_ns - f->windows_ns) / (double)HOUR_NS;
	f->windows_ns = f->now_ns;
	f->windows_left = MIN(f->windows_left, most);
	if (f->windows_left < 1)
		return false;
	f->windows_left--;
	return true;
}

static void answer_missed(struct follower *f, uint64_t order_id, const char *why)
{
	vec_foreach(known, &f->workers) {
		struct item *item;

		if (!wire_is_watched(&known->state))
			continue;
		item = outbox_add(&f->outbox, ITEM_ANSWER, 0);
		if (item == NULL)
			continue; /* counted; the hub does not wait for ever */
		item->result = (struct item_result){ .epoch = f->epoch, .rank = known->state.rank };
		item->answer = (struct wire_answer){ .worker = known->state.worker,
						     .outcome = OUTCOME_MISSED,
						     .order_id = order_id };
		(void)snprintf(item->answer.text, sizeof(item->answer.text), "%s", why);
	}
	f->urgent = true;
}

bool follower_allows(struct follower *f, const Cluster__Order *order)
{
	char why[120] = "";

	if (f->setup.window_ns > 0 && order->window_ns > (uint64_t)f->setup.window_ns)
		(void)snprintf(why, sizeof(why), "its host allows windows of %lld s at most",
			       (long long)(f->setup.window_ns / NSEC_PER_SEC));
	else if (f->setup.windows_per_hour > 0 && !take_window(f))
		(void)snprintf(why, sizeof(why), "its host allows %u windows an hour",
			       f->setup.windows_per_hour);
	if (why[0] == '\0')
		return true;
	if (may_say(f))
		log_line(LOG_WARNING, "event=order-refused hub=\"%.60s\" why=\"%s\"", f->leader,
			 why);
	answer_missed(f, order->id, why);
	return false;
}
