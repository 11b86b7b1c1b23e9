/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/sockets.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What has cost so much may come again after this time. */
static int64_t wait_for(int64_t cost_ns, int64_t divisor, int64_t least_ns)
{
	return MAX(least_ns, cost_ns * divisor);
}

static int by_cookie(const void *a, const void *b)
{
	const struct sockdiag_socket *x = a, *y = b;

	return (x->cookie > y->cookie) - (x->cookie < y->cookie);
}

static uint64_t growth(uint64_t before, uint64_t after)
{
	return after > before ? after - before : 0;
}

/* What the socket has moved since it was last seen, or ever, is its owner's. */
static void credit(struct sockets *sockets, const struct sockdiag_socket *before,
		   struct socket_known *now)
{
	struct socket_owner *owner = &sockets->owners.data[now->owner];
	uint64_t tx_bytes = growth(before != NULL ? before->tx_bytes : 0, now->seen.tx_bytes);

	owner->tx_bytes += tx_bytes;
	owner->rx_bytes += growth(before != NULL ? before->rx_bytes : 0, now->seen.rx_bytes);
	if (before != NULL)
		owner->look_tx_bytes += tx_bytes;
	flows_add(&owner->flows, before, &now->seen, &now->counted);
}

static struct socket_known *find_known(struct sockets *sockets, uint64_t cookie)
{
	const struct sockdiag_socket key = { .cookie = cookie };

	if (sockets->known.cnt == 0)
		return NULL;
	/* The first member is what is compared. */
	return bsearch(&key, sockets->known.data, sockets->known.cnt, sizeof(*sockets->known.data),
		       by_cookie);
}

/*
 * Both lists are sorted by cookie, so one walk takes over what is known of the
 * sockets that are still there; of those that are not, the bytes stay credited.
 */
static int merge(struct sockets *sockets)
{
	size_t at = 0, cnt = MIN(sockets->seen.cnt, (size_t)SOCKETS_MAX);
	int ret = vec_reserve(&sockets->next, cnt);

	if (ret < 0)
		return ret;
	sockets->dropped += sockets->seen.cnt - cnt;
	sockets->next.cnt = 0;
	for (size_t i = 0; i < cnt; i++) {
		struct socket_known now = { sockets->seen.data[i], SOCKET_OWNER_UNKNOWN, false };
		const struct socket_known *before;

		while (at < sockets->known.cnt &&
		       sockets->known.data[at].seen.cookie < now.seen.cookie)
			at++;
		before = at < sockets->known.cnt ? &sockets->known.data[at] : NULL;
		if (before != NULL && before->seen.cookie == now.seen.cookie) {
			now.owner = before->owner;
			now.counted = before->counted;
			if (now.owner >= 0)
				credit(sockets, &before->seen, &now);
		}
		sockets->next.data[sockets->next.cnt++] = now;
	}
	__typeof__(sockets->known) swap = sockets->known;

	sockets->known = sockets->next;
	sockets->next = swap;
	return 0;
}

static int by_inode(const void *a, const void *b, void *arg)
{
	const struct socket_known *known = arg;
	uint32_t x = known[*(const size_t *)a].seen.inode, y = known[*(const size_t *)b].seen.inode;

	return (x > y) - (x < y);
}

static int list_unknown(struct sockets *sockets)
{
	sockets->unknown.cnt = 0;
	for (size_t i = 0; i < sockets->known.cnt; i++) {
		int ret = 0;

		if (sockets->known.data[i].owner == SOCKET_OWNER_UNKNOWN &&
		    sockets->known.data[i].seen.inode != 0)
			ret = vec_push(&sockets->unknown, i);
		if (ret < 0)
			return ret;
	}
	if (sockets->unknown.cnt > 0)
		qsort_r(sockets->unknown.data, sockets->unknown.cnt, sizeof(size_t), by_inode,
			sockets->known.data);
	return 0;
}

static struct socket_known *find_unknown(struct sockets *sockets, uint64_t inode)
{
	size_t low = 0, high = sockets->unknown.cnt;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		struct socket_known *known = &sockets->known.data[sockets->unknown.data[middle]];

		if (known->seen.inode == inode)
			return known;
		if (known->seen.inode < inode)
			low = middle + 1;
		else
			high = middle;
	}
	return NULL;
}

