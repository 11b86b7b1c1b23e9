/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Fuzzes the messages between hosts: the first byte says to whom, the rest is the message. A leader
 * and a follower live as long as the process, so what one message leaves behind meets the next.
 */
#include "live/cluster/cluster.h"

#include "base/log.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* In place of the one on stderr, where the fuzzer speaks. */
void log_line(_unused_ enum log_level level, _unused_ const char *fmt, ...)
{
}

static struct {
	struct bus *local, *net;
	struct leader *leader;
	struct follower *follower;
	int64_t now_ns;
} f;

static void open_all(void)
{
	static char dir[] = "/tmp/cluster_fuzz.XXXXXX";
	struct cluster_setup setup = { .job = "job", .id = "n0", .host = "head", .members = 3 };

	setup.out_dir = mkdtemp(dir);
	assert(setup.out_dir != NULL);
	assert(bus_open("inproc:", NULL, NULL, &f.local) == 0);
	assert(bus_open("inproc:", NULL, NULL, &f.net) == 0);
	setup.local = f.local;
	setup.net = f.net;
	assert(leader_open(&setup, &f.leader) == 0);
	setup.id = "n1";
	assert(follower_open(&setup, &f.follower) == 0);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char *const subjects[] = { "pt.v1.job.up.n1", "pt.v1.job.up.n2",
						"pt.v1.job.down", "pt.v1.job.to.n1" };

	if (f.leader == NULL)
		open_all();
	if (size == 0)
		return 0;
	(void)bus_pub(f.net, subjects[data[0] % ARRAY_SIZE(subjects)], data + 1, size - 1);
	f.now_ns += NSEC_PER_SEC / 4;
	leader_tick(f.leader, f.now_ns);
	follower_tick(f.follower, f.now_ns);
	for (int i = 0; i < 4; i++)
		(void)(bus_run(f.net, f.now_ns) + bus_run(f.local, f.now_ns));
	return 0;
}
