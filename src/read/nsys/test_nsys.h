/* SPDX-License-Identifier: Apache-2.0 */
#pragma once

#include "read/nsys/test_nsysdb.h"

/* All that the reader knows, a little of each: where fuzzing begins. */
/* clang-format off */
#define DB_ALL \
	DB_SMALL DB_RANGES \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMCPY (start, end, deviceId, streamId," \
	" correlationId, globalPid, bytes, copyKind, srcKind, dstKind);" \
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMCPY VALUES" \
	"(510, 520, 0, 7, 9, " PID_A ", 4096, 1, 1, 2);" \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_MEMSET (start, end, deviceId, streamId," \
	" correlationId, globalPid, bytes, memKind);" \
	"INSERT INTO CUPTI_ACTIVITY_KIND_MEMSET VALUES (530, 540, 0, 7, 9, " PID_A \
	", 8, 2);" \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_SYNCHRONIZATION (start, end, deviceId, streamId," \
	" correlationId, globalPid, syncType);" \
	"INSERT INTO CUPTI_ACTIVITY_KIND_SYNCHRONIZATION VALUES" \
	"(550, 560, 0, 7, 9, " PID_A ", 3);" \
	"CREATE TABLE CUPTI_ACTIVITY_KIND_GRAPH_TRACE (start, end, deviceId, streamId," \
	" correlationId, globalPid, graphId);" \
	"INSERT INTO CUPTI_ACTIVITY_KIND_GRAPH_TRACE VALUES (570, 580, 0, 7, 9, " PID_A \
	", 3);" \
	"CREATE TABLE OSRT_API (start, end, globalTid, nameId);" \
	"INSERT INTO OSRT_API VALUES (610, 690, " TID_A ", 4), (710, 800, " TID_A ", 5);" \
	"CREATE TABLE PROFILER_OVERHEAD (start, end, globalTid, nameId);" \
	"INSERT INTO PROFILER_OVERHEAD VALUES (810, 820, " TID_A ", 9);" \
	"CREATE TABLE ThreadNames (nameId, globalTid);" \
	"INSERT INTO ThreadNames VALUES (9, " TID_A ");" \
	"CREATE TABLE NVTX_PAYLOAD_SCHEMA_ENTRIES (domainId, schemaId, type, name, offset);" \
	"INSERT INTO NVTX_PAYLOAD_SCHEMA_ENTRIES VALUES" \
	"(1, 77, 18, 'NCCL communicator ID', NULL), (1, 77, 22, 'Message size [bytes]', 8)," \
	"(1, 78, 18, 'NCCL communicator ID', NULL), (1, 78, 5, 'No. of ranks', 8)," \
	"(1, 78, 5, 'Rank', 12);" \
	"INSERT INTO NVTX_EVENTS VALUES" \
	"(0, NULL, 75, NULL, " TID_A ", 6, 1, NULL, NULL, NULL)," \
	"(1, 2, 59, NULL, " TID_A ", 14, 1, NULL, NULL," \
	" X'01000000000000004E00000000000000100000000000000030000000000000000504000000000000" \
	"0800000003000000')," \
	"(340, 370, 59, NULL, " TID_A2 ", 7, 1, NULL, NULL," \
	" X'01000000000000004D00000000000000100000000000000030000000000000000504000000000000" \
	"0010000000000000')," \
	"(90, 130, 59, NULL, " TID_A ", 10, 0, NULL, NULL, NULL)," \
	"(140, NULL, 59, 'never ends', " TID_A \
	", NULL, 0, NULL, NULL, NULL);" RANGE("80", "390", "iteration 5", TID_A) RANGE( \
	"395", "900", "iteration 6", \
	TID_A) "CREATE TABLE TARGET_INFO_GPU (id, name, pwGpuId, cuDevice);" \
	"INSERT INTO TARGET_INFO_GPU VALUES (0, 'H100', 3, 0), (1, 'H100', 2, 1);" \
	"CREATE TABLE TARGET_INFO_CUDA_DEVICE (gpuId, cudaId, pid);" \
	"INSERT INTO TARGET_INFO_CUDA_DEVICE VALUES (0, 0, 10), (1, 1, 11);" \
	"CREATE TABLE TARGET_INFO_GPU_METRICS (typeId, metricId, metricName);" \
	"INSERT INTO TARGET_INFO_GPU_METRICS VALUES (259, 1, 'SMs Active [Throughput %]')," \
	"(259, 2, 'DRAM Read Bandwidth [Throughput %]')," \
	"(259, 3, 'DRAM Write Bandwidth [Throughput %]'), (258, 1, 'SMs Active')," \
	"(259, 4, 'PCIe RX Throughput [Throughput %]');" \
	"CREATE TABLE GPU_METRICS (timestamp, typeId, metricId, value);" \
	"INSERT INTO GPU_METRICS VALUES (250, 259, 1, 90), (250, 259, 2, 30)," \
	"(250, 259, 3, 25), (250, 258, 1, 10), (350, 259, 1, 40), (-5, 259, 1, 40)," \
	"(250, 259, 4, 75);" \
	"CREATE TABLE GENERIC_EVENTS (timestamp, typeId, data);" \
	"INSERT INTO GENERIC_EVENTS VALUES (450, 259, '{\"SM Active\": \"50\"}')," \
	"(450, 259, 'no object');" \
	"CREATE TABLE SCHED_EVENTS (start, isSchedIn, globalTid);" \
	"INSERT INTO SCHED_EVENTS VALUES (0, 1, " TID_A \
	"), (4000000, 0, " TID_A ")," \
	"(10000000, 1, " TID_A "), (30000000, 0, " TID_A ");" \
	"CREATE TABLE TARGET_INFO_NIC_INFO (nicId, name);" \
	"INSERT INTO TARGET_INFO_NIC_INFO VALUES (1, 'mlx5_0');" \
	"CREATE TABLE NIC_ID_MAP (nicId, globalId); INSERT INTO NIC_ID_MAP VALUES (1, 99);" \
	"CREATE TABLE TARGET_INFO_NETWORK_METRICS (metricsListId, metricsIdx, name);" \
	"INSERT INTO TARGET_INFO_NETWORK_METRICS VALUES (0, 4, 'IB: Bytes sent');" \
	"CREATE TABLE NET_NIC_METRIC (start, end, globalId, metricsListId, metricsIdx, value);" \
	"CREATE TABLE COMPOSITE_EVENTS (id, start, globalTid);" \
	"INSERT INTO COMPOSITE_EVENTS VALUES (1, 1000, " TID_A \
	"), (2, 1100, " TID_A ")," \
	"(3, 1200, " TID_A "), (4, 5000, " TID_A "), (5, 1100, " TID_B ");" \
	"CREATE TABLE SAMPLING_CALLCHAINS (id, symbol, module, stackDepth);" \
	"INSERT INTO StringIds VALUES (30, 'train'), (31, '/a/train.py'), (32, 'load')," \
	"(33, 'libc.so.6');" \
	"INSERT INTO SAMPLING_CALLCHAINS VALUES (1, 4, 33, 0), (1, 30, 31, 1)," \
	"(2, 32, 31, 0), (2, 30, 31, 1), (3, 30, 31, 0), (4, 30, 31, 0), (5, 4, 33, 0);" \
	"INSERT INTO NET_NIC_METRIC VALUES (0, 1000, 99, 0, 4, 12345);"
/* clang-format on */
