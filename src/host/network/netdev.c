/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/netdev.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define RDMA_WORD_BYTES 4
#define PATH_BYTES 4096

double netdev_parse_rate(const char *text)
{
	char unit[16];
	double value;

	if (sscanf(text, "%lf %15s", &value, unit) != 2 || !isfinite(value) || value <= 0)
		return 0;
	return strcmp(unit, "Gb/sec") == 0 ? value * 1e9 / 8 : 0;
}

double netdev_parse_speed(const char *text)
{
	int64_t value;

	if (sscanf(text, "%" SCNd64, &value) != 1 || value <= 0 || value >= UINT32_MAX)
		return 0;
	return (double)value * 1e6 / 8;
}

/* The first bytes of dir/name as text; "" when it can't be read. */
static void read_text(const char *dir, const char *name, char *text, size_t size)
{
	char path[PATH_BYTES];
	ssize_t len = -1;
	int fd = -1;

	text[0] = '\0';
	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) < sizeof(path))
		fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		len = read(fd, text, size - 1);
		(void)close(fd);
	}
	text[len > 0 ? len : 0] = '\0';
}

static int open_counter(const char *dir, const char *name)
{
	char path[PATH_BYTES];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, name) >= sizeof(path))
		return -1;
	return open(path, O_RDONLY | O_CLOEXEC);
}

static bool read_counter(int fd, uint32_t unit_bytes, uint64_t *ret)
{
	char text[32];
	ssize_t len = pread(fd, text, sizeof(text) - 1, 0);
	uint64_t value;

	if (len <= 0)
		return false;
	text[len] = '\0';
	if (sscanf(text, "%" SCNu64, &value) != 1)
		return false;
	*ret = value * unit_bytes;
	return true;
}

static bool read_device(struct netdev *device)
{
	return read_counter(device->tx_fd, device->unit_bytes, &device->tx_bytes) &&
	       read_counter(device->rx_fd, device->unit_bytes, &device->rx_bytes);
}

static void close_device(struct netdev *device)
{
	if (device->tx_fd >= 0)
		(void)close(device->tx_fd);
	if (device->rx_fd >= 0)
		(void)close(device->rx_fd);
}

/* Takes over a device whose counters can be read. Returns 0 or -ENOMEM. */
static int take_device(struct netdevs *devs, struct netdev device)
{
	int ret = 0;

	if (devs->devices.cnt < NETDEV_MAX && device.tx_fd >= 0 && device.rx_fd >= 0 &&
	    read_device(&device)) {
		ret = vec_push(&devs->devices, device);
		if (ret == 0)
			return 0;
	}
	close_device(&device);
	return ret;
}

static void use_hw_counters(struct netdev *device, const char *path)
{
	if (device->rx_fd >= 0)
		(void)close(device->rx_fd);
	device->unit_bytes = 1;
	device->tx_fd = open_counter(path, "hw_counters/tx_bytes");
	device->rx_fd = open_counter(path, "hw_counters/rx_bytes");
}

static int add_port(struct netdevs *devs, const char *dir, const char *port, const char *name)
{
	struct netdev device = { .unit_bytes = RDMA_WORD_BYTES, .nic.flags = SIDECAR_NIC_RDMA };
	char path[PATH_BYTES], text[64];

	if ((size_t)snprintf(path, sizeof(path), "%s/%s", dir, port) >= sizeof(path))
		return 0;
	(void)snprintf(device.nic.name, sizeof(device.nic.name), "%.20s/%.2s", name, port);
	read_text(path, "rate", text, sizeof(text));
	device.nic.bytes_per_sec = netdev_parse_rate(text);
	device.tx_fd = open_counter(path, "counters/port_xmit_data");
	device.rx_fd = open_counter(path, "counters/port_rcv_data");
	if (device.tx_fd < 0) /* EFA counts bytes, elsewhere */
		use_hw_counters(&device, path);
	return take_device(devs, device);
}

