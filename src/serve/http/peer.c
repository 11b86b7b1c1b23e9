/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union end {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static int unix_user(int fd, uid_t *ret)
{
	struct ucred cred;
	socklen_t len = sizeof(cred);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &cred, &len) < 0)
		return -errno;
	*ret = cred.uid;
	return 0;
}

struct question {
	struct nlmsghdr head;
	struct inet_diag_req_v2 body;
};

/* Of the socket whose own end is there and whose other end is here. */
static int fill_question(const union end *here, const union end *there, struct question *ret)
{
	struct inet_diag_sockid *id = &ret->body.id;

	*ret = (struct question){ 0 };
	ret->head.nlmsg_len = sizeof(*ret);
	ret->head.nlmsg_type = SOCK_DIAG_BY_FAMILY;
	ret->head.nlmsg_flags = NLM_F_REQUEST;
	ret->body.sdiag_family = (uint8_t)here->any.sa_family;
	ret->body.sdiag_protocol = IPPROTO_TCP;
	ret->body.idiag_states = UINT32_MAX;
	id->idiag_cookie[0] = id->idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	if (here->any.sa_family == AF_INET) {
		id->idiag_sport = there->v4.sin_port;
		id->idiag_dport = here->v4.sin_port;
		memcpy(id->idiag_src, &there->v4.sin_addr, sizeof(there->v4.sin_addr));
		memcpy(id->idiag_dst, &here->v4.sin_addr, sizeof(here->v4.sin_addr));
		return 0;
	}
	if (here->any.sa_family != AF_INET6)
		return -EAFNOSUPPORT;
	id->idiag_sport = there->v6.sin6_port;
	id->idiag_dport = here->v6.sin6_port;
	memcpy(id->idiag_src, &there->v6.sin6_addr, sizeof(there->v6.sin6_addr));
	memcpy(id->idiag_dst, &here->v6.sin6_addr, sizeof(here->v6.sin6_addr));
	return 0;
}

static int ask(int netlink, const struct question *question, uid_t *ret)
{
	struct {
		struct nlmsghdr head;
		struct inet_diag_msg body;
		char rest[512];
	} answer;
	ssize_t len;

	if (send(netlink, question, sizeof(*question), 0) < 0)
		return -errno;
	len = recv(netlink, &answer, sizeof(answer), 0);
	if (len < 0)
		return -errno;
	if ((size_t)len < sizeof(answer.head) + sizeof(answer.body) ||
	    answer.head.nlmsg_type != SOCK_DIAG_BY_FAMILY)
		return -ENOENT;
	/* A socket that its process has closed counts as root's. */
	if (answer.body.idiag_inode == 0)
		return -ENOENT;
	*ret = answer.body.idiag_uid;
	return 0;
}

int peer_user(int fd, uid_t *ret)
{
	union end here = { 0 }, there = { 0 };
	socklen_t here_len = sizeof(here), there_len = sizeof(there);
	struct timeval limit = { .tv_sec = 1 };
	struct question question;
	int netlink, r;

	if (getsockname(fd, &here.any, &here_len) < 0)
		return -errno;
	if (here.any.sa_family == AF_UNIX)
		return unix_user(fd, ret);
	if (getpeername(fd, &there.any, &there_len) < 0)
		return -errno;
	r = fill_question(&here, &there, &question);
	if (r < 0)
		return r;
	netlink = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_SOCK_DIAG);
	if (netlink < 0)
		return -errno;
	(void)setsockopt(netlink, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	r = ask(netlink, &question, ret);
	(void)close(netlink);
	return r;
}
