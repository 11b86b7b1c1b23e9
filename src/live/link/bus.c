/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/bus.h"

#include "base/clock.h"
#include "base/vec.h"
#include "live/link/natslink.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/random.h>

/* One message in the queue; the payload follows it. */
struct queued {
	struct queued *next;
	uint64_t sub; /* that it came by; 0: for all whose pattern matches */
	char subject[BUS_SUBJECT_MAX], reply[BUS_SUBJECT_MAX];
	size_t len;
	unsigned char data[];
};

struct bus_sub {
	uint64_t id;
	char pattern[BUS_SUBJECT_MAX];
	bus_handler *handler;
	void *arg;
	bool dead; /* unsubscribed during bus_run(): freed after it */
};

struct request {
	uint64_t id;
	int64_t deadline_ns;
	bus_answer *answer;
	void *arg;
};

struct bus {
	VEC(struct bus_sub *) subs;
	VEC(struct request) requests;
	struct queued *head, **tail;
	struct bus_stats stats;
	uint64_t next_request, next_sub;
	char inbox[64];	       /* answers come to INBOX.ID */
	bool has_inbox;	       /* at the broker */
	struct natslink *link; /* NULL: all in this process */
	int running;	       /* depth of bus_run() */
	void (*wake)(void *arg);
	void *wake_arg;
};

#define INBOX "_INBOX"
#define INBOX_SUB UINT64_MAX

static bool token_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
	       c == '_' || c == '-';
}

/* A subject, or with wildcard also a pattern. */
static bool subject_valid(const char *text, bool wildcard)
{
	size_t len = strlen(text);
	bool in_token = false;

	if (len == 0 || len >= BUS_SUBJECT_MAX)
		return false;
	for (size_t i = 0; i < len; i++) {
		if (token_char(text[i])) {
			in_token = true;
		} else if (text[i] == '.' && in_token) {
			in_token = false;
		} else {
			return wildcard && text[i] == '>' && !in_token && i + 1 == len;
		}
	}
	return in_token;
}

static bool pattern_matches(const char *pattern, const char *subject)
{
	size_t len = strlen(pattern);

	if (pattern[len - 1] != '>')
		return strcmp(pattern, subject) == 0;
	return strncmp(pattern, subject, len - 1) == 0 && subject[len - 1] != '\0';
}

int bus_open(const char *url, void (*wake)(void *arg), void *wake_arg, struct bus **ret)
{
	struct bus *bus;

	if (strcmp(url, "inproc:") != 0)
		return -EPROTONOSUPPORT;
	bus = calloc(1, sizeof(*bus));
	if (bus == NULL)
		return -ENOMEM;
	bus->tail = &bus->head;
	bus->wake = wake;
	bus->wake_arg = wake_arg;
	(void)snprintf(bus->inbox, sizeof(bus->inbox), INBOX);
	*ret = bus;
	return 0;
}

int bus_connect(const struct bus_login *login, void (*wake)(void *arg), void *wake_arg,
		struct bus **ret, struct err *err)
{
	struct bus *bus;
	int r = bus_open("inproc:", wake, wake_arg, &bus);

	if (r < 0)
		return err_set(err, -r, "out of memory");
	r = natslink_open(login, wake, wake_arg, &bus->link, err);
	if (r < 0) {
		(void)bus_close(bus);
		return r;
	}
	*ret = bus;
	return 0;
}

bool bus_is_connected(struct bus *bus, char *why, size_t size)
{
	if (bus->link != NULL)
		return natslink_is_connected(bus->link, why, size);
	(void)snprintf(why, size, "%s", "");
	return true;
}

struct bus *bus_close(struct bus *bus)
{
	if (bus == NULL)
		return NULL;
	bus->link = natslink_close(bus->link);
	while (bus->head != NULL) {
		struct queued *next = bus->head->next;

		free(bus->head);
		bus->head = next;
	}
	vec_foreach(sub, &bus->subs)
		free(*sub);
	vec_done(&bus->subs);
	vec_done(&bus->requests);
	free(bus);
	return NULL;
}

static int send_by_link(struct bus *bus, const char *subject, const char *reply, const void *data,
			size_t len)
{
	int ret = natslink_publish(bus->link, subject, reply, data, len);

	bus->stats.sent += ret == 0;
	return ret; /* the link counts what it drops */
}

