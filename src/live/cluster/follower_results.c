/* SPDX-License-Identifier: Apache-2.0 */
/*
 * How workers of this host met orders. A result lies in the spool until the leader says that its hub
 * has committed it; it is sent again when that takes too long, and to another leader. Without a spool,
 * and for what a full disk does not take, answers are in memory until the leader has them.
 */
#include "base/file.h"
#include "base/log.h"
#include "live/cluster/follower_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A result that was delivered is committed when its window is reported. */
#define AGAIN_NS (60 * NSEC_PER_SEC)
#define AGAIN_MAX_NS (600 * NSEC_PER_SEC)
#define NO_ROOM "its host had no more room for results: hostd.spool_bytes"

/* --- which window --- */

void follower_note_order(struct follower *f, const struct wire_order *order)
{
	f->orders[f->order_cnt++ % FOLLOWER_ORDERS] = (struct led_order){
		.epoch = f->epoch, .id = f->orders_base + order->id, .window = order->window
	};
}

/* Fills epoch and window; false: of this host's own hub, or forgotten. */
static bool find_order(const struct follower *f, uint64_t id, struct item_result *ret)
{
	for (size_t i = 0; i < FOLLOWER_ORDERS; i++) {
		if (f->orders[i].epoch == 0 || f->orders[i].id != id)
			continue;
		ret->epoch = f->orders[i].epoch;
		ret->window = f->orders[i].window;
		return true;
	}
	return false;
}

/* --- into the spool --- */

static int read_fingerprint(const char *path, char **ret, size_t *ret_len, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? err_set(err, errno, "%s: %s", path, strerror(errno))
		       : file_read_whole(path, fd, CLUSTER_FILE_MAX, ret, ret_len, err);

	if (fd >= 0)
		(void)close(fd);
	return r;
}

static int add_record(struct follower *f, const struct wire_answer *answer,
		      const struct item_result *result, const char *data, size_t len,
		      struct err *err)
{
	Cluster__Kept kept;
	Cluster__Answer about;
	Cluster__Result of;
	Cluster__Window window;
	_cleanup_free_ uint8_t *bytes = NULL;
	struct kept fresh = { .state = KEPT_WAITING };
	size_t size;
	int ret;

	cluster__kept__init(&kept);
	convert_answer_out(answer, &about);
	outbox_write_result(result, &window, &of);
	about.result = &of;
	kept.answer = &about;
	kept.fingerprint.data = (uint8_t *)(uintptr_t)data;
	kept.fingerprint.len = len;
	size = cluster__kept__get_packed_size(&kept);
	bytes = malloc(size);
	if (bytes == NULL || vec_reserve(&f->kept, f->kept.cnt + 1) < 0)
		return err_set(err, ENOMEM, "out of memory");
	(void)cluster__kept__pack(&kept, bytes);
	ret = spool_add(f->spool, bytes, size, &fresh.number, err);
	if (ret == 0)
		f->kept.data[f->kept.cnt++] = fresh; /* the room was made above */
	return ret;
}

/* Says once, until it works again, that results are in memory only. */
static void note_unkept(struct follower *f, const char *why)
{
	f->unkept++;
	if (!f->unkept_logged)
		log_line(
			LOG_WARNING,
			"event=result-not-kept why=\"%s\" effect=\"results of this host are in memory "
			"only: they are lost if this process ends before the hub has them\"",
			why);
	f->unkept_logged = true;
}

/* Returns whether the answer is in the spool. */
static bool keep(struct follower *f, const struct wire_answer *answer,
		 const struct item_result *result, const char *data, size_t len)
{
	struct err err;

	if (f->spool == NULL)
		return false;
	if (add_record(f, answer, result, data, len, &err) < 0) {
		note_unkept(f, err.text);
		return false;
	}
	f->unkept_logged = false;
	return true;
}

/* --- to the leader --- */

/* Returns 0 or -ENOMEM: too much waits for the leader. */
static int queue_bytes(struct follower *f, const struct wire_answer *answer,
		       const struct item_result *result, const char *data, size_t len)
{
	const struct item_piece as = { .worker = answer->worker,
				       .rank = result->rank,
				       .order = answer->order_id };
	int ret = len > 0 ? follower_add_bytes(f, data, len, &as) : 0;
	struct item *item = ret == 0 ? outbox_add(&f->outbox, ITEM_ANSWER, 0) : NULL;

	if (item == NULL)
		return -ENOMEM;
	item->answer = *answer;
	item->result = *result;
	return 0;
}

