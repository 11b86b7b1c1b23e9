/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/natslink.h"

#include "base/clock.h"
#include "base/vec.h"
#include "live/link/greeting.h"
#include "live/link/natslibrary.h"
#include "live/link/natslogin.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define RETRY_LEAST_MS 250
#define RETRY_MOST_MS 8000
#define LAST_FLUSH_MS 1000

enum order_kind { ORDER_PUBLISH, ORDER_SUBSCRIBE, ORDER_UNSUBSCRIBE };

/* What the thread is to do. */
struct order {
	struct order *next;
	enum order_kind kind;
	uint64_t sub;
	char subject[BUS_SUBJECT_MAX], reply[BUS_SUBJECT_MAX];
	size_t len;
	unsigned char data[];
};

/* Closure of a subscription's callbacks. Freed with the link: one may be under way. */
struct listener {
	struct natslink *link;
	uint64_t id;
	char pattern[BUS_SUBJECT_MAX];
	natsSubscription *subscription; /* NULL: not at the broker */
	bool ended;
};

struct natslink {
	struct natslibrary nats;
	struct bus_login login; /* texts are borrowed */
	struct brokerurl url;
	void (*wake)(void *arg);
	void *wake_arg;
	pthread_t thread;
	pthread_cond_t asked;
	pthread_mutex_t lock; /* of all below but what the thread has for itself */
	struct order *orders, **orders_tail;
	size_t order_cnt, order_bytes;
	struct natslink_message *came, **came_tail;
	struct natslink_counts counts;
	bool closing, connected;
	int64_t close_ns; /* when closing: nothing is sent after it */
	char why[256];
	unsigned delivering; /* subscriptions and connections whose callbacks may still be called */
	/* the thread's */
	natsConnection *connection;
	VEC(struct listener *) listeners;
	unsigned seed; /* of the jitter */
};

/* --- libnats' threads --- */

static struct natslink_message *copy_message(const struct natslink *link, natsMsg *from,
					     uint64_t sub)
{
	size_t len = (size_t)link->nats.message_len(from);
	struct natslink_message *ret = calloc(1, sizeof(*ret) + len);
	const char *reply = link->nats.message_reply(from);

	if (ret == NULL)
		return NULL;
	ret->sub = sub;
	ret->len = len;
	(void)snprintf(ret->subject, sizeof(ret->subject), "%s", link->nats.message_subject(from));
	(void)snprintf(ret->reply, sizeof(ret->reply), "%s", reply == NULL ? "" : reply);
	if (len > 0)
		memcpy(ret->data, link->nats.message_data(from), len);
	return ret;
}

static void on_message(natsConnection *connection, natsSubscription *subscription, natsMsg *message,
		       void *closure)
{
	const struct listener *listener = closure;
	struct natslink *link = listener->link;
	struct natslink_message *copy = copy_message(link, message, listener->id);
	bool was_empty;

	(void)connection;
	(void)subscription;
	link->nats.message_destroy(message);
	pthread_mutex_lock(&link->lock);
	was_empty = link->came == NULL;
	if (copy == NULL || link->counts.pending_cnt >= BUS_PENDING_CNT ||
	    link->counts.pending_bytes + copy->len > BUS_PENDING_BYTES) {
		link->counts.dropped++;
		free(copy);
	} else {
		link->counts.pending_cnt++;
		link->counts.pending_bytes += copy->len;
		*link->came_tail = copy;
		link->came_tail = &copy->next;
	}
	pthread_mutex_unlock(&link->lock);
	if (was_empty && link->wake != NULL)
		link->wake(link->wake_arg);
}

static void begin_delivering(struct natslink *link)
{
	pthread_mutex_lock(&link->lock);
	link->delivering++;
	pthread_mutex_unlock(&link->lock);
}

/* The last callback of a subscription; of a connection: on_closed(). */
static void on_complete(void *closure)
{
	struct natslink *link = closure;

	pthread_mutex_lock(&link->lock);
	link->delivering--;
	(void)pthread_cond_signal(&link->asked);
	pthread_mutex_unlock(&link->lock);
}

/* Its default prints to stderr, which belongs to the job. */
static void on_error(natsConnection *connection, natsSubscription *subscription, natsStatus status,
		     void *closure)
{
	struct natslink *link = closure;

	(void)connection;
	(void)subscription;
	if (status != NATS_SLOW_CONSUMER)
		return;
	pthread_mutex_lock(&link->lock);
	link->counts.dropped++;
	pthread_mutex_unlock(&link->lock);
}

static void on_reconnected(natsConnection *connection, void *closure)
{
	struct natslink *link = closure;

	(void)connection;
	pthread_mutex_lock(&link->lock);
	link->counts.reconnects++;
	pthread_mutex_unlock(&link->lock);
}

