/* SPDX-License-Identifier: Apache-2.0 */
#include "agent/nccl/words.h"

#include <string.h>

/* By number, ncclFunc_t. */
static const char *const funcs[] = { "Broadcast", "Reduce",   "AllGather", "ReduceScatter",
				     "AllReduce", "SendRecv", "Send",	   "Recv" };
static const char *const algorithms[] = {
	"TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS", "NVLS_TREE", "PAT"
};
static const char *const protocols[] = { "LL", "LL128", "SIMPLE" };

static const struct datatype {
	const char *name;
	uint32_t bytes;
} datatypes[] = {
	{ "ncclInt8", 1 },     { "ncclUint8", 1 },	{ "ncclInt32", 4 },
	{ "ncclUint32", 4 },   { "ncclInt64", 8 },	{ "ncclUint64", 8 },
	{ "ncclFloat16", 2 },  { "ncclFloat32", 4 },	{ "ncclFloat64", 8 },
	{ "ncclBfloat16", 2 }, { "ncclFloat8e4m3", 1 }, { "ncclFloat8e5m2", 1 },
};

static const struct words_func func_words[] = {
	{ "AllReduce", "ncclAllReduce", "all_reduce", false },
	{ "AllGather", "ncclAllGather", "all_gather", true },
	{ "ReduceScatter", "ncclReduceScatter", "reduce_scatter", true },
	{ "Broadcast", "ncclBroadcast", "broadcast", false },
	{ "Reduce", "ncclReduce", "reduce", false },
	{ "Send", "ncclSend", "send", false },
	{ "Recv", "ncclRecv", "recv", false },
	{ "SendRecv", "ncclSendRecv", "send_recv", false },
	{ "AlltoAll", "ncclAlltoAll", "all_to_all", true },
	{ "Gather", "ncclGather", "gather", false },
	{ "Scatter", "ncclScatter", "scatter", false },
};

static const char *at(const char *const *list, size_t cnt, uint8_t idx)
{
	return idx < cnt ? list[idx] : NULL;
}

const char *words_func(uint8_t func)
{
	return at(funcs, ARRAY_SIZE(funcs), func);
}

const char *words_algorithm(uint8_t algorithm)
{
	return at(algorithms, ARRAY_SIZE(algorithms), algorithm);
}

const char *words_protocol(uint8_t protocol)
{
	return at(protocols, ARRAY_SIZE(protocols), protocol);
}

const char *words_datatype(uint8_t datatype)
{
	return datatype < ARRAY_SIZE(datatypes) ? datatypes[datatype].name : NULL;
}

const struct words_func *words_find(const char *func)
{
	static const struct words_func unknown = { "", "nccl", "", false };

	for (size_t i = 0; i < ARRAY_SIZE(func_words) && func != NULL; i++) {
		if (strcmp(func_words[i].func, func) == 0)
			return &func_words[i];
	}
	return &unknown;
}

uint32_t words_bytes(const char *datatype)
{
	for (size_t i = 0; i < ARRAY_SIZE(datatypes) && datatype != NULL; i++) {
		if (strcmp(datatypes[i].name, datatype) == 0)
			return datatypes[i].bytes;
	}
	return 0;
}
