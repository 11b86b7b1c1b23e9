/* SPDX-License-Identifier: Apache-2.0 */
#include "live/metrics/http.h"

#include "base/clock.h"
#include "base/symbols.h"

#include <arpa/inet.h>
#include <dlfcn.h>
#include <errno.h>
#include <microhttpd.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MHD_SONAME "libmicrohttpd.so.12"
#define BACKLOG 64
#define IDLE_SECONDS 5u
#define STACK_BYTES ((size_t)256 << 10)

/*
 * The functions of libmicrohttpd. It depends on TLS, a dozen libraries and 2.4 MB, so it is
 * loaded only by a process that serves.
 */
struct mhd {
	__typeof__(MHD_start_daemon) *start_daemon;
	__typeof__(MHD_stop_daemon) *stop_daemon;
	__typeof__(MHD_get_connection_info) *get_connection_info;
	__typeof__(MHD_lookup_connection_value) *lookup_connection_value;
	__typeof__(MHD_create_response_from_buffer) *create_response_from_buffer;
	__typeof__(MHD_add_response_header) *add_response_header;
	__typeof__(MHD_queue_response) *queue_response;
	__typeof__(MHD_destroy_response) *destroy_response;
};

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

/* --- the library --- */

/* Fills the table. Returns the first symbol that is missing, NULL when all are there. */
static const char *resolve(struct mhd *mhd, void *library)
{
	const struct symbol table[] = {
		{ &mhd->start_daemon, "MHD_start_daemon" },
		{ &mhd->stop_daemon, "MHD_stop_daemon" },
		{ &mhd->get_connection_info, "MHD_get_connection_info" },
		{ &mhd->lookup_connection_value, "MHD_lookup_connection_value" },
		{ &mhd->create_response_from_buffer, "MHD_create_response_from_buffer" },
		{ &mhd->add_response_header, "MHD_add_response_header" },
		{ &mhd->queue_response, "MHD_queue_response" },
		{ &mhd->destroy_response, "MHD_destroy_response" },
	};

	return symbols_find(library, table, ARRAY_SIZE(table));
}

/* Never unloaded: its dependencies leave handlers in the process. */
static int mhd_open(struct mhd *ret, struct err *err)
{
	void *library = dlopen(MHD_SONAME, RTLD_NOW | RTLD_LOCAL);
	const char *missing;

	if (library == NULL)
		return err_set(err, ENOPKG,
			       "serving metrics needs " MHD_SONAME
			       ": install libmicrohttpd12 (Debian, Ubuntu) or libmicrohttpd "
			       "(Fedora, RHEL): %s",
			       dlerror());
	missing = resolve(ret, library);
	return missing == NULL ? 0 : err_set(err, ENOPKG, MHD_SONAME " lacks %s", missing);
}

/* --- addresses --- */

static int parse_port(const char *text, uint16_t *ret)
{
	unsigned long value = 0;

	if (*text == '\0')
		return -EINVAL;
	for (; *text >= '0' && *text <= '9' && value <= UINT16_MAX; text++)
		value = value * 10 + (unsigned)(*text - '0');
	if (*text != '\0' || value > UINT16_MAX)
		return -EINVAL;
	*ret = (uint16_t)value;
	return 0;
}

static bool is_number(const char *host)
{
	unsigned char address[sizeof(struct in6_addr)];

	return inet_pton(AF_INET, host, address) == 1 || inet_pton(AF_INET6, host, address) == 1;
}

int http_parse_address(const char *text, struct http_address *ret, struct err *err)
{
	static const char expected[] =
		"expected PORT (this machine only), ADDR:PORT or [ADDR]:PORT with a number as "
		"ADDR (0.0.0.0: all of this machine's)";
	struct http_address address = { .host = "127.0.0.1" };
	const char *colon = strrchr(text, ':'), *host = text;
	size_t len = colon != NULL ? (size_t)(colon - text) : 0;

	if (colon != NULL && len > 2 && text[0] == '[' && colon[-1] == ']') {
		host++;
		len -= 2;
	} else if (memchr(text, ':', len) != NULL) {
		len = 0; /* ::1:80 is ambiguous */
	}
	if (colon != NULL && (len == 0 || len >= sizeof(address.host)))
		return err_set(err, EINVAL, "%s, found %s", expected, text);
	if (colon != NULL && !(len == strlen("localhost") && memcmp(host, "localhost", len) == 0)) {
		memcpy(address.host, host, len);
		address.host[len] = '\0';
	}
	if (!is_number(address.host) ||
	    parse_port(colon != NULL ? colon + 1 : text, &address.port) < 0)
		return err_set(err, EINVAL, "%s, found %s", expected, text);
	*ret = address;
	return 0;
}

union any_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

static socklen_t fill_address(const struct http_address *address, union any_address *ret)
{
	*ret = (union any_address){ 0 };
	if (inet_pton(AF_INET, address->host, &ret->v4.sin_addr) == 1) {
		ret->v4.sin_family = AF_INET;
		ret->v4.sin_port = htons(address->port);
		return sizeof(ret->v4);
	}
	(void)inet_pton(AF_INET6, address->host, &ret->v6.sin6_addr);
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = htons(address->port);
	return sizeof(ret->v6);
}

static void describe(int fd, char *ret, size_t size)
{
	union any_address address = { 0 };
	socklen_t len = sizeof(address);
	char host[INET6_ADDRSTRLEN] = "";

	(void)getsockname(fd, &address.any, &len);
	if (address.any.sa_family == AF_INET6) {
		(void)inet_ntop(AF_INET6, &address.v6.sin6_addr, host, sizeof(host));
		(void)snprintf(ret, size, "[%s]:%u", host, ntohs(address.v6.sin6_port));
		return;
	}
	(void)inet_ntop(AF_INET, &address.v4.sin_addr, host, sizeof(host));
	(void)snprintf(ret, size, "%s:%u", host, ntohs(address.v4.sin_port));
}

static int listen_at(const struct http_address *address, struct err *err)
{
	union any_address where;
	socklen_t len = fill_address(address, &where);
	int fd = socket(where.any.sa_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	int on = 1, error;

	if (fd >= 0 && setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on)) == 0 &&
	    bind(fd, &where.any, len) == 0 && listen(fd, BACKLOG) == 0)
		return fd;
	error = errno;
	if (fd >= 0)
		(void)close(fd);
	return err_set(err, error, "%s port %u: %s", address->host, address->port, strerror(error));
}

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

int http_open(const struct http_address *address, const struct http_source *source,
	      struct http **ret, struct err *err)
{
	struct mhd mhd;
	struct http *http;
	int fd, error = mhd_open(&mhd, err);

	if (error < 0)
		return error;
	fd = listen_at(address, err);
	if (fd < 0)
		return fd;
	http = calloc(1, sizeof(*http));
	if (http != NULL) {
		http->mhd = mhd;
		http->source = *source;
		for (size_t i = 0; i < HTTP_CONNECTION_MAX; i++)
			http->connections[i].fd = -1;
		(void)pthread_mutex_init(&http->lock, NULL);
		describe(fd, http->address, sizeof(http->address));
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