static void on_closed(natsConnection *connection, void *closure)
{
	(void)connection;
	on_complete(closure);
}

/* Waits, for at most so long, until there is something to do. */
static void wait_asked(struct natslink *link, int64_t wait_ms)
{
	struct timespec until;

	(void)clock_gettime(CLOCK_MONOTONIC, &until);
	until.tv_sec += wait_ms / 1000;
	until.tv_nsec += wait_ms % 1000 * 1000000;
	if (until.tv_nsec >= NSEC_PER_SEC) {
		until.tv_sec++;
		until.tv_nsec -= NSEC_PER_SEC;
	}
	(void)pthread_cond_timedwait(&link->asked, &link->lock, &until);
}

/* --- the connection; the thread's --- */

static natsStatus set_all(struct natslink *link, natsOptions *options)
{
	natsStatus status = natslogin_apply(&link->login, &link->nats, options);

	if (status == NATS_OK)
		status = link->nats.set_error_handler(options, on_error, link);
	if (status == NATS_OK)
		status = link->nats.set_reconnected(options, on_reconnected, link);
	if (status == NATS_OK)
		status = link->nats.set_closed(options, on_closed, link);
	return status;
}

static void note_failure(struct natslink *link, natsStatus status, const char *text)
{
	pthread_mutex_lock(&link->lock);
	link->connected = false;
	(void)snprintf(link->why, sizeof(link->why), "%s: %s", link->login.url,
		       text != NULL && text[0] != '\0' ? text : link->nats.status_text(status));
	pthread_mutex_unlock(&link->lock);
}

/* Returns whether the broker answers. */
static bool try_connect(struct natslink *link)
{
	natsOptions *options = NULL;
	struct err err = { "" };
	natsStatus status;

	if (greeting_check(&link->url, link->login.any_version, &err) < 0) {
		note_failure(link, NATS_ERR, err.text);
		return false;
	}
	status = link->nats.options_create(&options);
	if (status == NATS_OK)
		status = set_all(link, options);
	begin_delivering(link);
	if (status == NATS_OK)
		status = link->nats.connect(&link->connection, options);
	link->nats.options_destroy(options);
	if (status != NATS_OK) {
		on_complete(link); /* no callback is called for a connection that never was */
		link->connection = NULL;
		note_failure(link, status, link->nats.last_error(NULL));
		return false;
	}
	pthread_mutex_lock(&link->lock);
	link->connected = true;
	link->why[0] = '\0';
	pthread_mutex_unlock(&link->lock);
	return true;
}

static void listen_at_broker(struct natslink *link, struct listener *listener)
{
	if (link->connection == NULL || listener->ended || listener->subscription != NULL)
		return;
	if (link->nats.subscribe(&listener->subscription, link->connection, listener->pattern,
				 on_message, listener) != NATS_OK) {
		listener->subscription = NULL;
		return; /* the connection is closed: tried again with the next one */
	}
	begin_delivering(link);
	if (link->nats.set_on_complete(listener->subscription, on_complete, link) != NATS_OK)
		on_complete(link);
}

/* Returns whether no callback will be called any more. */
static bool await_callbacks(struct natslink *link)
{
	int64_t until_ns = clock_mono_ns() + NSEC_PER_SEC;
	bool ret;

	pthread_mutex_lock(&link->lock);
	while (link->delivering > 0 && clock_mono_ns() < until_ns)
		wait_asked(link, 100);
	ret = link->delivering == 0;
	pthread_mutex_unlock(&link->lock);
	return ret;
}

static void leave_broker(struct natslink *link)
{
	vec_foreach(listener, &link->listeners) {
		if ((*listener)->subscription != NULL)
			link->nats.subscription_destroy((*listener)->subscription);
		(*listener)->subscription = NULL;
	}
	if (link->connection != NULL)
		link->nats.connection_destroy(link->connection);
	link->connection = NULL;
}

/* --- the orders; the thread's --- */

static void count_dropped(struct natslink *link)
{
	pthread_mutex_lock(&link->lock);
	link->counts.dropped++;
	pthread_mutex_unlock(&link->lock);
}

static void send_message(struct natslink *link, const struct order *order)
{
	natsStatus status = NATS_CONNECTION_CLOSED;

	if (link->connection != NULL && order->reply[0] != '\0')
		status = link->nats.publish_request(link->connection, order->subject, order->reply,
						    order->data, (int)order->len);
	else if (link->connection != NULL)
		status = link->nats.publish(link->connection, order->subject, order->data,
					    (int)order->len);
	if (status != NATS_OK)
		count_dropped(link);
}

