/* SPDX-License-Identifier: Apache-2.0 */
/* All hosts of fleetsockets_bench in one loop, each with a connection that speaks plain NATS. */
#include "base/clock.h"
#include "live/cluster/cluster.h"
#include "live/cluster/convert.h"
#include "live/cluster/fleetsockets_parts.h"
#include "live/hub/test_states.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#define ROOM 8192u	  /* bytes of a connection that are not parsed yet */
#define FINGERPRINT 4096u /* bytes of a result */
#define STEP_NS (200 * NSEC_PER_MSEC)
#define BEAT_NS NSEC_PER_SEC
#define TURNS 100u /* of a second: hosts speak by turns */
#define AGAIN_NS (2 * NSEC_PER_SEC)

struct host {
	int fd;
	uint32_t number;
	size_t len; /* of in */
	uint64_t order;
	int64_t sent_ns; /* its result; 0: none */
	bool done;	 /* it was acknowledged */
	char in[ROOM];
};

static struct {
	struct fleetsockets *shared;
	struct host *hosts;
	uint32_t cnt;
	uint64_t second;
} p;

static void stop(const char *what)
{
	(void)fprintf(stderr, "fleetsockets_bench: hosts: %s: %s\n", what, strerror(errno));
	_exit(1);
}

/* A small part of what a socket buffers: it does not block for long. */
static void put(const struct host *host, const void *data, size_t len)
{
	const char *at = data;

	while (len > 0) {
		ssize_t sent = send(host->fd, at, len, MSG_NOSIGNAL);

		if (sent <= 0)
			stop("send");
		at += sent;
		len -= (size_t)sent;
	}
}

/* One message: its states and, with an order, its result. */
static void say(struct host *host, uint64_t order)
{
	static uint8_t bytes[16384], fingerprint[FINGERPRINT];
	struct wire_state state =
		test_worker((int)host->number, 10 + p.second * NSEC_PER_SEC / STEP_NS, STEP_NS);
	Cluster__State wire, *states[] = { &wire };
	Cluster__Piece piece;
	Cluster__Answer answer;
	Cluster__Item with_piece, with_answer, *items[] = { &with_piece, &with_answer };
	Cluster__Up up;
	char name[32];
	size_t len;
	int head;

	(void)snprintf(name, sizeof(name), "gpu-%u", host->number);
	cluster__up__init(&up);
	cluster__piece__init(&piece);
	cluster__answer__init(&answer);
	cluster__item__init(&with_piece);
	cluster__item__init(&with_answer);
	state.worker = 1;
	state.world_size = (int32_t)p.cnt;
	state.last_ns = clock_mono_ns();
	convert_state_out(&state, &wire);
	up.version = CLUSTER_VERSION;
	up.host = name;
	up.program = (char *)(uintptr_t)PT_VERSION;
	up.boot = host->number + 1;
	up.node_rank = host->number;
	up.sent_ns = clock_mono_ns();
	up.states = states;
	up.n_states = 1;
	up.oldest = 1;
	piece.worker = answer.worker = 1;
	piece.order = answer.order = order;
	piece.rank = (int32_t)host->number;
	piece.size = piece.data.len = FINGERPRINT;
	piece.data.data = fingerprint;
	answer.outcome = OUTCOME_SUMMARIZED;
	with_piece.number = 1;
	with_piece.piece = &piece;
	with_answer.number = 2;
	with_answer.answer = &answer;
	up.items = items;
	up.n_items = order != 0 ? 2 : 0;
	len = cluster__up__get_packed_size(&up);
	head = snprintf((char *)bytes, 256, "PUB pt.v1.job.up.%s %zu\r\n", name, len);
	(void)cluster__up__pack(&up, bytes + head);
	memcpy(bytes + head + len, "\r\n", 2);
	put(host, bytes, (size_t)head + len + 2);
}

static void take_down(struct host *host, const uint8_t *data, size_t len)
{
	Cluster__Down *down = cluster__down__unpack(NULL, len, data);

	if (down == NULL)
		stop("a message that is not readable");
	for (size_t i = 0; i < down->n_acks; i++)
		host->done |= down->acks[i]->number >= 2;
	if (down->order != NULL && host->order == 0) {
		p.shared->heard_ns[host->number] = clock_mono_ns();
		host->order = down->order->id;
	}
	cluster__down__free_unpacked(down, NULL);
}

