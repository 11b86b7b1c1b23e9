/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/sockdiag.h"

#include <errno.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define ANSWER_BYTES 32768 /* the kernel never makes a larger one */
#define ANSWERS_MAX 4096   /* of one list: 100 000 sockets and more */

/* States of include/net/tcp_states.h that have no counters of their own. */
#define STATE_TIME_WAIT 6
#define STATE_CLOSE_WAIT 8
#define STATE_LAST_ACK 9
#define STATE_LISTEN 10
#define STATE_CLOSING 11
#define STATE_NEW_SYN_RECV 12
#define STATES_WANTED (~(1u << STATE_TIME_WAIT | 1u << STATE_LISTEN | 1u << STATE_NEW_SYN_RECV))

/* --- the kernel's answer --- */

/* What has come in an order that the kernel counts as a byte: the peer's end of stream. */
static uint64_t end_of_stream(uint8_t state)
{
	return state == STATE_CLOSE_WAIT || state == STATE_LAST_ACK || state == STATE_CLOSING;
}

/*
 * info[len]: as much of struct tcp_info as this kernel has. Before 4.19 it had
 * no bytes_sent; bytes_acked counts the same later, and the handshake as one byte.
 */
static bool read_info(const unsigned char *info, size_t len, uint8_t state,
		      struct sockdiag_socket *ret)
{
	struct tcp_info tcp = { 0 };

	if (len < offsetof(struct tcp_info, tcpi_bytes_received) + sizeof(tcp.tcpi_bytes_received))
		return false;
	memcpy(&tcp, info, MIN(len, sizeof(tcp)));
	ret->busy_us = tcp.tcpi_busy_time;
	ret->limited_us = tcp.tcpi_rwnd_limited;
	ret->retransmitted_bytes = tcp.tcpi_bytes_retrans;
	ret->rtt_us = tcp.tcpi_rtt;
	ret->rx_bytes = tcp.tcpi_bytes_received;
	ret->rx_bytes -= MIN(ret->rx_bytes, end_of_stream(state));
	if (len < offsetof(struct tcp_info, tcpi_bytes_retrans) + sizeof(tcp.tcpi_bytes_retrans))
		ret->tx_bytes = tcp.tcpi_bytes_acked;
	else
		ret->tx_bytes =
			tcp.tcpi_bytes_sent - MIN(tcp.tcpi_bytes_retrans, tcp.tcpi_bytes_sent);
	return true;
}

/* message[len]: a struct inet_diag_msg and its attributes. */
static int parse_socket(const unsigned char *message, size_t len, sockdiag_sockets *out)
{
	struct sockdiag_socket seen = { 0 };
	struct inet_diag_msg head;
	size_t off = sizeof(head);

	if (len < sizeof(head))
		return -EINVAL;
	memcpy(&head, message, sizeof(head));
	seen.cookie = (uint64_t)head.id.idiag_cookie[1] << 32 | head.id.idiag_cookie[0];
	seen.inode = head.idiag_inode;
	seen.family = head.idiag_family;
	seen.id = head.id;
	while (off + sizeof(struct rtattr) <= len) {
		struct rtattr attr;

		memcpy(&attr, message + off, sizeof(attr));
		if (attr.rta_len < sizeof(attr) || attr.rta_len > len - off)
			return -EINVAL;
		if (attr.rta_type == INET_DIAG_INFO &&
		    read_info(message + off + sizeof(attr), attr.rta_len - sizeof(attr),
			      head.idiag_state, &seen))
			return vec_push(out, seen);
		off += RTA_ALIGN(attr.rta_len);
	}
	return 0;
}

/* payload[len] of an error, or of the end of a dump, begins with a number. */
static int parse_status(const unsigned char *payload, size_t len)
{
	int32_t status = 0;

	if (len >= sizeof(status))
		memcpy(&status, payload, sizeof(status));
	return status < 0 && status > -4096 ? status : 0;
}

int sockdiag_parse(const void *data, size_t len, uint32_t seq, sockdiag_sockets *out)
{
	const unsigned char *bytes = data;
	size_t off = 0;

	while (off < len) {
		struct nlmsghdr head;
		size_t body;
		int ret = 0;

		if (len - off < sizeof(head))
			return -EINVAL;
		memcpy(&head, bytes + off, sizeof(head));
		if (head.nlmsg_len < sizeof(head) || head.nlmsg_len > len - off)
			return -EINVAL;
		body = head.nlmsg_len - sizeof(head);
		if (head.nlmsg_seq == seq &&
		    (head.nlmsg_type == SOCK_DIAG_BY_FAMILY || head.nlmsg_type == TCPDIAG_GETSOCK))
			ret = parse_socket(bytes + off + sizeof(head), body, out);
		else if (head.nlmsg_seq == seq &&
			 (head.nlmsg_type == NLMSG_DONE || head.nlmsg_type == NLMSG_ERROR)) {
			ret = parse_status(bytes + off + sizeof(head), body);
			return ret < 0 ? ret : 1;
		}
		if (ret < 0)
			return ret;
		off += MIN((size_t)NLMSG_ALIGN(head.nlmsg_len), len - off);
	}
	return 0;
}