static void add_listener(struct natslink *link, const struct order *order)
{
	struct listener *listener = calloc(1, sizeof(*listener));

	if (listener == NULL || vec_push(&link->listeners, listener) < 0) {
		free(listener);
		count_dropped(link);
		return;
	}
	listener->link = link;
	listener->id = order->sub;
	memcpy(listener->pattern, order->subject, sizeof(listener->pattern));
	listen_at_broker(link, listener);
}

static void end_listener(struct natslink *link, uint64_t id)
{
	vec_foreach(listener, &link->listeners) {
		if ((*listener)->id != id)
			continue;
		(*listener)->ended = true;
		if ((*listener)->subscription != NULL)
			link->nats.subscription_destroy((*listener)->subscription);
		(*listener)->subscription = NULL;
	}
}

static void obey(struct natslink *link, const struct order *order)
{
	switch (order->kind) {
	case ORDER_PUBLISH:
		send_message(link, order);
		break;
	case ORDER_SUBSCRIBE:
		add_listener(link, order);
		break;
	case ORDER_UNSUBSCRIBE:
		end_listener(link, order->sub);
		break;
	}
}

/*
 * The next order. NULL: none came within a second, or the link closes, and none is left or its time
 * is up.
 */
static struct order *next_order(struct natslink *link, bool *closing)
{
	struct order *order;

	pthread_mutex_lock(&link->lock);
	if (link->orders == NULL && !link->closing)
		wait_asked(link, 1000);
	order = link->closing && clock_mono_ns() > link->close_ns ? NULL : link->orders;
	if (order != NULL) {
		link->orders = order->next;
		if (link->orders == NULL)
			link->orders_tail = &link->orders;
		link->order_cnt--;
		link->order_bytes -= order->len;
	}
	*closing = link->closing;
	pthread_mutex_unlock(&link->lock);
	return order;
}

/* libnats reconnects by itself, but gives up when the broker refuses the login twice. */
static bool mind_connection(struct natslink *link)
{
	natsConnStatus status = link->nats.status(link->connection);
	const char *text = "";

	if (status == NATS_CONN_STATUS_CLOSED) {
		(void)link->nats.last_error_of(link->connection, &text);
		note_failure(link, NATS_CONNECTION_CLOSED, text);
		leave_broker(link);
		return false;
	}
	pthread_mutex_lock(&link->lock);
	link->connected = status == NATS_CONN_STATUS_CONNECTED;
	if (!link->connected)
		(void)snprintf(link->why, sizeof(link->why), "%s: the connection broke",
			       link->login.url);
	pthread_mutex_unlock(&link->lock);
	return true;
}

/* Returns false when the link closes. Subscriptions wait here for the connection. */
static bool connect_again(struct natslink *link)
{
	int64_t wait_ms = RETRY_LEAST_MS;

	while (!try_connect(link)) {
		bool closing;

		wait_ms = MIN(2 * wait_ms, RETRY_MOST_MS);
		pthread_mutex_lock(&link->lock);
		for (int64_t until_ns =
			     clock_mono_ns() +
			     (wait_ms / 2 + rand_r(&link->seed) % wait_ms) * NSEC_PER_MSEC;
		     !link->closing && clock_mono_ns() < until_ns;)
			wait_asked(link, 100);
		closing = link->closing;
		pthread_mutex_unlock(&link->lock);
		if (closing)
			return false;
	}
	vec_foreach(listener, &link->listeners)
		listen_at_broker(link, *listener);
	return true;
}

static void *run_thread(void *arg)
{
	struct natslink *link = arg;
	bool closing = false;

	while (!closing) {
		struct order *order;

		if (link->connection == NULL && !connect_again(link))
			break;
		order = next_order(link, &closing);
		if (order != NULL)
			obey(link, order);
		closing &= order == NULL;
		free(order);
		if (!closing)
			(void)mind_connection(link);
	}
	if (link->connection != NULL)
		(void)link->nats.flush(link->connection, LAST_FLUSH_MS);
	leave_broker(link);
	return await_callbacks(link) ? link : NULL;
}

/* --- the bus's thread --- */

static int ask(struct natslink *link, const struct order *what, const void *data)
{
	struct order *order = calloc(1, sizeof(*order) + what->len);
	bool full;

	if (order != NULL) {
		*order = *what;
		if (data != NULL)
			memcpy(order->data, data, what->len);
		order->next = NULL;
	}
	pthread_mutex_lock(&link->lock);
	full = order == NULL ||
	       (what->kind == ORDER_PUBLISH && (link->order_cnt >= BUS_PENDING_CNT ||
						link->order_bytes + what->len > BUS_PENDING_BYTES));
	if (full) {
		link->counts.dropped += what->kind == ORDER_PUBLISH;
		free(order);
	} else {
		*link->orders_tail = order;
		link->orders_tail = &order->next;
		link->order_cnt++;
		link->order_bytes += order->len;
		(void)pthread_cond_signal(&link->asked);
	}
	pthread_mutex_unlock(&link->lock);
	return full ? -ENOBUFS : 0;
}

