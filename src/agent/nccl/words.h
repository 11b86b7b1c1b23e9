/* SPDX-License-Identifier: Apache-2.0 */
/*
 * NCCL's names: the functions, types, algorithms and protocols that version 1 of its interface
 * passes as numbers; other names of a function; bytes of an element.
 * Source: NCCL's nccl_common.h and nccl.h.in.
 */
#pragma once

#include "base/base.h"

/* NULL: a number of a later NCCL. */
const char *words_func(uint8_t func);
const char *words_datatype(uint8_t datatype);
const char *words_algorithm(uint8_t algorithm);
const char *words_protocol(uint8_t protocol);

/* A function's names elsewhere. */
struct words_func {
	const char *func;   /* "AllReduce" */
	const char *symbol; /* "ncclAllReduce" */
	const char *what;   /* "all_reduce" */
	bool all_ranks;	    /* the larger side holds a part of every rank: all_gather */
};

/* Never NULL; an unknown function has "nccl" and "". */
const struct words_func *words_find(const char *func);

/* 0: unknown. */
uint32_t words_bytes(const char *datatype);