static int enqueue(struct bus *bus, const char *subject, const char *reply, const void *data,
		   size_t len)
{
	bool was_empty = bus->head == NULL;
	struct queued *item;

	if (!subject_valid(subject, false))
		return -EINVAL;
	if (len > BUS_MESSAGE_MAX)
		return -EMSGSIZE;
	if (bus->link != NULL)
		return send_by_link(bus, subject, reply, data, len);
	item = bus->stats.pending_cnt < BUS_PENDING_CNT &&
			       bus->stats.pending_bytes + len <= BUS_PENDING_BYTES
		       ? calloc(1, sizeof(*item) + len)
		       : NULL;
	if (item == NULL) {
		bus->stats.dropped++;
		return -ENOBUFS;
	}
	(void)snprintf(item->subject, sizeof(item->subject), "%s", subject);
	(void)snprintf(item->reply, sizeof(item->reply), "%s", reply);
	item->len = len;
	if (len > 0)
		memcpy(item->data, data, len);
	*bus->tail = item;
	bus->tail = &item->next;
	bus->stats.sent++;
	bus->stats.pending_cnt++;
	bus->stats.pending_bytes += len;
	if (was_empty && bus->wake != NULL)
		bus->wake(bus->wake_arg);
	return 0;
}

int bus_pub(struct bus *bus, const char *subject, const void *data, size_t len)
{
	return enqueue(bus, subject, "", data, len);
}

int bus_sub(struct bus *bus, const char *pattern, bus_handler *handler, void *arg,
	    struct bus_sub **ret_sub)
{
	struct bus_sub *sub;

	if (!subject_valid(pattern, true))
		return -EINVAL;
	sub = calloc(1, sizeof(*sub));
	if (sub == NULL)
		return -ENOMEM;
	(void)snprintf(sub->pattern, sizeof(sub->pattern), "%s", pattern);
	sub->handler = handler;
	sub->arg = arg;
	sub->id = ++bus->next_sub;
	if (vec_push(&bus->subs, sub) < 0) {
		free(sub);
		return -ENOMEM;
	}
	if (bus->link != NULL && natslink_subscribe(bus->link, pattern, sub->id) < 0) {
		bus->subs.cnt--;
		free(sub);
		return -ENOMEM;
	}
	if (ret_sub != NULL)
		*ret_sub = sub;
	return 0;
}

static void sweep_subs(struct bus *bus)
{
	size_t kept = 0;

	for (size_t i = 0; i < bus->subs.cnt; i++) {
		if (bus->subs.data[i]->dead)
			free(bus->subs.data[i]);
		else
			bus->subs.data[kept++] = bus->subs.data[i];
	}
	bus->subs.cnt = kept;
}

struct bus_sub *bus_unsub(struct bus *bus, struct bus_sub *sub)
{
	if (sub == NULL)
		return NULL;
	sub->dead = true;
	if (bus->link != NULL)
		natslink_unsubscribe(bus->link, sub->id);
	if (bus->running == 0)
		sweep_subs(bus);
	return NULL;
}

/*
 * Answers come by a subject that no other connection has. Made for the first request: who makes none
 * needs no permission for it.
 */
static int open_inbox(struct bus *bus)
{
	uint64_t key[2] = { (uint64_t)clock_wall_ns(), 0 };
	char pattern[BUS_SUBJECT_MAX];
	int ret;

	if (bus->link == NULL || bus->has_inbox)
		return 0;
	(void)!getrandom(key, sizeof(key), 0);
	(void)snprintf(bus->inbox, sizeof(bus->inbox), INBOX ".%016" PRIx64 "%016" PRIx64, key[0],
		       key[1]);
	(void)snprintf(pattern, sizeof(pattern), "%s.>", bus->inbox);
	ret = natslink_subscribe(bus->link, pattern, INBOX_SUB);
	bus->has_inbox = ret == 0;
	return ret;
}

int bus_req(struct bus *bus, const char *subject, const void *data, size_t len, int64_t deadline_ns,
	    bus_answer *answer, void *arg)
{
	struct request request = { bus->next_request + 1, deadline_ns, answer, arg };
	char reply[BUS_SUBJECT_MAX];
	int ret;

	if (bus->requests.cnt >= BUS_REQUEST_CNT) {
		bus->stats.dropped++;
		return -ENOBUFS;
	}
	if (vec_reserve(&bus->requests, bus->requests.cnt + 1) < 0 || open_inbox(bus) < 0)
		return -ENOMEM;
	(void)snprintf(reply, sizeof(reply), "%s.%" PRIu64, bus->inbox, request.id);
	ret = enqueue(bus, subject, reply, data, len);
	if (ret < 0)
		return ret;
	bus->requests.data[bus->requests.cnt++] = request;
	bus->next_request++;
	return 0;
}

int bus_reply(struct bus *bus, const struct bus_message *message, const void *data, size_t len)
{
	if (message->reply == NULL)
		return -EDESTADDRREQ;
	return enqueue(bus, message->reply, "", data, len);
}

