/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/infiniband.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PATH_BYTES 4096
#define LIFESPAN_MAX_MS 60000

/* Below the port's folder. */
static const char *const files[SIDECAR_NIC_COUNTER_CNT] = {
#define X(id, text, folder, help) [SIDECAR_NIC_##id] = folder "/" text,
	SIDECAR_NIC_COUNTER_LIST(X)
#undef X
};

static bool read_number(int fd, uint64_t *ret)
{
	char text[32];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);

	if (len <= 0)
		return false;
	text[len] = '\0';
	return sscanf(text, "%" SCNu64, ret) == 1;
}

static int open_file(const char *dir, const char *name)
{
	char path[PATH_BYTES];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static int64_t read_lifespan_ns(const char *dir)
{
	int fd = open_file(dir, "hw_counters/lifespan");
	uint64_t ms;
	bool reported;

	if (fd < 0)
		return IB_LIFESPAN_NS;
	reported = read_number(fd, &ms);
	(void)close(fd);
	return reported && ms <= LIFESPAN_MAX_MS ? (int64_t)ms * NSEC_PER_MSEC : IB_LIFESPAN_NS;
}

static void close_port(struct ib_port *port)
{
	for (size_t i = 0; i < port->counter_cnt; i++)
		(void)close(port->counters[i].fd);
}

static void open_counters(struct ib_port *port, const char *dir)
{
	for (uint32_t id = 0; id < SIDECAR_NIC_COUNTER_CNT; id++) {
		struct ib_counter *counter = &port->counters[port->counter_cnt];

		*counter = (struct ib_counter){ .id = (enum sidecar_nic_counter)id,
						.fd = open_file(dir, files[id]) };
		if (counter->fd < 0)
			continue;
		if (read_number(counter->fd, &counter->last))
			port->counter_cnt++;
		else
			(void)close(counter->fd);
	}
}

/* dir: ".../mlx5_0/ports/1". Returns 0 or -ENOMEM. */
static int add_port(struct ibports *ib, const char *dir, const char *device, const char *number)
{
	struct ib_port port = { 0 };
	int ret;

	if (ib->ports.cnt == IB_PORT_MAX)
		return 0;
	(void)snprintf(port.name, sizeof(port.name), "%.20s/%.2s", device, number);
	port.lifespan_ns = read_lifespan_ns(dir);
	open_counters(&port, dir);
	if (port.counter_cnt == 0)
		return 0;
	ret = vec_push(&ib->ports, port);
	if (ret < 0)
		close_port(&port);
	return ret;
}

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

static void free_entries(struct dirent **entries, int cnt)
{
	for (int i = 0; i < cnt; i++)
		free(entries[i]);
	free(entries);
}

static int add_device(struct ibports *ib, const char *root, const char *device)
{
	char dir[PATH_BYTES], port[PATH_BYTES + 8];
	struct dirent **entries;
	int cnt, ret = 0;

	if ((size_t)snprintf(dir, sizeof(dir), "%s/sys/class/infiniband/%s/ports", root, device) >=
	    sizeof(dir))
		return 0;
	cnt = scandir(dir, &entries, visible, alphasort);
	if (cnt < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < cnt && ret == 0; i++) {
		if ((size_t)snprintf(port, sizeof(port), "%s/%s", dir, entries[i]->d_name) <
		    sizeof(port))
			ret = add_port(ib, port, device, entries[i]->d_name);
	}
	free_entries(entries, cnt);
	return ret;
}

int ibports_open(struct ibports *ib, const char *root)
{
	char dir[PATH_BYTES];
	struct dirent **entries;
	int cnt, ret = 0;

	*ib = (struct ibports){ 0 };
	if ((size_t)snprintf(dir, sizeof(dir), "%s/sys/class/infiniband", root) >= sizeof(dir))
		return 0;
	cnt = scandir(dir, &entries, visible, alphasort);
	if (cnt < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < cnt && ret == 0; i++)
		ret = add_device(ib, root, entries[i]->d_name);
	free_entries(entries, cnt);
	return ret;
}

void ibports_close(struct ibports *ib)
{
	vec_foreach(port, &ib->ports)
		close_port(port);
	vec_done(&ib->ports);
}

void ibports_look_now(struct ibports *ib)
{
	vec_foreach(port, &ib->ports) {
		for (size_t i = 0; i < port->counter_cnt; i++) {
			struct ib_counter *counter = &port->counters[i];
			uint64_t value;

			/*
			 * Unplugged: the counter does not change. Reset from outside: it starts
			 * again at 0.
			 */
			if (!read_number(counter->fd, &value))
				continue;
			counter->grown += value < counter->last ? value : value - counter->last;
			counter->last = value;
		}
	}
}

static int64_t longest_lifespan_ns(const struct ibports *ib)
{
	int64_t longest = IB_LOOK_NS;

	vec_foreach(port, &ib->ports)
		longest = MAX(longest, port->lifespan_ns);
	return longest;
}

int ibports_look(struct ibports *ib, int64_t (*clock)(void))
{
	int64_t now_ns = clock();

	if (now_ns < ib->due_ns || ib->ports.cnt == 0)
		return 0;
	ibports_look_now(ib);
	ib->due_ns = now_ns + MAX(longest_lifespan_ns(ib), (clock() - now_ns) * IB_COST_DIVISOR);
	return 1;
}

/* Index of a port among the sidecar's cards; their number: it is not among them. */
static size_t card_of(const struct sidecar *sidecar, const struct ib_port *port)
{
	size_t i = 0;

	while (i < sidecar->nics.cnt && strcmp(sidecar->nics.data[i].name, port->name) != 0)
		i++;
	return i;
}

int ibports_record(const struct ibports *ib, struct sidecar *out)
{
	vec_foreach(port, &ib->ports) {
		size_t card = card_of(out, port);

		for (size_t i = 0; i < port->counter_cnt && card < out->nics.cnt; i++) {
			const struct ib_counter *counter = &port->counters[i];
			struct sidecar_nic_count count = { .nic = (uint32_t)card,
							   .counter = (uint32_t)counter->id,
							   .grown = counter->grown };

			if (count.grown > 0 && vec_push(&out->nic_counters, count) < 0)
				return -ENOMEM;
		}
	}
	return 0;
}
