/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/feed.h"

#include "base/vec.h"
#include "serve/historyjson.h"
#include "serve/jobwords.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

/* Daemons of other hosts have other clocks; a job that has been silent for so long has no news. */
#define WINDOW_NS (600 * NSEC_PER_SEC)

/* What was said of a job. */
struct known {
	char key[STORE_KEY_BYTES];
	int64_t seen_ns, made_ns;
	uint64_t event_place;
	bool unread; /* its events and reports are to be read: stays so when reading fails */
	char state[32];
};

struct feed {
	char place[4200];
	struct store *store;
	uint64_t epoch;
	bool first; /* the first look */
	VEC(struct known) known;
	pthread_mutex_t lock; /* of ring and last */
	char *ring[FEED_RING_MAX];
	uint64_t last; /* the number of the latest; event n is in ring[n % FEED_RING_MAX] */
};

struct feed *feed_new(const char *place, int64_t start_ns)
{
	struct feed *feed = calloc(1, sizeof(*feed));

	if (feed == NULL)
		return NULL;
	(void)snprintf(feed->place, sizeof(feed->place), "%s", place);
	feed->epoch = (uint64_t)start_ns / NSEC_PER_MSEC;
	feed->first = true;
	(void)pthread_mutex_init(&feed->lock, NULL);
	return feed;
}

struct feed *feed_free(struct feed *feed)
{
	if (feed == NULL)
		return NULL;
	for (size_t i = 0; i < FEED_RING_MAX; i++)
		free(feed->ring[i]);
	(void)store_close(feed->store);
	vec_done(&feed->known);
	(void)pthread_mutex_destroy(&feed->lock);
	free(feed);
	return NULL;
}

/* --- the ring --- */

void feed_push(struct feed *feed, const char *name, const char *data)
{
	struct str text = { 0 };

	(void)pthread_mutex_lock(&feed->lock);
	str_printf(&text, "id: %" PRIx64 ".%" PRIu64 "\nevent: %s\ndata: %s\n\n", feed->epoch,
		   feed->last + 1, name, data);
	if (str_error(&text) == 0) {
		feed->last++;
		free(feed->ring[feed->last % FEED_RING_MAX]);
		feed->ring[feed->last % FEED_RING_MAX] = text.data;
	} else {
		str_done(&text);
	}
	(void)pthread_mutex_unlock(&feed->lock);
}

/* The number before the oldest event that is there. */
static uint64_t oldest(const struct feed *feed)
{
	return feed->last > FEED_RING_MAX ? feed->last - FEED_RING_MAX : 0;
}

/* "epoch.number" of this server; false for any other text. */
static bool parse_id(const struct feed *feed, const char *text, uint64_t *ret)
{
	char expected[64];

	for (uint64_t n = oldest(feed); n <= feed->last; n++) {
		(void)snprintf(expected, sizeof(expected), "%" PRIx64 ".%" PRIu64, feed->epoch, n);
		if (strcmp(expected, text) == 0) {
			*ret = n;
			return true;
		}
	}
	return false;
}

uint64_t feed_begin(struct feed *feed, const char *last, bool *ret_gap)
{
	uint64_t ret;

	(void)pthread_mutex_lock(&feed->lock);
	ret = feed->last;
	*ret_gap = last != NULL && !parse_id(feed, last, &ret);
	(void)pthread_mutex_unlock(&feed->lock);
	return ret;
}

void feed_follow(void *arg, uint64_t *after, size_t max, struct str *out)
{
	struct feed *feed = arg;

	(void)pthread_mutex_lock(&feed->lock);
	if (*after < oldest(feed)) { /* a client that reads too slowly */
		*after = oldest(feed);
		str_append(out, "event: gap\ndata: {}\n\n");
	}
	while (*after < feed->last && out->len < max && str_error(out) == 0) {
		++*after;
		str_append(out, feed->ring[*after % FEED_RING_MAX]);
	}
	(void)pthread_mutex_unlock(&feed->lock);
}

/* --- looking --- */

struct look {
	struct feed *feed;
	struct known *known;
	struct err err;
	bool news;
};