/* A descriptor's link reads "socket:[INODE]" when it is a socket. */
static uint64_t socket_inode(int dir_fd, const char *name)
{
	static const char prefix[] = "socket:[";
	char target[64];
	ssize_t len = readlinkat(dir_fd, name, target, sizeof(target) - 1);

	if (len <= 0)
		return 0;
	target[len] = '\0';
	if (strncmp(target, prefix, sizeof(prefix) - 1) != 0)
		return 0;
	return strtoull(target + sizeof(prefix) - 1, NULL, 10);
}

/* A descriptor inherited through fork has two holders: it is the first one's. */
static void find_of(struct sockets *sockets, int32_t owner, size_t *links_left)
{
	char path[4096];
	DIR *dir;

	if ((size_t)snprintf(path, sizeof(path), "%s/proc/%" PRIu32 "/fd", sockets->root,
			     sockets->owners.data[owner].pid) >= sizeof(path))
		return;
	dir = opendir(path);
	if (dir == NULL)
		return; /* the process has ended, or is another user's */
	for (struct dirent *entry; *links_left > 0 && (entry = readdir(dir)) != NULL;) {
		struct socket_known *known;

		if (!isdigit((unsigned char)entry->d_name[0]))
			continue;
		(*links_left)--;
		known = find_unknown(sockets, socket_inode(dirfd(dir), entry->d_name));
		if (known == NULL || known->owner != SOCKET_OWNER_UNKNOWN)
			continue;
		known->owner = owner;
		if (sockets->owners.data[owner].followed)
			credit(sockets, NULL, known);
	}
	(void)closedir(dir);
}

/* Descriptors are read only when there is a socket without a known owner. */
static int find_owners(struct sockets *sockets, int64_t now_ns, int64_t (*cost_clock)(void))
{
	int64_t begin_ns = cost_clock();
	size_t links_left = SOCKETS_LINK_MAX;
	int ret;

	if (now_ns < sockets->find_due_ns)
		return 0;
	ret = list_unknown(sockets);
	if (ret < 0)
		return ret;
	for (size_t i = 0; i < sockets->owners.cnt; i++) {
		if (sockets->unknown.cnt > 0)
			find_of(sockets, (int32_t)i, &links_left);
		sockets->owners.data[i].followed = true;
	}
	vec_foreach(i, &sockets->unknown) {
		if (sockets->known.data[*i].owner == SOCKET_OWNER_UNKNOWN)
			sockets->known.data[*i].owner = SOCKET_OWNER_OTHER;
	}
	if (sockets->unknown.cnt > 0)
		sockets->find_due_ns = now_ns + wait_for(cost_clock() - begin_ns,
							 SOCKETS_LIST_DIVISOR, SOCKETS_FIND_NS);
	return 0;
}

/* --- looks --- */

void sockets_open(struct sockets *sockets, const char *root)
{
	*sockets = (struct sockets){ .root = root };
	sockets->error = sockdiag_open(&sockets->diag);
}

void sockets_close(struct sockets *sockets)
{
	sockdiag_close(&sockets->diag);
	vec_foreach(owner, &sockets->owners)
		flows_done(&owner->flows);
	vec_done(&sockets->owners);
	vec_done(&sockets->known);
	vec_done(&sockets->next);
	vec_done(&sockets->unknown);
	vec_done(&sockets->seen);
}

int sockets_follow(struct sockets *sockets, uint32_t pid)
{
	int ret;

	if (sockets_find(sockets, pid) != NULL)
		return 0;
	ret = vec_push(&sockets->owners, (struct socket_owner){ .pid = pid });
	if (ret < 0)
		return ret;
	vec_foreach(known, &sockets->known) {
		if (known->owner == SOCKET_OWNER_OTHER)
			known->owner = SOCKET_OWNER_UNKNOWN;
	}
	sockets->find_due_ns = sockets->due_ns = sockets->list_due_ns = 0;
	return 0;
}

static void note_peak(struct sockets *sockets, int64_t now_ns)
{
	double span_ns = (double)(now_ns - sockets->look_ns);

	vec_foreach(owner, &sockets->owners) {
		double rate = (double)owner->look_tx_bytes * (double)NSEC_PER_SEC / span_ns;

		owner->look_tx_bytes = 0;
		/* Between two dumps that are close, a queue that drains looks like a fast link. */
		if (sockets->look_ns != 0 && 2 * span_ns >= SOCKETS_LOOK_NS)
			sockets->peak_tx_bytes_per_sec = MAX(sockets->peak_tx_bytes_per_sec, rate);
	}
}