static void add_missed(struct follower *f, const struct wire_answer *answer,
		       const struct item_result *result, const char *why)
{
	struct wire_answer missed = *answer;
	struct item_result of = *result;

	missed.outcome = OUTCOME_MISSED;
	of.spool = of.number = 0;
	(void)snprintf(missed.text, sizeof(missed.text), "%.500s", why);
	(void)!queue_bytes(f, &missed, &of, NULL, 0); /* counted; the hub does not wait for ever */
}

void follower_add_answer(struct follower *f, const struct wire_answer *answer, int32_t rank)
{
	struct item_result result = { .rank = rank };
	struct wire_answer to = *answer;
	_cleanup_free_ char *data = NULL;
	struct err err = { "" };
	size_t len = 0;

	if (!find_order(f, answer->order_id, &result))
		return;
	to.order_id %= FOLLOWER_ORDERS_APART;
	if (to.outcome == OUTCOME_SUMMARIZED) {
		if (read_fingerprint(to.text, &data, &len, &err) < 0)
			to.outcome = OUTCOME_MISSED;
		(void)snprintf(to.text, sizeof(to.text), "%.500s", err.text);
	}
	f->urgent = true;
	if ((to.outcome == OUTCOME_SUMMARIZED || to.outcome == OUTCOME_MISSED) &&
	    keep(f, &to, &result, data, len))
		return;
	if (queue_bytes(f, &to, &result, data, len) < 0 && to.outcome == OUTCOME_SUMMARIZED)
		add_missed(f, &to, &result, "too much waits for the hub");
}

static bool read_kept(const char *data, size_t len, Cluster__Kept **ret)
{
	*ret = cluster__kept__unpack(NULL, len, (const uint8_t *)data);
	if (*ret != NULL && (*ret)->answer != NULL && (*ret)->answer->result != NULL)
		return true;
	if (*ret != NULL)
		cluster__kept__free_unpacked(*ret, NULL);
	return false;
}

static void take_kept(const Cluster__Answer *from, struct wire_answer *answer,
		      struct item_result *result)
{
	const struct convert_from here = { .host = "" };

	(void)convert_answer_in(from, &here, answer); /* this process wrote it, or one before */
	*result = (struct item_result){ .epoch = from->result->epoch, .rank = from->result->rank };
	convert_window_in(from->result->window, &result->window);
}

/* Returns 0, -ENOMEM (later), or -EBADMSG: it is not readable any more. */
static int queue_kept(struct follower *f, struct kept *kept)
{
	_cleanup_free_ char *data = NULL;
	struct item_result result;
	struct wire_answer answer;
	Cluster__Kept *record;
	struct err err;
	size_t len;
	int ret = spool_read(f->spool, kept->number, &data, &len, &err);

	if (ret == -ENOMEM)
		return ret;
	if (ret < 0 || !read_kept(data, len, &record))
		return -EBADMSG;
	take_kept(record->answer, &answer, &result);
	result.spool = spool_id(f->spool);
	result.number = kept->number;
	ret = -ENOMEM;
	if (f->outbox.bytes + 2 * len < CLUSTER_ITEMS_MAX)
		ret = queue_bytes(f, &answer, &result, (const char *)record->fingerprint.data,
				  record->fingerprint.len);
	cluster__kept__free_unpacked(record, NULL);
	if (ret == 0)
		kept->item = f->outbox.next_number - 1;
	return ret;
}

static void forget(struct follower *f, size_t i)
{
	memmove(&f->kept.data[i], &f->kept.data[i + 1],
		(f->kept.cnt - i - 1) * sizeof(*f->kept.data));
	f->kept.cnt--;
}

static void finish(struct follower *f, size_t i)
{
	spool_finish(f->spool, f->kept.data[i].number);
	forget(f, i);
}

/* A leader of an earlier version does not say what it has committed. */
static bool deliver(struct follower *f, struct kept *kept)
{
	int64_t wait_ns = AGAIN_NS << MIN(kept->tries, 4u);

	if (!f->leader_commits)
		return false;
	kept->state = KEPT_DELIVERED;
	kept->again_ns = f->now_ns + MIN(wait_ns, AGAIN_MAX_NS);
	kept->tries++;
	return true;
}

/* Returns false if the record is to be finished. */
static bool mind_one(struct follower *f, struct kept *kept)
{
	int ret;

	if (kept->state == KEPT_QUEUED && kept->item < outbox_oldest(&f->outbox))
		return deliver(f, kept);
	if (kept->state == KEPT_DELIVERED && f->now_ns >= kept->again_ns) {
		kept->state = KEPT_WAITING;
		f->outbox.resent++;
	}
	if (kept->state != KEPT_WAITING)
		return true;
	ret = queue_kept(f, kept);
	if (ret == 0)
		kept->state = KEPT_QUEUED;
	if (ret == -EBADMSG)
		log_line(LOG_WARNING,
			 "event=result-lost record=%" PRIu64 " why=\"it cannot be read from %s\"",
			 kept->number, f->setup.spool_dir);
	return ret != -EBADMSG;
}

