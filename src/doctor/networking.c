/* SPDX-License-Identifier: Apache-2.0 */
/* Ports of InfiniBand and RoCE, whose traffic is in no other counter of the host. */
#include "doctor/check.h"

#include <dirent.h>
#include <stdio.h>
#include <string.h>

struct ports {
	size_t cnt, active, readable;
	char first[128];
};

static void look_port(const struct doctor *doctor, const char *device, const char *port,
		      struct ports *ports)
{
	char path[1024], state[64] = "", rate[64] = "", layer[32] = "";
	int64_t words;

	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/state", device, port);
	if (look_line(doctor, path, state, sizeof(state)) < 0)
		return;
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/rate", device, port);
	(void)!look_line(doctor, path, rate, sizeof(rate));
	(void)snprintf(path, sizeof(path), "/sys/class/infiniband/%s/ports/%s/link_layer", device,
		       port);
	(void)!look_line(doctor, path, layer, sizeof(layer));
	(void)snprintf(path, sizeof(path),
		       "/sys/class/infiniband/%s/ports/%s/counters/port_xmit_data", device, port);
	ports->readable += look_number(doctor, path, &words) == 0;
	ports->active += strstr(state, "ACTIVE") != NULL;
	if (ports->cnt++ == 0)
		(void)snprintf(ports->first, sizeof(ports->first), "%.32s/%.8s %.40s %.30s", device,
			       port, rate, layer);
}

/* Calls visit for each name in a folder below the root, sorted. */
static void visit_names(const struct doctor *doctor, const char *folder, const char *device,
			void (*visit)(const struct doctor *, const char *, const char *,
				      struct ports *),
			struct ports *ports)
{
	struct dirent **names = NULL;
	char path[4096];
	int cnt;

	(void)snprintf(path, sizeof(path), "%s%s", doctor->setup.root, folder);
	cnt = scandir(path, &names, NULL, alphasort);
	for (int i = 0; i < cnt; i++) {
		if (names[i]->d_name[0] != '.')
			visit(doctor, device, names[i]->d_name, ports);
		free(names[i]);
	}
	free(names);
}

static void look_device(const struct doctor *doctor, const char *unused _unused_,
			const char *device, struct ports *ports)
{
	char folder[512];

	(void)snprintf(folder, sizeof(folder), "/sys/class/infiniband/%s/ports", device);
	visit_names(doctor, folder, device, look_port, ports);
}

void check_infiniband(const struct doctor *doctor, struct doctor_result *ret)
{
	struct ports ports = { 0 };

	visit_names(doctor, "/sys/class/infiniband", NULL, look_device, &ports);
	if (ports.cnt == 0)
		check_set(ret, DOCTOR_ABSENT, "no port in /sys/class/infiniband");
	else
		check_set(ret,
			  ports.active == 0 || ports.readable < ports.cnt ? DOCTOR_LIMITED
									  : DOCTOR_OK,
			  "%zu ports, %zu active, counters of %zu can be read; first: %s",
			  ports.cnt, ports.active, ports.readable, ports.first);
}