/* All sockets of the host: new ones come in and ended ones go. */
static int look_at_all(struct sockets *sockets)
{
	int ret;

	sockets->seen.cnt = 0;
	ret = sockdiag_list(&sockets->diag, &sockets->seen);
	if (ret == 0 && sockets->seen.cnt > 0)
		qsort(sockets->seen.data, sockets->seen.cnt, sizeof(*sockets->seen.data),
		      by_cookie);
	return ret == 0 ? merge(sockets) : ret;
}

/* The workers' own sockets, as far as they are known. */
static int look_at_owned(struct sockets *sockets)
{
	const struct sockdiag_socket *batch[SOCKDIAG_ASK_MAX];
	size_t cnt = 0;
	int ret = 0;

	sockets->seen.cnt = 0;
	for (size_t i = 0; i < sockets->known.cnt && ret == 0; i++) {
		if (sockets->known.data[i].owner >= 0)
			batch[cnt++] = &sockets->known.data[i].seen;
		if (cnt == 0 || (cnt < SOCKDIAG_ASK_MAX && i + 1 < sockets->known.cnt))
			continue;
		ret = sockdiag_ask(&sockets->diag, batch, cnt, &sockets->seen);
		cnt = 0;
	}
	for (size_t i = 0; i < sockets->seen.cnt && ret == 0; i++) {
		struct socket_known *known = find_known(sockets, sockets->seen.data[i].cookie);
		struct sockdiag_socket before;

		if (known == NULL || known->owner < 0)
			continue;
		before = known->seen;
		known->seen = sockets->seen.data[i];
		credit(sockets, &before, known);
	}
	return ret;
}

static bool few_owned(const struct sockets *sockets)
{
	size_t cnt = 0;

	vec_foreach(known, &sockets->known)
		cnt += known->owner >= 0;
	return cnt <= SOCKETS_SINGLE_MAX;
}

/* The next look, and the next list, after one of this cost. */
static void plan(struct sockets *sockets, bool listed, int64_t now_ns, int64_t cost_ns)
{
	if (!listed) {
		sockets->due_ns = now_ns + wait_for(cost_ns, SOCKETS_LOOK_DIVISOR, SOCKETS_LOOK_NS);
	} else if (few_owned(sockets)) {
		sockets->due_ns = now_ns + SOCKETS_LOOK_NS;
		sockets->list_due_ns =
			now_ns + wait_for(cost_ns, SOCKETS_LIST_DIVISOR, SOCKETS_LIST_NS);
	} else {
		sockets->due_ns = sockets->list_due_ns =
			now_ns + wait_for(cost_ns, SOCKETS_LOOK_DIVISOR, SOCKETS_LOOK_NS);
	}
}

int sockets_look(struct sockets *sockets, int64_t now_ns, int64_t (*cost_clock)(void))
{
	bool list = now_ns >= sockets->list_due_ns;
	int64_t begin_ns, cost_ns;

	if (sockets->error < 0)
		return sockets->error;
	if (now_ns < sockets->due_ns)
		return 0;
	begin_ns = cost_clock();
	sockets->error = list ? look_at_all(sockets) : look_at_owned(sockets);
	cost_ns = cost_clock() - begin_ns;
	if (sockets->error == 0 && list)
		sockets->error = find_owners(sockets, now_ns, cost_clock);
	if (sockets->error < 0)
		return sockets->error;
	note_peak(sockets, now_ns);
	sockets->look_ns = now_ns;
	plan(sockets, list, now_ns, cost_ns);
	return 1;
}

struct socket_owner *sockets_find(struct sockets *sockets, uint32_t pid)
{
	vec_foreach(owner, &sockets->owners) {
		if (owner->pid == pid)
			return owner;
	}
	return NULL;
}

const char *sockets_why(const struct sockets *sockets)
{
	switch (-sockets->error) {
	case 0:
		return "";
	case EPROTONOSUPPORT:
	case EAFNOSUPPORT:
	case ENOENT:
		return "the kernel lists no TCP sockets (needs tcp_diag)";
	case EPERM:
	case EACCES:
		return "not permitted to list TCP sockets";
	case ENOMEM:
		return "out of memory";
	default:
		return "the kernel's list of TCP sockets broke off";
	}
}