/* --- questions --- */

struct request {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

static struct request make_request(uint32_t seq, uint16_t flags, uint8_t family)
{
	return (struct request){
		.head = { .nlmsg_len = sizeof(struct request),
			  .nlmsg_type = SOCK_DIAG_BY_FAMILY,
			  .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags),
			  .nlmsg_seq = seq },
		.body = { .sdiag_family = family,
			  .sdiag_protocol = IPPROTO_TCP,
			  .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			  .idiag_states = STATES_WANTED },
	};
}

static int put_question(int fd, const void *request, size_t len)
{
	ssize_t sent = send(fd, request, len, MSG_DONTWAIT);

	if (sent < 0)
		return -errno;
	return sent == (ssize_t)len ? 0 : -EIO;
}

/* One answer into data[ANSWER_BYTES]. The kernel has answered before send() returned. */
static ssize_t take_answer(int fd, unsigned char *data)
{
	ssize_t len;

	do
		len = recv(fd, data, ANSWER_BYTES, MSG_DONTWAIT);
	while (len < 0 && errno == EINTR);
	if (len < 0)
		return errno == EAGAIN ? -EIO : -errno;
	return len > 0 ? len : -EIO;
}

/* A list is made while it is read: an empty queue before its end means that it broke off. */
static int take_list(struct sockdiag *diag, sockdiag_sockets *out)
{
	unsigned char answer[ANSWER_BYTES];
	int ret = 0;

	for (int i = 0; i < ANSWERS_MAX && ret == 0; i++) {
		ssize_t len = take_answer(diag->fd, answer);

		if (len < 0)
			return (int)len;
		ret = sockdiag_parse(answer, (size_t)len, diag->seq, out);
	}
	return ret == 0 ? -EIO : MIN(ret, 0);
}

/* The oldest question lists both families in one walk of the hash table. */
static int list_at_once(struct sockdiag *diag, sockdiag_sockets *out)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_req body;
	} request = {
		.head = { .nlmsg_len = sizeof(request),
			  .nlmsg_type = TCPDIAG_GETSOCK,
			  .nlmsg_flags = NLM_F_REQUEST | NLM_F_DUMP,
			  .nlmsg_seq = ++diag->seq },
		.body = { .idiag_family = AF_INET,
			  .idiag_ext = 1 << (INET_DIAG_INFO - 1),
			  .idiag_states = STATES_WANTED },
	};
	int ret = put_question(diag->fd, &request, sizeof(request));

	return ret == 0 ? take_list(diag, out) : ret;
}

static int list_family(struct sockdiag *diag, uint8_t family, sockdiag_sockets *out)
{
	struct request request = make_request(++diag->seq, NLM_F_DUMP, family);
	int ret = put_question(diag->fd, &request, sizeof(request));

	return ret == 0 ? take_list(diag, out) : ret;
}

int sockdiag_list(struct sockdiag *diag, sockdiag_sockets *out)
{
	size_t before = out->cnt;
	int ret = list_at_once(diag, out);

	if (ret == 0 || ret == -ENOMEM)
		return ret;
	out->cnt = before;
	ret = list_family(diag, AF_INET, out);
	return ret == 0 ? list_family(diag, AF_INET6, out) : ret;
}

/* Each is answered by itself, with an error when the socket is gone. */
int sockdiag_ask(struct sockdiag *diag, const struct sockdiag_socket *const *batch, size_t cnt,
		 sockdiag_sockets *out)
{
	struct request requests[SOCKDIAG_ASK_MAX];
	unsigned char answer[ANSWER_BYTES];
	int ret;

	diag->seq++;
	for (size_t i = 0; i < cnt; i++) {
		requests[i] = make_request(diag->seq, 0, batch[i]->family);
		requests[i].body.id = batch[i]->id;
	}
	ret = put_question(diag->fd, requests, cnt * sizeof(requests[0]));
	for (size_t i = 0; i < cnt && ret == 0; i++) {
		ssize_t len = take_answer(diag->fd, answer);

		if (len < 0)
			return (int)len;
		ret = sockdiag_parse(answer, (size_t)len, diag->seq, out);
		ret = ret == -ENOMEM ? ret : 0;
	}
	return ret;
}

int sockdiag_open(struct sockdiag *diag)
{
	*diag = (struct sockdiag){ .fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC,
						NETLINK_SOCK_DIAG) };
	return diag->fd < 0 ? -errno : 0;
}

void sockdiag_close(struct sockdiag *diag)
{
	if (diag->fd >= 0)
		(void)close(diag->fd);
	diag->fd = -1;
}
