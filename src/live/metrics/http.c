/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/http.h"

#include "base/clock.h"
#include "serve/http/mhd.h"

#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_SECONDS 5u
#define STACK_BYTES ((size_t)256 << 10)

/* A connection that is open. fd stays valid until the server says that it is closed. */
struct connection {
	int fd; /* -1: free */
	int64_t since_ns;
	bool cut;
};

struct http {
	struct mhd mhd;
	struct MHD_Daemon *daemon;
	struct http_source source;
	char address[80];
	pthread_mutex_t lock; /* of connections */
	struct connection connections[HTTP_CONNECTION_MAX];
};

/* --- connections --- */

static struct connection *find_connection(struct http *http, int fd)
{
	for (size_t i = 0; i < HTTP_CONNECTION_MAX; i++) {
		if (http->connections[i].fd == fd)
			return &http->connections[i];
	}
	return NULL;
}

/* The server opens and closes connections on its thread; it closes the socket after this. */
static void note_connection(void *arg, struct MHD_Connection *connection, void **context _unused_,
			    enum MHD_ConnectionNotificationCode code)
{
	struct http *http = arg;
	const union MHD_ConnectionInfo *info =
		http->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_CONNECTION_FD);
	struct connection *place;

	if (info == NULL)
		return;
	(void)pthread_mutex_lock(&http->lock);
	place = find_connection(http,
				code == MHD_CONNECTION_NOTIFY_STARTED ? -1 : info->connect_fd);
	if (place != NULL && code == MHD_CONNECTION_NOTIFY_STARTED)
		*place = (struct connection){ info->connect_fd, clock_mono_ns(), false };
	else if (place != NULL)
		place->fd = -1;
	(void)pthread_mutex_unlock(&http->lock);
}

void http_tick(struct http *http, int64_t now_ns)
{
	if (http == NULL)
		return;
	(void)pthread_mutex_lock(&http->lock);
	for (size_t i = 0; i < HTTP_CONNECTION_MAX; i++) {
		struct connection *connection = &http->connections[i];

		if (connection->fd < 0 || connection->cut ||
		    now_ns - connection->since_ns < HTTP_AGE_MAX_NS)
			continue;
		connection->cut = true;
		(void)shutdown(connection->fd, SHUT_RDWR);
	}
	(void)pthread_mutex_unlock(&http->lock);
}

/* --- requests --- */

static enum MHD_Result answer(const struct mhd *mhd, struct MHD_Connection *connection,
			      unsigned status, const char *type, struct MHD_Response *response)
{
	enum MHD_Result ret;

	if (response == NULL)
		return MHD_NO;
	(void)mhd->add_response_header(response, MHD_HTTP_HEADER_CONTENT_TYPE, type);
	(void)mhd->add_response_header(response, MHD_HTTP_HEADER_CONNECTION, "close");
	(void)mhd->add_response_header(response, "X-Content-Type-Options", "nosniff");
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)mhd->add_response_header(response, MHD_HTTP_HEADER_ALLOW, "GET, HEAD");
	ret = mhd->queue_response(connection, status, response);
	mhd->destroy_response(response);
	return ret;
}

/* text: a literal. */
static enum MHD_Result answer_text(const struct mhd *mhd, struct MHD_Connection *connection,
				   unsigned status, const char *text)
{
	return answer(mhd, connection, status, "text/plain; charset=utf-8",
		      mhd->create_response_from_buffer(strlen(text), (void *)(uintptr_t)text,
						       MHD_RESPMEM_PERSISTENT));
}

static enum MHD_Result answer_page(struct http *http, struct MHD_Connection *connection)
{
	const struct mhd *mhd = &http->mhd;
	const char *accept =
		mhd->lookup_connection_value(connection, MHD_HEADER_KIND, MHD_HTTP_HEADER_ACCEPT);
	const char *type = "";
	struct str page = { 0 };
	struct MHD_Response *response;

	if (http->source.render(http->source.arg, accept, &page, &type) < 0) {
		str_done(&page);
		return answer_text(mhd, connection, MHD_HTTP_SERVICE_UNAVAILABLE,
				   "out of memory\n");
	}
	response = mhd->create_response_from_buffer(page.len, page.data, MHD_RESPMEM_MUST_FREE);
	if (response == NULL)
		str_done(&page);
	return answer(mhd, connection, MHD_HTTP_OK, type, response);
}

static enum MHD_Result take_request(void *arg, struct MHD_Connection *connection, const char *url,
				    const char *method, const char *version _unused_,
				    const char *upload _unused_, size_t *upload_size,
				    void **context)
{
	struct http *http = arg;

	if (*context == NULL) { /* the headers are complete; a body that follows is refused */
		*context = http;
		if (strcmp(method, MHD_HTTP_METHOD_GET) != 0 &&
		    strcmp(method, MHD_HTTP_METHOD_HEAD) != 0)
			return answer_text(&http->mhd, connection, MHD_HTTP_METHOD_NOT_ALLOWED,
					   "only GET and HEAD\n");
		return MHD_YES;
	}
	if (*upload_size > 0) {
		*upload_size = 0;
		return MHD_YES;
	}
	if (strcmp(url, http->source.path) == 0)
		return answer_page(http, connection);
	if (strcmp(url, "/") == 0)
		return answer_text(&http->mhd, connection, MHD_HTTP_OK,
				   "PerfTracker: see /metrics\n");
	return answer_text(&http->mhd, connection, MHD_HTTP_NOT_FOUND, "there is only /metrics\n");
}

/* --- life --- */

static int start(struct http *http, int fd)
{
	http->daemon = http->mhd.start_daemon(
		MHD_USE_AUTO_INTERNAL_THREAD | MHD_USE_ITC, 0, NULL, NULL, take_request, http,
		MHD_OPTION_LISTEN_SOCKET, fd, MHD_OPTION_CONNECTION_LIMIT, HTTP_CONNECTION_MAX,
		MHD_OPTION_CONNECTION_TIMEOUT, IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT,
		(size_t)HTTP_REQUEST_BYTES, MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES,
		MHD_OPTION_NOTIFY_CONNECTION, note_connection, http, MHD_OPTION_END);
	return http->daemon != NULL ? 0 : -ENOMEM;
}

int http_open(const struct netaddress *address, const struct http_source *source, struct http **ret,
	      struct err *err)
{
	struct mhd mhd;
	struct http *http;
	int fd, error = mhd_open("serving metrics", &mhd, err);

	if (error < 0)
		return error;
	fd = netaddress_listen(address, err);
	if (fd < 0)
		return fd;
	http = calloc(1, sizeof(*http));
	if (http != NULL) {
		http->mhd = mhd;
		http->source = *source;
		for (size_t i = 0; i < HTTP_CONNECTION_MAX; i++)
			http->connections[i].fd = -1;
		(void)pthread_mutex_init(&http->lock, NULL);
		netaddress_describe(fd, http->address, sizeof(http->address));
	}
	if (http == NULL || start(http, fd) < 0) {
		(void)close(fd);
		(void)http_close(http);
		return err_set(err, ENOMEM, "the HTTP server can't be started");
	}
	*ret = http;
	return 0;
}

struct http *http_close(struct http *http)
{
	if (http == NULL)
		return NULL;
	if (http->daemon != NULL)
		http->mhd.stop_daemon(http->daemon); /* closes the socket it listens on, too */
	(void)pthread_mutex_destroy(&http->lock);
	free(http);
	return NULL;
}

const char *http_borrow_address(const struct http *http)
{
	return http->address;
}
