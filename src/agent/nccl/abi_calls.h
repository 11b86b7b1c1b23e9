/* SPDX-License-Identifier: Apache-2.0 */
/* Calls in NCCL's profiler interface, as each version puts them; see abi.h. */
#pragma once

#include "agent/nccl/abi.h"

/* Names and types are numbers in version 1, texts from then on. */
struct nccl_coll_v1 {
	struct nccl_descr head;
	const char *comm_name;
	uint64_t comm_hash, seq;
	uint8_t func;
	const void *from;
	void *to;
	size_t cnt;
	int root;
	uint8_t datatype;
	uint32_t op;
	size_t traffic_bytes;
	uint8_t channels, warps, algorithm, protocol;
};

struct nccl_p2p_v1 {
	struct nccl_descr head;
	const char *comm_name;
	uint64_t comm_hash;
	uint8_t func;
	void *buffer;
	uint8_t datatype;
	size_t cnt;
	int peer;
};

struct nccl_coll_v2 {
	struct nccl_descr head;
	const char *comm_name;
	uint64_t comm_hash, seq;
	const char *func;
	const void *from;
	void *to;
	size_t cnt;
	int root;
	const char *datatype;
	size_t traffic_bytes;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

struct nccl_coll_v3 {
	struct nccl_descr head;
	const char *comm_name;
	uint64_t comm_hash, seq;
	const char *func;
	const void *from;
	void *to;
	size_t cnt;
	int root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
};

/* Versions 2 and 3. */
struct nccl_p2p_v2 {
	struct nccl_descr head;
	const char *comm_name;
	uint64_t comm_hash;
	const char *func;
	void *buffer;
	const char *datatype;
	size_t cnt;
	int peer;
};

/* From version 4 on, init passes the communicator. parent_group: from version 5 on. */
struct nccl_coll_v4 {
	struct nccl_descr head;
	uint64_t seq;
	const char *func;
	const void *from;
	void *to;
	size_t cnt;
	int root;
	const char *datatype;
	uint8_t channels, warps;
	const char *algorithm, *protocol;
	void *parent_group;
};

struct nccl_p2p_v4 {
	struct nccl_descr head;
	const char *func;
	void *buffer;
	const char *datatype;
	size_t cnt;
	int peer;
	uint8_t channels;
	void *parent_group;
};

struct nccl_coll_api {
	struct nccl_descr head;
	const char *func;
	size_t cnt;
	const char *datatype;
	int root;
	void *stream;
	bool captured; /* into a graph of the GPU */
};

struct nccl_p2p_api {
	struct nccl_descr head;
	const char *func;
	size_t cnt;
	const char *datatype;
	void *stream;
	bool captured;
};