static void push_object(struct look *look, const char *name, struct json_writer *w, json_t *object)
{
	char *text = w->error == 0 ? json_dumps(object, JSON_COMPACT | JSON_ENSURE_ASCII) : NULL;

	json_decref(object);
	if (text != NULL && !look->feed->first)
		feed_push(look->feed, name, text);
	look->news |= text != NULL && !look->feed->first;
	free(text);
}

static struct known *find_known(struct feed *feed, const char *key)
{
	vec_foreach(known, &feed->known) {
		if (strcmp(known->key, key) == 0)
			return known;
	}
	return NULL;
}

static struct known *new_known(struct feed *feed, const char *key)
{
	struct known known = { .made_ns = INT64_MIN };

	if (feed->known.cnt >= FEED_JOBS_MAX)
		return NULL;
	(void)snprintf(known.key, sizeof(known.key), "%s", key);
	return vec_push(&feed->known, known) == 0 ? &feed->known.data[feed->known.cnt - 1] : NULL;
}

static int take_job(void *arg, const struct store_job *job)
{
	struct look *look = arg;
	struct known *known = find_known(look->feed, job->key);
	struct json_writer w = { 0 };
	char state[32];
	json_t *object;

	jobwords_state(job, state);
	if (known == NULL)
		known = new_known(look->feed, job->key);
	if (known == NULL || (known->seen_ns == job->seen_ns && strcmp(known->state, state) == 0))
		return 0;
	known->seen_ns = job->seen_ns;
	known->unread = true;
	(void)snprintf(known->state, sizeof(known->state), "%s", state);
	object = json_object();
	jobwords_put_job(&w, object, job);
	push_object(look, "job", &w, object);
	return 0;
}

static int take_event(void *arg, const struct store_event *event)
{
	struct look *look = arg;
	struct json_writer w = { 0 };
	json_t *object = historyjson_event(&w, event);

	look->known->event_place = event->place + 1;
	jsonwriter_put_text(&w, object, "job", look->known->key);
	push_object(look, "event", &w, object);
	return 0;
}

static int take_report(void *arg, const struct store_report *report, size_t finding_cnt)
{
	struct look *look = arg;
	struct json_writer w = { 0 };
	json_t *object;

	if (report->made_ns <= look->known->made_ns)
		return 0;
	look->known->made_ns = report->made_ns;
	object = historyjson_report(&w, report);
	jsonwriter_put(&w, object, "findings", json_integer((json_int_t)finding_cnt));
	push_object(look, "report", &w, object);
	return 0;
}

/* Jobs that have been silent for long are forgotten, so that the list has a limit. */
static void forget(struct feed *feed, int64_t now_ns)
{
	for (size_t i = feed->known.cnt; i-- > 0;) {
		if (feed->known.data[i].seen_ns < now_ns - 2 * WINDOW_NS)
			feed->known.data[i] = feed->known.data[--feed->known.cnt];
	}
}

static int read_job(struct look *look, struct known *known)
{
	struct store *store = look->feed->store;
	int ret;

	look->known = known;
	ret = store_list_events_from(store, known->key, known->event_place, take_event, look,
				     &look->err);
	if (ret == 0)
		ret = store_list_reports(store, known->key, take_report, look, &look->err);
	known->unread = ret < 0;
	return ret;
}

static int read_store(struct look *look, int64_t now_ns)
{
	struct feed *feed = look->feed;
	int ret = 0;

	if (feed->store == NULL)
		ret = store_open_to_read(feed->place, &feed->store, &look->err);
	if (ret == 0)
		ret = store_list_jobs_seen(feed->store, now_ns - WINDOW_NS, take_job, look,
					   &look->err);
	vec_foreach(known, &feed->known) {
		if (ret == 0 && known->unread)
			ret = read_job(look, known);
	}
	return ret;
}

bool feed_look(struct feed *feed, int64_t now_ns)
{
	struct look look = { .feed = feed };
	int ret;

	if (feed->place[0] == '\0')
		return false;
	ret = read_store(&look, now_ns);
	if (ret < 0)
		feed->store = store_close(feed->store);
	if (ret == 0 || ret == -ENOENT || ret == -ENODATA) /* all of a store that comes is news */
		feed->first = false;
	forget(feed, now_ns);
	return look.news;
}
