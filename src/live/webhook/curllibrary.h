/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The few functions of libcurl that a webhook needs, loaded when one is configured. The numbers are those
 * of its ABI, which has not changed them since version 7.32.
 * Source: curl.se, curl/curl.h.
 */
#pragma once

#include "base/err.h"

enum {
	CURL_WRITEDATA = 10001,
	CURL_URL = 10002,
	CURL_ERRORBUFFER = 10010,
	CURL_POSTFIELDS = 10015,
	CURL_USERAGENT = 10018,
	CURL_HTTPHEADER = 10023,
	CURL_XFERINFODATA = 10057,
	CURL_WRITEFUNCTION = 20011,
	CURL_XFERINFOFUNCTION = 20219,
	CURL_NOPROGRESS = 43,
	CURL_FOLLOWLOCATION = 52,
	CURL_POSTFIELDSIZE = 60,
	CURL_NOSIGNAL = 99,
	CURL_TIMEOUT_MS = 155,
	CURL_CONNECTTIMEOUT_MS = 156,
	CURL_PROTOCOLS = 181, /* 1: http, 2: https */
	CURL_INFO_RESPONSE_CODE = 0x200002,
	CURL_ERROR_BYTES = 256,
	CURL_GLOBAL_SSL = 3, /* and sockets, as CURL_GLOBAL_ALL of old */
};

struct curllibrary {
	int (*global_init)(long flags);
	void *(*easy_init)(void);
	void (*easy_cleanup)(void *handle);
	int (*easy_setopt)(void *handle, int option, ...);
	int (*easy_perform)(void *handle);
	int (*easy_getinfo)(void *handle, int info, ...);
	const char *(*easy_strerror)(int code);
	void *(*slist_append)(void *list, const char *text);
	void (*slist_free_all)(void *list);
};

/* Stays loaded. Returns 0, or -ENOPKG with a line in err. */
_must_check_ int curllibrary_open(struct curllibrary *ret, struct err *err);