int natslink_publish(struct natslink *link, const char *subject, const char *reply,
		     const void *data, size_t len)
{
	struct order order = { .kind = ORDER_PUBLISH, .len = len };

	(void)snprintf(order.subject, sizeof(order.subject), "%s", subject);
	(void)snprintf(order.reply, sizeof(order.reply), "%s", reply);
	return ask(link, &order, data);
}

int natslink_subscribe(struct natslink *link, const char *pattern, uint64_t id)
{
	struct order order = { .kind = ORDER_SUBSCRIBE, .sub = id };

	(void)snprintf(order.subject, sizeof(order.subject), "%s", pattern);
	return ask(link, &order, NULL) < 0 ? -ENOMEM : 0;
}

void natslink_unsubscribe(struct natslink *link, uint64_t id)
{
	const struct order order = { .kind = ORDER_UNSUBSCRIBE, .sub = id };

	(void)ask(link, &order, NULL); /* no memory: its messages are dropped by the bus */
}

struct natslink_message *natslink_take(struct natslink *link)
{
	struct natslink_message *ret;

	pthread_mutex_lock(&link->lock);
	ret = link->came;
	link->came = NULL;
	link->came_tail = &link->came;
	link->counts.pending_cnt = link->counts.pending_bytes = 0;
	pthread_mutex_unlock(&link->lock);
	return ret;
}

bool natslink_is_connected(struct natslink *link, char *why, size_t size)
{
	bool ret;

	pthread_mutex_lock(&link->lock);
	ret = link->connected;
	(void)snprintf(why, size, "%s", link->why);
	pthread_mutex_unlock(&link->lock);
	return ret;
}

struct natslink_counts natslink_counts(struct natslink *link)
{
	struct natslink_counts ret;

	pthread_mutex_lock(&link->lock);
	ret = link->counts;
	pthread_mutex_unlock(&link->lock);
	return ret;
}

static int start(struct natslink *link, struct err *err)
{
	pthread_condattr_t attributes;
	int ret;

	(void)pthread_condattr_init(&attributes);
	(void)pthread_condattr_setclock(&attributes, CLOCK_MONOTONIC);
	(void)pthread_cond_init(&link->asked, &attributes);
	(void)pthread_condattr_destroy(&attributes);
	(void)pthread_mutex_init(&link->lock, NULL);
	ret = pthread_create(&link->thread, NULL, run_thread, link);
	return ret == 0 ? 0 : err_set(err, ret, "a thread for the broker: %s", strerror(ret));
}

int natslink_open(const struct bus_login *login, void (*wake)(void *arg), void *wake_arg,
		  struct natslink **ret, struct err *err)
{
	struct natslink *link = calloc(1, sizeof(*link));
	int r;

	if (link == NULL)
		return err_set(err, ENOMEM, "out of memory");
	r = natslogin_check(login, &link->url, err);
	if (r == 0)
		r = natslibrary_open(&link->nats, err);
	if (r == 0) {
		link->login = *login;
		link->wake = wake;
		link->wake_arg = wake_arg;
		link->orders_tail = &link->orders;
		link->came_tail = &link->came;
		link->seed = (unsigned)clock_wall_ns() ^ (unsigned)getpid();
		r = start(link, err);
	}
	if (r < 0) {
		free(link);
		return r;
	}
	*ret = link;
	return 0;
}

struct natslink *natslink_close(struct natslink *link)
{
	void *quiet;

	if (link == NULL)
		return NULL;
	pthread_mutex_lock(&link->lock);
	link->closing = true;
	link->close_ns = clock_mono_ns() + LAST_FLUSH_MS * NSEC_PER_MSEC;
	(void)pthread_cond_signal(&link->asked);
	pthread_mutex_unlock(&link->lock);
	(void)pthread_join(link->thread, &quiet);
	if (quiet == NULL)
		return NULL; /* a callback may still use it: it is never freed */
	while (link->orders != NULL) {
		struct order *next = link->orders->next;

		free(link->orders);
		link->orders = next;
	}
	while (link->came != NULL) {
		struct natslink_message *next = link->came->next;

		free(link->came);
		link->came = next;
	}
	vec_foreach(listener, &link->listeners)
		free(*listener);
	vec_done(&link->listeners);
	(void)pthread_cond_destroy(&link->asked);
	(void)pthread_mutex_destroy(&link->lock);
	free(link);
	return NULL;
}
