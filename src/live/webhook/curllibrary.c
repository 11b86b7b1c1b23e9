/* SPDX-License-Identifier: Apache-2.0 */
#include "live/webhook/curllibrary.h"

#include "base/base.h"
#include "base/symbols.h"

#include <dlfcn.h>
#include <errno.h>

int curllibrary_open(struct curllibrary *ret, struct err *err)
{
	static const char *const names[] = { "libcurl.so.4", "libcurl-gnutls.so.4",
					     "libcurl-nss.so.4" };
	const struct symbol table[] = {
		{ &ret->global_init, "curl_global_init" },
		{ &ret->easy_init, "curl_easy_init" },
		{ &ret->easy_cleanup, "curl_easy_cleanup" },
		{ &ret->easy_setopt, "curl_easy_setopt" },
		{ &ret->easy_perform, "curl_easy_perform" },
		{ &ret->easy_getinfo, "curl_easy_getinfo" },
		{ &ret->easy_strerror, "curl_easy_strerror" },
		{ &ret->slist_append, "curl_slist_append" },
		{ &ret->slist_free_all, "curl_slist_free_all" },
	};
	void *library = NULL;
	const char *missing;

	for (size_t i = 0; i < ARRAY_SIZE(names) && library == NULL; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	if (library == NULL)
		return err_set(err, ENOPKG,
			       "webhooks need libcurl.so.4: install libcurl4 (Debian, Ubuntu) or "
			       "libcurl (Fedora, RHEL)");
	missing = symbols_find(library, table, ARRAY_SIZE(table));
	if (missing == NULL && ret->global_init(CURL_GLOBAL_SSL) == 0)
		return 0;
	return err_set(err, ENOPKG, "libcurl lacks %s", missing != NULL ? missing : "its start");
}
