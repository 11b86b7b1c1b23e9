/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/mhd.h"

#include "base/symbols.h"

#include <errno.h>

#define MHD_SONAME "libmicrohttpd.so.12"

/* Fills the table. Returns the first symbol that is missing, NULL when all are there. */
static const char *resolve(struct mhd *mhd, void *library)
{
	const struct symbol table[] = {
		{ &mhd->start_daemon, "MHD_start_daemon" },
		{ &mhd->stop_daemon, "MHD_stop_daemon" },
		{ &mhd->get_connection_info, "MHD_get_connection_info" },
		{ &mhd->get_connection_values, "MHD_get_connection_values" },
		{ &mhd->lookup_connection_value, "MHD_lookup_connection_value" },
		{ &mhd->create_response_from_buffer, "MHD_create_response_from_buffer" },
		{ &mhd->create_response_from_callback, "MHD_create_response_from_callback" },
		{ &mhd->add_response_header, "MHD_add_response_header" },
		{ &mhd->queue_response, "MHD_queue_response" },
		{ &mhd->destroy_response, "MHD_destroy_response" },
		{ &mhd->suspend_connection, "MHD_suspend_connection" },
		{ &mhd->resume_connection, "MHD_resume_connection" },
	};

	return symbols_find(library, table, ARRAY_SIZE(table));
}

int mhd_open(const char *what, struct mhd *ret, struct err *err)
{
	void *library = dlopen(MHD_SONAME, RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (library == NULL)
		return err_set(err, ENOPKG,
			       "%s needs " MHD_SONAME
			       ": install libmicrohttpd12 (Debian, Ubuntu) or libmicrohttpd "
			       "(Fedora, RHEL): %s",
			       what, dlerror());
	missing = resolve(ret, library);
	return missing == NULL ? 0 : err_set(err, ENOPKG, MHD_SONAME " lacks %s", missing);
}