static int add_net(struct netdevs *devs, const char *dir, const char *name)
{
	struct netdev device = { .unit_bytes = 1 };
	char path[PATH_BYTES], text[64];

	if ((size_t)snprintf(path, sizeof(path), "%s/device", dir) >= sizeof(path) ||
	    access(path, F_OK) != 0)
		return 0; /* virtual */
	(void)snprintf(device.nic.name, sizeof(device.nic.name), "%s", name);
	read_text(dir, "speed", text, sizeof(text));
	device.nic.bytes_per_sec = netdev_parse_speed(text);
	device.tx_fd = open_counter(dir, "statistics/tx_bytes");
	device.rx_fd = open_counter(dir, "statistics/rx_bytes");
	return take_device(devs, device);
}

typedef int (*add_entry)(struct netdevs *devs, const char *dir, const char *name);

static int visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/* Calls add for each entry of dir, by name so that devices have one order. */
static int each_entry(struct netdevs *devs, const char *dir, add_entry add)
{
	struct dirent **entries;
	int cnt = scandir(dir, &entries, visible, alphasort), ret = 0;

	if (cnt < 0)
		return errno == ENOMEM ? -ENOMEM : 0;
	for (int i = 0; i < cnt; i++) {
		char path[PATH_BYTES];

		if (ret == 0 && (size_t)snprintf(path, sizeof(path), "%s/%s", dir,
						 entries[i]->d_name) < sizeof(path))
			ret = add(devs, path, entries[i]->d_name);
		free(entries[i]);
	}
	free(entries);
	return ret;
}

static int add_ports(struct netdevs *devs, const char *dir, const char *name)
{
	char path[PATH_BYTES], port[4];
	int ret = 0;

	if ((size_t)snprintf(path, sizeof(path), "%s/ports", dir) >= sizeof(path))
		return 0;
	for (int i = 1; i <= 4 && ret == 0; i++) { /* cards have one or two, counted from 1 */
		(void)snprintf(port, sizeof(port), "%d", i);
		ret = add_port(devs, path, port, name);
	}
	return ret;
}

int netdevs_open(struct netdevs *devs, const char *root)
{
	char path[PATH_BYTES];
	int ret = 0;

	*devs = (struct netdevs){ 0 };
	if ((size_t)snprintf(path, sizeof(path), "%s/sys/class/infiniband", root) < sizeof(path))
		ret = each_entry(devs, path, add_ports);
	if (ret == 0 &&
	    (size_t)snprintf(path, sizeof(path), "%s/sys/class/net", root) < sizeof(path))
		ret = each_entry(devs, path, add_net);
	return ret;
}

void netdevs_close(struct netdevs *devs)
{
	vec_foreach(device, &devs->devices)
		close_device(device);
	vec_done(&devs->devices);
}

int netdevs_look(struct netdevs *devs, int64_t (*clock)(void))
{
	int64_t now_ns = clock();

	if (now_ns < devs->due_ns || devs->devices.cnt == 0)
		return 0;
	vec_foreach(device, &devs->devices)
		(void)read_device(device); /* unplugged: its counters do not change */
	devs->look_ns = now_ns;
	devs->due_ns = now_ns + MAX(NETDEV_LOOK_NS, (clock() - now_ns) * NETDEV_COST_DIVISOR);
	return 1;
}

int netdevs_record(const struct netdevs *devs, struct sidecar *out)
{
	for (size_t i = 0; i < devs->devices.cnt; i++) {
		const struct netdev *device = &devs->devices.data[i];
		struct sidecar_nic_sample sample = { .time_ns = devs->look_ns,
						     .tx_bytes = device->tx_bytes,
						     .rx_bytes = device->rx_bytes,
						     .nic = (uint32_t)i };
		int ret = vec_push(&out->nic_samples, sample);

		if (ret < 0)
			return ret;
	}
	return 0;
}
