/* SPDX-License-Identifier: Apache-2.0 */
/*
 * What a server answers: one table of paths, from which the API's description is made, too
 * (openapi.h). A handler fills an answer or fails with a line that says what to do; a failure
 * becomes JSON below /api, else a page.
 */
#pragma once

#include "serve/archive.h"
#include "serve/childtext.h"
#include "serve/feed.h"
#include "serve/handlers.h"
#include "serve/http/server.h"

#define ROUTES_POST_PATH "/mcp"

/* A profile that a person asks for, now. Texts are borrowed. */
struct routes_wish {
	const char *job, *folder; /* its key, and where its files are */
	const char *user, *reason;
};

/* The daemon of the jobs that are shown, where there is one; on the server's thread. */
struct routes_live {
	/* Appends the job as it is now, "Live" of the API. -ENOENT: it does not run here (any more). */
	int (*read)(void *arg, const char *job, const char *folder, struct str *ret);
	/* Asks for it. Returns 0, -ENOENT as above, -EBUSY, or -errno, with a line in err. */
	int (*profile)(void *arg, const struct routes_wish *wish, struct err *err);
	/*
	 * Appends /metrics in the format that this Accept header (NULL: none) prefers, and names its
	 * type. Returns 0 or -errno. NULL: this daemon has none.
	 */
	int (*metrics)(void *arg, const char *accept, struct str *ret, const char **ret_type);
	void *arg;
};

/* The context of all handlers; on the server's thread only. */
struct routes {
	struct archive archive;
	struct feed *feed;
	const struct routes_live *live; /* NULL: only what is written is shown */
	struct childtext *traces;	/* timelines as files, which are large; NULL: none */
	struct childtext *childtext;	/* other commands as children; NULL: none */
	server_answer_fn post;		/* of a POST to ROUTES_POST_PATH: what agents ask */
	void *post_arg;
};

struct call {
	struct routes *routes;
	const struct request *request;
	char part[256]; /* of the path: the {name} in its pattern */
	struct err *err;
};

/*
 * Returns 0; -ENOENT, -EINVAL, -EBADMSG (422): the client's fault; -EBUSY, -EALREADY: not now; -ENOSYS: not on
 * this server;
 * else ours; with a line in err.
 */
typedef int (*route_fn)(struct call *call, struct answer *ret);

struct route_param {
	const char *name;
	bool in_path;
	bool number;
	uint64_t high; /* of a number */
	const char *about;
};

struct route {
	const char *path;
	const char *type; /* a constant; NULL: a page */
	route_fn make;
	const char *id, *about; /* of the API; NULL: a page or a file of it */
	const char *schema;	/* of the answer: a name in openapi.c */
	const char *help;	/* after a wrong request: what to do */
	const struct route_param *params;
	size_t param_cnt;
	bool writes; /* a POST, with a body as request_schema says; else a GET */
	const char *request_schema;
};

extern const struct route routes_table[];
extern const size_t routes_cnt;

/* For struct server_options; arg is a struct routes. */
void routes_answer(void *arg, const struct request *request, struct answer *ret);
void routes_refuse(void *arg, const struct request *request, unsigned status, const char *why,
		   struct answer *ret);

/* The job that the path names, by key, its beginning, or name. */
_must_check_ int routes_find_job(struct call *call, char ret[static STORE_KEY_BYTES]);

/* The filter in a query: filter, state, limit, cursor. Returns 0 or -EINVAL with a line in err. */
_must_check_ int routes_read_filter(struct call *call, uint64_t preset, struct archive_filter *ret);

#define ROUTES_LIMIT_MAX 1000u
