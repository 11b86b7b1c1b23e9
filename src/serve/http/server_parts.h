/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of the server, shared by server.c, server_answer.c and server_stream.c. */
#pragma once

#include "base/base.h"
#include "serve/http/mhd.h"
#include "serve/http/server.h"

#include <pthread.h>

/* A connection that is open. fd stays valid until the library says that it is closed. */
struct connection {
	int fd; /* -1: free */
	int64_t since_ns;
	enum role role; /* of the user at its other end */
	uid_t user;
	bool cut, stream, known;
};

struct stream {
	struct server *server;
	struct stream *next, **link; /* of server->streams */
	struct MHD_Connection *connection;
	server_follow_fn follow;
	void *follow_arg;
	uint64_t after;
	struct str pending;
	size_t sent; /* of pending */
	int64_t said_ns;
	bool suspended;
};

struct server {
	struct mhd mhd;
	struct MHD_Daemon *daemon;
	struct server_options options;
	char address[128], own_name[256];
	pthread_mutex_t lock; /* of connections, streams, closing */
	struct connection connections[SERVER_CONNECTION_MAX];
	struct stream *streams;
	size_t stream_cnt;
	bool closing;
};

/* Sends what the handler made, with the headers of each answer. */
enum MHD_Result server_send(struct server *server, struct MHD_Connection *connection,
			    const struct request *request, struct answer *answer);

/* Begins a stream of events; frees the answer's body. */
enum MHD_Result server_send_stream(struct server *server, struct MHD_Connection *connection,
				   struct answer *answer);

/* Headers that all answers have. */
void server_add_headers(const struct server *server, struct MHD_Response *response,
			const struct answer *answer);

/* Ends all streams; none is suspended after it. */
void server_end_streams(struct server *server);
