/* SPDX-License-Identifier: Apache-2.0 */
#include "host/stallwatch/perfrecord.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>

enum { ID_WORDS = 4, CHAIN_MAX = 256 }; /* words of struct sample_id */

/* Words of the record behind its header. */
struct words {
	const uint64_t *data;
	size_t cnt, at;
};

static bool take(struct words *words, uint64_t *ret)
{
	if (words->at == words->cnt)
		return false;
	*ret = words->data[words->at++];
	return true;
}

static void set_thread(struct perfrecord *ret, uint64_t word)
{
	ret->pid = (uint32_t)word;
	ret->tid = (uint32_t)(word >> 32);
}

/* Marks such as PERF_CONTEXT_KERNEL lie at the top of the address space. */
static bool is_mark(uint64_t addr)
{
	return addr >= (uint64_t)-4095;
}

static bool take_chain(struct words *words, struct perfrecord *ret)
{
	uint64_t cnt;

	if (!take(words, &cnt) || cnt > words->cnt - words->at)
		return false;
	ret->chain = words->data + words->at;
	ret->chain_cnt = cnt;
	words->at += cnt;
	while (ret->chain_cnt > 0 && is_mark(ret->chain[0])) {
		ret->chain++;
		ret->chain_cnt--;
	}
	ret->chain_cnt = MIN(ret->chain_cnt, (size_t)CHAIN_MAX);
	return true;
}

/* u32 size, then so many bytes; together whole words. */
static bool take_raw(struct words *words, struct perfrecord *ret)
{
	const unsigned char *bytes = (const unsigned char *)(words->data + words->at);
	uint32_t size;

	if (words->at == words->cnt)
		return false;
	memcpy(&size, bytes, sizeof(size));
	if ((size + 4u) % 8 != 0 || (size + 4ull) / 8 > words->cnt - words->at)
		return false;
	ret->raw = bytes + 4;
	ret->raw_len = size;
	words->at += (size + 4u) / 8;
	return true;
}

static int parse_sample(struct words words, bool regs, struct perfrecord *ret)
{
	uint64_t thread, time, cpu, abi = 0;

	if (!take(&words, &ret->id) || !take(&words, &thread) || !take(&words, &time) ||
	    !take(&words, &cpu) || !take_chain(&words, ret) || !take_raw(&words, ret))
		return -EINVAL;
	set_thread(ret, thread);
	ret->time_ns = (int64_t)time;
	ret->cpu = (uint32_t)cpu;
	ret->kind = PERFRECORD_SAMPLE;
	if (regs && (!take(&words, &abi) || (abi != 0 && !take(&words, &ret->reg))))
		return -EINVAL;
	return 0;
}

/* Thread, time, CPU and id are at the end of all other records. */
static bool take_id(const struct words *words, struct perfrecord *ret)
{
	const uint64_t *id = words->data + words->cnt - ID_WORDS;

	if (words->cnt < ID_WORDS)
		return false;
	set_thread(ret, id[0]);
	ret->time_ns = (int64_t)id[1];
	ret->cpu = (uint32_t)id[2];
	ret->id = id[3];
	return true;
}

static int parse_comm(const struct words *words, struct perfrecord *ret)
{
	const char *name = (const char *)(words->data + 1);
	const size_t size = words->cnt > ID_WORDS + 1 ? (words->cnt - ID_WORDS - 1) * 8 : 0;

	if (size == 0)
		return -EINVAL;
	ret->kind = PERFRECORD_COMM;
	set_thread(ret, words->data[0]);
	(void)snprintf(ret->comm, sizeof(ret->comm), "%.*s", (int)strnlen(name, size), name);
	return 0;
}

int perfrecord_parse(const unsigned char *bytes, size_t len, bool regs, struct perfrecord *ret)
{
	struct perf_event_header header;
	struct perfrecord record = { 0 };
	struct words words = { 0 };
	int error = 0;

	if (len < sizeof(header) || len % 8 != 0)
		return -EINVAL;
	memcpy(&header, bytes, sizeof(header));
	words.data = (const uint64_t *)(const void *)(bytes + sizeof(header));
	words.cnt = (len - sizeof(header)) / 8;
	record.out = (header.misc & PERF_RECORD_MISC_SWITCH_OUT) != 0;
	record.preempted = record.out && (header.misc & PERF_RECORD_MISC_SWITCH_OUT_PREEMPT) != 0;
	if (header.type == PERF_RECORD_SAMPLE)
		error = parse_sample(words, regs, &record);
	else if (!take_id(&words, &record))
		error = -EINVAL;
	else if (header.type == PERF_RECORD_SWITCH)
		record.kind = PERFRECORD_SWITCH;
	else if (header.type == PERF_RECORD_SWITCH_CPU_WIDE)
		record.kind = PERFRECORD_CPU_SWITCH;
	else if (header.type == PERF_RECORD_COMM)
		error = parse_comm(&words, &record);
	else if (header.type == PERF_RECORD_LOST && words.cnt >= ID_WORDS + 2) {
		record.kind = PERFRECORD_LOST;
		record.lost = words.data[1];
	}
	if (error == 0)
		*ret = record;
	return error;
}

bool perfrecord_number(const struct perfrecord *record, uint32_t off, uint32_t size, int64_t *ret)
{
	int32_t small;

	if (size > record->raw_len || off > record->raw_len - size)
		return false;
	if (size == 8) {
		memcpy(ret, record->raw + off, 8);
		return true;
	}
	if (size != 4)
		return false;
	memcpy(&small, record->raw + off, 4);
	*ret = small;
	return true;
}
