/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Builds a recorder like an agent's, for tests of this folder and of the readers: a memory file,
 * names, stacks and lanes, one call each. Its records: test_records.h.
 */
#pragma once

#include "format/flightlog/flightlog.h"

#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

struct test_recorder {
	int fd;
	struct flight *flight; /* the writer's view */
};

_unused_ static struct test_recorder recorder_open(void)
{
	struct test_recorder r = { .fd = memfd_create("testflight",
						      MFD_CLOEXEC | MFD_ALLOW_SEALING) };
	struct flight *f;

	assert_true(r.fd >= 0);
	assert_int_equal(ftruncate(r.fd, (off_t)sizeof(*f)), 0);
	assert_int_equal(fcntl(r.fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW), 0);
	f = mmap(NULL, sizeof(*f), PROT_READ | PROT_WRITE, MAP_SHARED, r.fd, 0);
	assert_true(f != MAP_FAILED);
	f->block.magic = BLOCK_MAGIC;
	f->block.version = BLOCK_VERSION;
	f->block.ring_cnt = MARK_RING_CNT;
	f->layout_bytes = sizeof(*f);
	f->rank = 3;
	f->world_size = 4;
	f->pid = 70;
	f->training_tid = 71;
	f->mono_ns = 1000 * NSEC_PER_MSEC;
	f->wall_ns = 51000 * NSEC_PER_MSEC;
	f->string_cnt = f->frame_cnt = f->node_cnt = 1;
	r.flight = f;
	return r;
}

_unused_ static void recorder_close(struct test_recorder *r)
{
	(void)munmap(r->flight, sizeof(*r->flight));
	(void)close(r->fd);
}

_unused_ static uint32_t recorder_string(struct flight *f, const char *text)
{
	uint32_t id = f->string_cnt, off = f->text_len;
	size_t len = strlen(text);

	memcpy(&f->text[off], text, len);
	f->text_len = off + (uint32_t)len;
	f->strings[id] = (struct flight_string){ off, (uint32_t)len };
	f->string_cnt = id + 1;
	return id;
}

_unused_ static uint32_t recorder_frame(struct flight *f, const char *file, const char *name,
					uint32_t line)
{
	uint32_t id = f->frame_cnt;

	f->frames[id] = (struct flight_frame){ recorder_string(f, file), recorder_string(f, name),
					       line, 0 };
	f->frame_cnt = id + 1;
	return id;
}

_unused_ static uint32_t recorder_node(struct flight *f, uint32_t parent, uint32_t frame)
{
	uint32_t id = f->node_cnt;

	f->nodes[id] = (struct flight_node){ parent, frame };
	f->node_cnt = id + 1;
	return id;
}

/* Takes the next lane. */
_unused_ static uint32_t recorder_lane(struct flight *f, uint32_t tid, const char *comm)
{
	uint32_t idx = f->lane_cnt;

	(void)snprintf(f->lanes[idx].name, sizeof(f->lanes[idx].name), "%s", comm);
	f->lanes[idx].tid = tid;
	f->lane_cnt = idx + 1;
	return idx;
}
