/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Page, API and events of `perftracker serve` inside a daemon that runs: of one job (run --ui) or of a
 * fleet's hub (hub.ui). A thread of its own loads libmicrohttpd, opens the server, says its address
 * and follows the store: what is slow there never delays the daemon's loop. An error is logged; the
 * daemon goes on without a page.
 */
#pragma once

#include "live/ui/uiasks.h"
#include "serve/http/netaddress.h"

struct uiserver;

/* Texts are copied; tokens, live and asks are borrowed until uiserver_close(). */
struct uiserver_setup {
	struct netaddress address;
	const struct tokens *tokens; /* NULL: only the user's own processes of this machine */
	const char *host;	     /* a further name in Host headers; NULL: none */
	const char *place;	     /* of the store that is shown */
	const char *later;	     /* the command that shows the same when the daemon has ended */
	const struct routes_live *live;
	struct uiasks *asks;
};

/* Whether this address is one at all. */
bool uiserver_is_wanted(const struct netaddress *address);

/*
 * Whether such a server may be opened: one that other machines reach needs tokens. Returns 0 or -EPERM with
 * a line in err.
 */
_must_check_ int uiserver_check(const struct netaddress *address, const char *token_file,
				struct err *err);

/* Starts the thread. NULL: out of memory; logged. */
struct uiserver *uiserver_start(const struct uiserver_setup *setup);

/* Ends thread and server; connections are cut. */
struct uiserver *uiserver_close(struct uiserver *server);