/* Takes request idx out, so that its answer may make a new one. */
static void end_request(struct bus *bus, size_t idx, const struct bus_message *message)
{
	struct request request = bus->requests.data[idx];

	bus->requests.cnt--;
	memmove(&bus->requests.data[idx], &bus->requests.data[idx + 1],
		(bus->requests.cnt - idx) * sizeof(request));
	request.answer(request.arg, message);
}

static void deliver_answer(struct bus *bus, const struct bus_message *message)
{
	uint64_t id = strtoull(strrchr(message->subject, '.') + 1, NULL, 10);

	for (size_t i = 0; i < bus->requests.cnt; i++) {
		if (bus->requests.data[i].id == id) {
			bus->stats.received++;
			end_request(bus, i, message);
			return;
		}
	}
	bus->stats.unheard++; /* too late */
}

/* by: the subscription that the message came by; 0: all whose pattern matches. */
static void deliver(struct bus *bus, const struct bus_message *message, uint64_t by)
{
	size_t cnt = bus->subs.cnt; /* a handler's new subscription starts with the next message */
	bool heard = false;

	if (strncmp(message->subject, INBOX ".", strlen(INBOX ".")) == 0) {
		deliver_answer(bus, message);
		return;
	}
	for (size_t i = 0; i < cnt; i++) {
		struct bus_sub *sub = bus->subs.data[i];

		if (sub->dead ||
		    (by != 0 ? by != sub->id : !pattern_matches(sub->pattern, message->subject)))
			continue;
		heard = true;
		bus->stats.received++;
		sub->handler(sub->arg, message);
	}
	bus->stats.unheard += !heard;
}

static void run_timeouts(struct bus *bus, int64_t now_ns)
{
	for (size_t i = 0; i < bus->requests.cnt;) {
		if (bus->requests.data[i].deadline_ns > now_ns) {
			i++;
			continue;
		}
		bus->stats.timeouts++;
		end_request(bus, i, NULL);
	}
}

static struct queued *dequeue(struct bus *bus)
{
	struct queued *item = bus->head;

	bus->head = item->next;
	if (bus->head == NULL)
		bus->tail = &bus->head;
	bus->stats.pending_cnt--;
	bus->stats.pending_bytes -= item->len;
	return item;
}

/* Takes what came from the broker into the queue. Messages that find no memory are counted. */
static void take_from_link(struct bus *bus)
{
	struct natslink_message *message = natslink_take(bus->link);

	while (message != NULL) {
		struct natslink_message *next = message->next;
		struct queued *item = calloc(1, sizeof(*item) + message->len);

		if (item == NULL) {
			bus->stats.dropped++;
		} else {
			item->sub = message->sub == INBOX_SUB ? 0 : message->sub;
			memcpy(item->subject, message->subject, sizeof(item->subject));
			memcpy(item->reply, message->reply, sizeof(item->reply));
			item->len = message->len;
			memcpy(item->data, message->data, message->len);
			*bus->tail = item;
			bus->tail = &item->next;
			bus->stats.pending_cnt++;
			bus->stats.pending_bytes += item->len;
		}
		free(message);
		message = next;
	}
}

size_t bus_run(struct bus *bus, int64_t now_ns)
{
	return bus_run_some(bus, now_ns, SIZE_MAX);
}

size_t bus_run_some(struct bus *bus, int64_t now_ns, size_t most)
{
	size_t cnt;

	/* What is left of an earlier call comes first; the link has a limit of its own. */
	if (bus->link != NULL && (bus->head == NULL || most == SIZE_MAX))
		take_from_link(bus);
	cnt = MIN(bus->stats.pending_cnt, most);
	bus->running++;
	for (size_t i = 0; i < cnt && bus->head != NULL; i++) {
		struct queued *item = dequeue(bus);
		struct bus_message message = {
			.subject = item->subject,
			.reply = item->reply[0] != '\0' ? item->reply : NULL,
			.data = item->data,
			.len = item->len,
		};

		deliver(bus, &message, item->sub);
		free(item);
	}
	run_timeouts(bus, now_ns);
	bus->running--;
	if (bus->running == 0)
		sweep_subs(bus);
	/* What handlers added found the queue empty before its first message was taken, or not. */
	if (bus->head != NULL && bus->wake != NULL)
		bus->wake(bus->wake_arg);
	return cnt;
}

struct bus_stats bus_stats(struct bus *bus)
{
	struct bus_stats ret = bus->stats;
	struct natslink_counts counts;

	if (bus->link == NULL)
		return ret;
	counts = natslink_counts(bus->link);
	ret.dropped += counts.dropped;
	ret.reconnects = counts.reconnects;
	ret.pending_cnt += counts.pending_cnt;
	ret.pending_bytes += counts.pending_bytes;
	return ret;
}