void follower_mind_results(struct follower *f)
{
	if (!f->led)
		return;
	for (size_t i = 0; i < f->kept.cnt;) {
		if (mind_one(f, &f->kept.data[i]))
			i++;
		else
			finish(f, i);
	}
}

/* Those that are queued go to the new leader as they are. */
void follower_results_again(struct follower *f)
{
	vec_foreach(kept, &f->kept) {
		kept->tries = 0;
		if (kept->state == KEPT_DELIVERED)
			kept->state = KEPT_WAITING;
	}
}

void follower_take_committed(struct follower *f, const Cluster__Down *down)
{
	f->leader_commits = down->commits;
	for (size_t i = 0; i < down->n_committed && f->spool != NULL; i++) {
		const Cluster__Committed *committed = down->committed[i];

		if (committed->spool != spool_id(f->spool))
			continue;
		for (size_t k = 0; k < committed->n_numbers; k++) {
			for (size_t at = 0; at < f->kept.cnt; at++) {
				if (f->kept.data[at].number == committed->numbers[k]) {
					finish(f, at);
					break;
				}
			}
		}
	}
}

/* --- the spool --- */

/* Of spool_open(): there is no more room. What the leader has not got is missed by its window. */
static void drop(void *arg, uint64_t number, const void *data, size_t len)
{
	struct follower *f = arg;
	struct item_result result;
	struct wire_answer answer;
	Cluster__Kept *record;

	for (size_t i = 0; i < f->kept.cnt; i++) {
		if (f->kept.data[i].number == number) {
			forget(f, i);
			break;
		}
	}
	log_line(LOG_WARNING,
		 "event=result-dropped record=%" PRIu64
		 " why=\"%s has no more room\" remedy=\"raise hostd.spool_bytes\"",
		 number, f->setup.spool_dir);
	if (data == NULL || !read_kept(data, len, &record))
		return;
	take_kept(record->answer, &answer, &result);
	cluster__kept__free_unpacked(record, NULL);
	add_missed(f, &answer, &result, NO_ROOM);
}

static void note_found(const struct follower *f)
{
	struct spool_stats stats = spool_stats(f->spool);

	if (stats.waiting + stats.torn + stats.foreign > 0)
		log_line(stats.torn + stats.foreign > 0 ? LOG_WARNING : LOG_INFO,
			 "event=spool-found folder=\"%s\" results=%zu torn=%" PRIu64
			 " of_other_version=%" PRIu64,
			 f->setup.spool_dir, stats.waiting, stats.torn, stats.foreign);
}

/* An error is logged: results are kept in memory. */
void follower_open_spool(struct follower *f)
{
	const struct spool_setup setup = {
		.dir = f->setup.spool_dir, .bytes_max = f->setup.spool_bytes, .drop = drop, .arg = f
	};
	struct err err;

	if (setup.dir == NULL)
		return;
	if (spool_open(&setup, &f->spool, &err) < 0) {
		note_unkept(f, err.text);
		return;
	}
	note_found(f);
	for (uint64_t n = 0; (n = spool_after(f->spool, n)) != 0;) {
		const struct kept kept = { .number = n, .state = KEPT_WAITING };

		if (vec_push(&f->kept, kept) < 0)
			break; /* the next start sends it */
	}
}

void follower_close_spool(struct follower *f)
{
	if (f->kept.cnt > 0)
		log_line(LOG_WARNING,
			 "event=results-left results=%zu folder=\"%s\" effect=\"the next daemon of "
			 "this job on this host sends them\"",
			 f->kept.cnt, f->setup.spool_dir);
	f->spool = spool_close(f->spool);
	vec_done(&f->kept);
}

void follower_write_spool(const struct follower *f, Cluster__Spool *ret)
{
	struct spool_stats stats = { 0 };

	if (f->spool != NULL)
		stats = spool_stats(f->spool);
	cluster__spool__init(ret);
	ret->waiting = stats.waiting;
	ret->bytes = stats.bytes;
	ret->dropped = stats.dropped;
}

void follower_publish_spool(struct follower *f)
{
	struct wire_spools spools = { 0 };
	struct spool_stats stats;

	if (f->spool == NULL)
		return;
	stats = spool_stats(f->spool);
	spools.waiting = stats.waiting;
	spools.bytes = stats.bytes;
	spools.dropped = stats.dropped;
	(void)bus_pub(f->setup.local, SUBJECT_SPOOLS, &spools, sizeof(spools));
}
