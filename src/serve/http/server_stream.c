/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Streams of events: a stream with nothing to say is suspended, so that it costs no thread and no
 * time; server_wake() resumes all, and each looks for news. A client that goes away is noticed at
 * the next heartbeat.
 */
#include "base/clock.h"
#include "serve/http/server_parts.h"

#include <string.h>

#define PENDING_BYTES ((size_t)64 << 10)

/* Asks the source. The lock is held, so that news cannot come between the look and the pause. */
static void look(struct stream *stream, int64_t now_ns)
{
	str_done(&stream->pending);
	stream->pending = (struct str){ 0 };
	stream->sent = 0;
	stream->follow(stream->follow_arg, &stream->after, PENDING_BYTES, &stream->pending);
	if (stream->pending.len == 0 && now_ns - stream->said_ns >= SERVER_HEARTBEAT_NS)
		str_append(&stream->pending, ":\n\n");
	if (stream->pending.len > 0)
		stream->said_ns = now_ns;
}

static ssize_t read_stream(void *arg, uint64_t pos _unused_, char *buf, size_t max)
{
	struct stream *stream = arg;
	struct server *server = stream->server;
	ssize_t ret = 0;

	(void)pthread_mutex_lock(&server->lock);
	if (stream->sent == stream->pending.len && !server->closing)
		look(stream, clock_mono_ns());
	if (server->closing || str_error(&stream->pending) < 0) {
		ret = MHD_CONTENT_READER_END_OF_STREAM;
	} else if (stream->sent < stream->pending.len) {
		ret = (ssize_t)MIN(max, stream->pending.len - stream->sent);
		memcpy(buf, stream->pending.data + stream->sent, (size_t)ret);
		stream->sent += (size_t)ret;
	} else {
		stream->suspended = true;
		server->mhd.suspend_connection(stream->connection);
	}
	(void)pthread_mutex_unlock(&server->lock);
	return ret;
}

static void free_stream(void *arg)
{
	struct stream *stream = arg;
	struct server *server = stream->server;

	(void)pthread_mutex_lock(&server->lock);
	*stream->link = stream->next;
	if (stream->next != NULL)
		stream->next->link = stream->link;
	server->stream_cnt--;
	(void)pthread_mutex_unlock(&server->lock);
	str_done(&stream->pending);
	free(stream);
}

static struct stream *new_stream(struct server *server, struct MHD_Connection *connection,
				 struct answer *answer)
{
	struct stream *stream = calloc(1, sizeof(*stream));

	if (stream == NULL)
		return NULL;
	*stream = (struct stream){ .server = server,
				   .connection = connection,
				   .follow = answer->follow,
				   .follow_arg = answer->follow_arg,
				   .after = answer->after,
				   .pending = answer->body,
				   .said_ns = clock_mono_ns() };
	answer->body = (struct str){ 0 };
	(void)pthread_mutex_lock(&server->lock);
	stream->next = server->streams;
	stream->link = &server->streams;
	if (stream->next != NULL)
		stream->next->link = &stream->next;
	server->streams = stream;
	server->stream_cnt++;
	(void)pthread_mutex_unlock(&server->lock);
	return stream;
}

enum MHD_Result server_send_stream(struct server *server, struct MHD_Connection *connection,
				   struct answer *answer)
{
	struct stream *stream = new_stream(server, connection, answer);
	struct MHD_Response *response;
	enum MHD_Result ret;

	str_done(&answer->body);
	if (stream == NULL)
		return MHD_NO;
	response = server->mhd.create_response_from_callback(MHD_SIZE_UNKNOWN, 16384, read_stream,
							     stream, free_stream);
	if (response == NULL) {
		free_stream(stream);
		return MHD_NO;
	}
	server_add_headers(server, response, answer);
	(void)server->mhd.add_response_header(response, "X-Accel-Buffering", "no");
	ret = server->mhd.queue_response(connection, MHD_HTTP_OK, response);
	server->mhd.destroy_response(response);
	return ret;
}

static void resume_all(struct server *server)
{
	for (struct stream *stream = server->streams; stream != NULL; stream = stream->next) {
		if (stream->suspended)
			server->mhd.resume_connection(stream->connection);
		stream->suspended = false;
	}
}

void server_wake(struct server *server)
{
	(void)pthread_mutex_lock(&server->lock);
	resume_all(server);
	(void)pthread_mutex_unlock(&server->lock);
}

void server_end_streams(struct server *server)
{
	(void)pthread_mutex_lock(&server->lock);
	server->closing = true;
	resume_all(server);
	(void)pthread_mutex_unlock(&server->lock);
}