/* Parses one line, with its payload. Returns the bytes of it, 0: it is not whole yet. */
static size_t take_line(struct host *host, char *at, size_t len)
{
	char *end = memmem(at, len, "\r\n", 2);
	size_t line = end != NULL ? (size_t)(end - at) + 2 : 0, payload;

	if (line == 0)
		return 0;
	*end = '\0';
	if (strncmp(at, "PING", 4) == 0)
		put(host, "PONG\r\n", 6);
	if (strncmp(at, "-ERR", 4) == 0)
		stop(at);
	if (strncmp(at, "MSG ", 4) != 0)
		return line;
	payload = strtoul(strrchr(at, ' ') + 1, NULL, 10);
	*end = '\r';
	if (len < line + payload + 2)
		return 0;
	take_down(host, (const uint8_t *)at + line, payload);
	return line + payload + 2;
}

static void take_input(struct host *host)
{
	ssize_t got = recv(host->fd, host->in + host->len, ROOM - host->len, MSG_DONTWAIT);
	size_t taken = 0, one;

	if (got <= 0)
		stop("recv");
	host->len += (size_t)got;
	while ((one = take_line(host, host->in + taken, host->len - taken)) > 0)
		taken += one;
	host->len -= taken;
	memmove(host->in, host->in + taken, host->len);
	if (host->len == ROOM)
		stop("a message that is too long");
}

static void join(struct host *host, unsigned port, int epoll_fd)
{
	const struct sockaddr_in to = { .sin_family = AF_INET,
					.sin_port = htons((uint16_t)port),
					.sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct epoll_event event = { .events = EPOLLIN, .data.ptr = host };
	char text[256];

	host->fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (host->fd < 0 || connect(host->fd, (const struct sockaddr *)&to, sizeof(to)) != 0 ||
	    epoll_ctl(epoll_fd, EPOLL_CTL_ADD, host->fd, &event) != 0)
		stop("connect");
	(void)snprintf(text, sizeof(text),
		       "CONNECT {\"verbose\":false,\"pedantic\":false}\r\n"
		       "SUB pt.v1.job.down 1\r\nSUB pt.v1.job.to.gpu-%u 2\r\n",
		       host->number);
	put(host, text, strlen(text));
}

/* A result that is not acknowledged is sent again. */
static void mind_result(struct host *host, int64_t now_ns)
{
	if (host->order == 0 || host->done ||
	    (host->sent_ns > 0 && now_ns < host->sent_ns + AGAIN_NS))
		return;
	p.shared->resent += host->sent_ns > 0;
	host->sent_ns = now_ns;
	say(host, host->order);
}

static void loop(int epoll_fd)
{
	int64_t next_ns = clock_mono_ns();
	uint32_t turn = 0;

	for (;;) {
		struct epoll_event events[256];
		int cnt = epoll_wait(epoll_fd, events, 256, 2);
		int64_t now_ns = clock_mono_ns();

		for (int i = 0; i < cnt; i++) {
			take_input(events[i].data.ptr);
			mind_result(events[i].data.ptr, now_ns);
		}
		if (now_ns < next_ns)
			continue;
		next_ns += BEAT_NS / TURNS;
		for (uint32_t i = turn; i < p.cnt; i += TURNS) {
			if (p.hosts[i].order == 0)
				say(&p.hosts[i], 0);
			mind_result(&p.hosts[i], now_ns);
		}
		turn = (turn + 1) % TURNS;
		p.second += turn == 0;
	}
}

void fleetsockets_play(struct fleetsockets *shared, unsigned port, uint32_t hosts)
{
	int epoll_fd = epoll_create1(EPOLL_CLOEXEC);

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	p.shared = shared;
	p.cnt = hosts;
	p.hosts = calloc(hosts, sizeof(*p.hosts));
	if (p.hosts == NULL || epoll_fd < 0)
		stop("out of memory");
	for (uint32_t i = 0; i < hosts; i++) {
		p.hosts[i].number = i;
		join(&p.hosts[i], port, epoll_fd);
	}
	loop(epoll_fd);
	_exit(0);
}
