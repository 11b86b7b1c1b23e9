/* SPDX-License-Identifier: Apache-2.0 */
/* Small exports for the tests of the reader: SQL in, the bytes of a database out. */
#pragma once

#include "read/nsys/nsys.h"

#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>

/* Process 10 and 11 of one host, and threads of theirs, packed as nsys does. */
#define PID_A "(281474976710656 + (10 << 24))"
#define PID_B "(281474976710656 + (11 << 24))"
#define TID_A "(281474976710656 + (10 << 24) + 10)"
#define TID_A2 "(281474976710656 + (10 << 24) + 12)"
#define TID_B "(281474976710656 + (11 << 24) + 11)"

/* clang-format off */
#define DB_META \
	"CREATE TABLE META_DATA_EXPORT (name TEXT, value TEXT);" \
	"INSERT INTO META_DATA_EXPORT VALUES ('EXPORT_SCHEMA_VERSION', '3.25.0');" \
	"CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INTEGER);" \
	"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES (1000000);" \
	"CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);" \
	"INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Secret', 'x'), ('Hostname', 'h1');"

#define DB_STRINGS \
	"CREATE TABLE StringIds (id INTEGER NOT NULL PRIMARY KEY, value TEXT NOT NULL);" \
	"INSERT INTO StringIds VALUES (1, 'gemm'), (2, 'cudaLaunchKernel_v7000')," \
	"(3, 'cudaMalloc_v3020'), (4, 'ioctl'), (5, 'poll'), (6, 'NCCL')," \
	"(7, 'ncclAllReduce'), (8, 'ncclDevKernel_AllReduce_Sum_f32(x)'), (9, 'main')," \
	"(10, 'aten::mm, op_id = 4'), (11, 'adam'), (12, 'cudaLaunchKernelExC_ptsz_v11060')," \
	"(13, '{\"NCCL communicator ID\":\"1,234\", \"Message size [bytes]\": 64}')," \
	"(14, 'ncclCommInitRank');"

#define DB_KERNELS \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INTEGER, end INTEGER," \
	" deviceId INTEGER, streamId INTEGER, correlationId INTEGER, globalPid INTEGER," \
	" demangledName INTEGER, shortName INTEGER, gridX INTEGER, gridY INTEGER," \
	" gridZ INTEGER, blockX INTEGER, blockY INTEGER, blockZ INTEGER);" \
	"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES" \
	"(200, 300, 0, 7, 1, " PID_A ", 1, 1, 4, 1, 1, 32, 2, 1)," \
	"(210, 330, 1, 7, 1, " PID_B ", 1, 1, 4, 1, 1, 32, 2, 1)," \
	"(400, 500, 0, 20, 2, " PID_A ", 8, 8, 1, 1, 1, 96, 1, 1);"

#define DB_CALLS \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_RUNTIME (start INTEGER, end INTEGER," \
	" eventClass INTEGER, globalTid INTEGER, correlationId INTEGER, nameId INTEGER," \
	" returnValue INTEGER);" \
	"INSERT INTO CUPTI_ACTIVITY_KIND_RUNTIME VALUES" \
	"(100, 120, 0, " TID_A ", 1, 2, 0), (101, 131, 0, " TID_B ", 1, 2, 0)," \
	"(350, 360, 0, " TID_A2 ", 2, 12, 0), (600, 700, 0, " TID_A ", 3, 3, 0);"

#define DB_RANGES \
	"CREATE TABLE NVTX_EVENTS (start INTEGER, end INTEGER, eventType INTEGER," \
	" text TEXT, globalTid INTEGER, textId INTEGER, domainId INTEGER, jsonText TEXT," \
	" jsonTextId INTEGER, binaryData TEXT);"

#define RANGE(start, end, text, tid) \
	"INSERT INTO NVTX_EVENTS VALUES (" start ", " end ", 59, '" text "', " tid \
	", NULL, 0, NULL, NULL, NULL);"
/* clang-format on */

#define DB_SMALL DB_META DB_STRINGS DB_KERNELS DB_CALLS

/* The bytes of a database that sql makes; sqlite3_free() them. Aborts when it cannot. */
static inline unsigned char *testdb_make(const char *sql, size_t *ret_len)
{
	unsigned char *bytes;
	sqlite3_int64 len = 0;
	sqlite3 *db;
	char *message = NULL;

	if (sqlite3_open(":memory:", &db) != SQLITE_OK)
		abort();
	if (sqlite3_exec(db, "PRAGMA page_size = 512;", NULL, NULL, NULL) != SQLITE_OK ||
	    sqlite3_exec(db, sql, NULL, NULL, &message) != SQLITE_OK) {
		fprintf(stderr, "testdb: %s\n", message != NULL ? message : "?");
		abort();
	}
	bytes = sqlite3_serialize(db, "main", &len, 0);
	if (bytes == NULL)
		abort();
	(void)sqlite3_close(db);
	*ret_len = (size_t)len;
	return bytes;
}
