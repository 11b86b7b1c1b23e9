/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libmicrohttpd. The library depends on TLS, a dozen libraries and 2.4 MB, so it
 * is loaded only by a process that serves.
 * Source: libmicrohttpd 0.9.75, <microhttpd.h>.
 */
#pragma once

#include "base/err.h"

#include <microhttpd.h>

struct mhd {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_get_connection_info) *get_connection_info;
	__typeof__(MHD_get_connection_values) *get_connection_values;
	__typeof__(MHD_lookup_connection_value) *lookup_connection_value;
	__typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
	__typeof__(MHD_create_response_from_callback) *create_response_from_callback;
	__typeof__(MHD_add_response_header) *add_response_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_destroy_response) *destroy_response;
	__typeof__(MHD_suspend_connection) *suspend_connection;
	__typeof__(MHD_resume_connection) *resume_connection;
};

/*
 * Loads the library; it is never unloaded, since its dependencies leave handlers in the process.
 * what: for the line in err, "serving metrics". Returns 0, or -ENOPKG with a line in err.
 */
_must_check_ int mhd_open(const char *what, struct mhd *ret, struct err *err);
