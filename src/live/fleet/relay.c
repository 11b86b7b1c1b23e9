/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/relay.h"

#include "base/vec.h"
#include "live/fleet/relayframe.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define READ_BYTES 65536u
#define READS_MAX 32 /* at once: other work of the loop waits */

struct relay {
	struct bus *bus;
	int fd;
	uv_poll_t poll;
	bool ended; /* of the other end, or what it sends is no message */
	char takes[2][BUS_SUBJECT_MAX];
	struct bus_sub *subs[2];
	VEC(char) in, out;
	size_t sent; /* bytes of out */
	struct relay_stats stats;
};

static void on_ready(uv_poll_t *poll, int status, int events);

static void end(struct relay *relay)
{
	relay->ended = true;
	(void)uv_poll_stop(&relay->poll);
}

/* --- to the other end --- */

static void send_some(struct relay *relay)
{
	while (relay->sent < relay->out.cnt) {
		ssize_t len = send(relay->fd, relay->out.data + relay->sent,
				   relay->out.cnt - relay->sent, MSG_DONTWAIT | MSG_NOSIGNAL);

		if (len < 0 && errno == EINTR)
			continue;
		if (len < 0) {
			if (errno != EAGAIN)
				end(relay);
			break;
		}
		relay->sent += (size_t)len;
	}
	if (relay->sent == relay->out.cnt)
		relay->sent = relay->out.cnt = 0;
	if (!relay->ended)
		(void)uv_poll_start(&relay->poll,
				    UV_READABLE | (relay->out.cnt > 0 ? UV_WRITABLE : 0), on_ready);
}

/* What was sent already makes room at the front. */
static void make_room(struct relay *relay)
{
	if (relay->sent == 0)
		return;
	relay->out.cnt -= relay->sent;
	memmove(relay->out.data, relay->out.data + relay->sent, relay->out.cnt);
	relay->sent = 0;
}

static void pass(void *arg, const struct bus_message *message)
{
	struct relay *relay = arg;
	struct relayframe_head head = { .magic = RELAYFRAME_MAGIC,
					.subject_len = (uint32_t)strlen(message->subject),
					.data_len = (uint32_t)message->len };
	size_t bytes = sizeof(head) + head.subject_len + head.data_len;
	bool was_empty = relay->out.cnt == 0;
	char *at;

	make_room(relay);
	if (relay->ended || relay->out.cnt + bytes > RELAY_PENDING_BYTES ||
	    vec_reserve(&relay->out, relay->out.cnt + bytes) < 0) {
		relay->stats.dropped++;
		return;
	}
	at = relay->out.data + relay->out.cnt;
	memcpy(at, &head, sizeof(head));
	memcpy(at + sizeof(head), message->subject, head.subject_len);
	if (message->len > 0)
		memcpy(at + sizeof(head) + head.subject_len, message->data, message->len);
	relay->out.cnt += bytes;
	relay->stats.passed++;
	if (was_empty)
		send_some(relay);
}

/* --- from the other end --- */

static void take(struct relay *relay, const struct relayframe *frame)
{
	for (size_t i = 0; i < ARRAY_SIZE(relay->takes); i++) {
		if (strcmp(relay->takes[i], frame->subject) != 0)
			continue;
		if (bus_pub(relay->bus, frame->subject, frame->data, frame->len) == 0)
			relay->stats.taken++;
		else
			relay->stats.dropped++;
		return;
	}
	relay->stats.refused++;
}

static void take_frames(struct relay *relay)
{
	struct relayframe frame;
	size_t at = 0;
	int64_t len;

	while ((len = relayframe_parse(relay->in.data + at, relay->in.cnt - at, &frame)) > 0) {
		take(relay, &frame);
		at += (size_t)len;
	}
	if (len < 0) {
		relay->stats.refused++;
		end(relay);
		return;
	}
	relay->in.cnt -= at;
	memmove(relay->in.data, relay->in.data + at, relay->in.cnt);
}

static void receive(struct relay *relay)
{
	for (int i = 0; i < READS_MAX && !relay->ended; i++) {
		ssize_t len;

		/* A message that is not complete is bounded by relayframe_parse(). */
		if (vec_reserve(&relay->in, relay->in.cnt + READ_BYTES) < 0) {
			end(relay);
			return;
		}
		len = recv(relay->fd, relay->in.data + relay->in.cnt, READ_BYTES, MSG_DONTWAIT);
		if (len < 0 && (errno == EAGAIN || errno == EINTR))
			return;
		if (len <= 0) {
			end(relay);
			return;
		}
		relay->in.cnt += (size_t)len;
		take_frames(relay);
	}
}

static void on_ready(uv_poll_t *poll, int status, int events)
{
	struct relay *relay = poll->data;

	if (status < 0)
		end(relay);
	if (!relay->ended && (events & UV_WRITABLE) != 0)
		send_some(relay);
	if (!relay->ended && (events & UV_READABLE) != 0)
		receive(relay);
}

/* --- begin and end --- */

static void free_relay(struct relay *relay)
{
	for (size_t i = 0; i < ARRAY_SIZE(relay->subs); i++)
		relay->subs[i] = bus_unsub(relay->bus, relay->subs[i]);
	(void)close(relay->fd);
	vec_done(&relay->in);
	vec_done(&relay->out);
}

static void on_closed(uv_handle_t *handle)
{
	free(handle->data);
}

int relay_open(const struct relay_setup *setup, struct relay **ret)
{
	struct relay *relay = calloc(1, sizeof(*relay));
	int r = 0;

	if (relay == NULL) {
		(void)close(setup->fd);
		return -ENOMEM;
	}
	relay->bus = setup->bus;
	relay->fd = setup->fd;
	for (size_t i = 0; i < ARRAY_SIZE(setup->takes) && setup->takes[i] != NULL; i++)
		(void)snprintf(relay->takes[i], sizeof(relay->takes[i]), "%s", setup->takes[i]);
	for (size_t i = 0; i < ARRAY_SIZE(setup->passes) && r == 0 && setup->passes[i] != NULL; i++)
		r = bus_sub(setup->bus, setup->passes[i], pass, relay, &relay->subs[i]);
	if (r == 0)
		r = uv_poll_init(setup->loop, &relay->poll, setup->fd);
	if (r < 0) {
		free_relay(relay);
		free(relay);
		return r;
	}
	relay->poll.data = relay;
	(void)uv_poll_start(&relay->poll, UV_READABLE, on_ready);
	*ret = relay;
	return 0;
}

struct relay *relay_close(struct relay *relay)
{
	if (relay == NULL)
		return NULL;
	if (!relay->ended)
		send_some(relay);
	(void)uv_poll_stop(&relay->poll);
	free_relay(relay);
	uv_close((uv_handle_t *)&relay->poll, on_closed);
	return NULL;
}

struct relay_stats relay_stats(const struct relay *relay)
{
	return relay->stats;
}
