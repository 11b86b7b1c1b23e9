/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/server.h"

#include "base/clock.h"
#include "serve/http/peer.h"
#include "serve/http/server_parts.h"

#include <errno.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define IDLE_SECONDS 60u
#define STACK_BYTES ((size_t)1 << 20)
#define BODY_BYTES_MAX 65536u  /* of a request; more is cut off */
#define BODY_BYTES_TAKEN 4096u /* of what writes: the forms here are short; more is refused */

/* --- connections --- */

/* The library opens and closes connections on its thread; it closes the socket after this. */
static void note_connection(void *arg, struct MHD_Connection *connection, void **context,
			    enum MHD_ConnectionNotificationCode code)
{
	struct server *server = arg;
	const union MHD_ConnectionInfo *info;
	struct connection *place = *context;

	(void)pthread_mutex_lock(&server->lock);
	if (code == MHD_CONNECTION_NOTIFY_CLOSED && place != NULL)
		place->fd = -1;
	info = code == MHD_CONNECTION_NOTIFY_STARTED
		       ? server->mhd.get_connection_info(connection,
							 MHD_CONNECTION_INFO_CONNECTION_FD)
		       : NULL;
	for (size_t i = 0; info != NULL && i < SERVER_CONNECTION_MAX; i++) {
		if (server->connections[i].fd >= 0)
			continue;
		*context = &server->connections[i];
		server->connections[i] =
			(struct connection){ .fd = info->connect_fd, .since_ns = clock_mono_ns() };
		break;
	}
	(void)pthread_mutex_unlock(&server->lock);
}

static struct connection *place_of(const struct server *server, struct MHD_Connection *connection)
{
	const union MHD_ConnectionInfo *info =
		server->mhd.get_connection_info(connection, MHD_CONNECTION_INFO_SOCKET_CONTEXT);

	return info != NULL ? info->socket_context : NULL;
}

static void note_completed(void *arg, struct MHD_Connection *connection, void **context _unused_,
			   enum MHD_RequestTerminationCode code _unused_)
{
	struct server *server = arg;
	struct connection *place = place_of(server, connection);

	if (place == NULL)
		return;
	(void)pthread_mutex_lock(&server->lock);
	place->since_ns = clock_mono_ns();
	place->stream = false;
	(void)pthread_mutex_unlock(&server->lock);
}

void server_tick(struct server *server, int64_t now_ns)
{
	size_t open_cnt = 0;
	int64_t age_max_ns;

	(void)pthread_mutex_lock(&server->lock);
	for (size_t i = 0; i < SERVER_CONNECTION_MAX; i++)
		open_cnt += server->connections[i].fd >= 0;
	age_max_ns = open_cnt > SERVER_CONNECTION_MAX / 4 * 3 ? SERVER_CROWDED_AGE_MAX_NS
							      : SERVER_AGE_MAX_NS;
	for (size_t i = 0; i < SERVER_CONNECTION_MAX; i++) {
		struct connection *place = &server->connections[i];

		if (place->fd < 0 || place->cut || place->stream ||
		    now_ns - place->since_ns < age_max_ns)
			continue;
		place->cut = true;
		(void)shutdown(place->fd, SHUT_RDWR);
	}
	(void)pthread_mutex_unlock(&server->lock);
}

/* --- who asks --- */

/* The user's own processes, and root's, which could do anything anyhow. */
static enum role role_of_user(struct connection *place)
{
	if (!place->known && peer_user(place->fd, &place->user) == 0)
		place->role =
			place->user == geteuid() || place->user == 0 ? ROLE_OPERATOR : ROLE_NONE;
	place->known = true;
	return place->role;
}

/* For the log of what is written: the name of a token, or that of the user. */
static void name_user(const struct server *server, const struct connection *place,
		      const char *token, struct request *request)
{
	char buffer[1024];
	struct passwd entry, *found = NULL;

	if (token != NULL)
		tokens_name(server->options.tokens, token, request->user);
	else if (getpwuid_r(place->user, &entry, buffer, sizeof(buffer), &found) == 0 &&
		 found != NULL)
		(void)snprintf(request->user, sizeof(request->user), "%s", entry.pw_name);
	else
		(void)snprintf(request->user, sizeof(request->user), "user %u", place->user);
	if (request->user[0] == '\0')
		(void)snprintf(request->user, sizeof(request->user), "an operator's token");
}

/* Returns 0, or the status of a refusal with its line. */
static unsigned check_role(const struct server *server, struct connection *place,
			   struct request *request, const char **ret_why)
{
	bool by_user = server->options.tokens == NULL || server->options.address.path[0] != '\0';
	char token[REQUEST_TOKEN_MAX] = "";
	enum role role = ROLE_NONE;

	if (by_user && role_of_user(place) == ROLE_NONE) {
		*ret_why = "only processes of the server's own user may ask: start it with "
			   "--token-file for others";
		return MHD_HTTP_FORBIDDEN;
	}
	if (by_user)
		role = place->role;
	else if (request_token(request->headers[HEADER_AUTHORIZATION], token))
		role = tokens_role(server->options.tokens, token);
	if (role != ROLE_NONE && request->writes)
		name_user(server, place, by_user ? NULL : token, request);
	explicit_bzero(token, sizeof(token));
	*ret_why = "a token of the server's --token-file is needed: Authorization: Bearer TOKEN, "
		   "or any user name with the token as password";
	if (role == ROLE_NONE)
		return MHD_HTTP_UNAUTHORIZED;
	*ret_why = "only an operator may do this: a line \"operator TOKEN\" of the server's "
		   "--token-file";
	return request->writes && role < ROLE_OPERATOR ? MHD_HTTP_FORBIDDEN : 0;
}

static bool takes_post(const struct server *server, const char *path)
{
	const char *post = server->options.post_path;

	return post != NULL && strcmp(path, post) == 0;
}

/* A page of another site cannot send the type of agents unasked. */
static unsigned check_method(const struct request *request, const char *method,
			     const char **ret_why)
{
	if (request->of_agent && strcmp(method, "POST") == 0) {
		*ret_why = "expected Content-Type: application/json";
		return request_is_json(request->headers[HEADER_CONTENT_TYPE])
			       ? 0
			       : MHD_HTTP_UNSUPPORTED_MEDIA_TYPE;
	}
	if (request->writes ||
	    (!request->of_agent && (strcmp(method, "GET") == 0 || strcmp(method, "HEAD") == 0)))
		return 0;
	*ret_why =
		request->of_agent ? "use POST" : "there is nothing to write here: use GET or HEAD";
	return MHD_HTTP_METHOD_NOT_ALLOWED;
}

static unsigned check(const struct server *server, struct connection *place,
		      struct request *request, const char *method, const char **ret_why)
{
	const struct request_names names = { server->own_name, server->options.name };
	unsigned status;

	if (place == NULL) {
		*ret_why = "too many connections: try again";
		return MHD_HTTP_SERVICE_UNAVAILABLE;
	}
	if (!request_host_is_ours(request->headers[HEADER_HOST], &names)) {
		*ret_why = "the Host header names another server: use the address that the server "
			   "printed, or start it with --host NAME";
		return MHD_HTTP_MISDIRECTED_REQUEST;
	}
	if (!request_origin_is_ours(request->headers[HEADER_ORIGIN], &names)) {
		*ret_why = "pages of another site may not ask: see the Origin header";
		return MHD_HTTP_FORBIDDEN;
	}
	status = check_method(request, method, ret_why);
	if (status != 0)
		return status;
	if (request->writes && !request_may_write(request)) {
		*ret_why = "pages of another site or port may not write: see the headers Origin "
			   "and Sec-Fetch-Site";
		return MHD_HTTP_FORBIDDEN;
	}
	return check_role(server, place, request, ret_why);
}

/* --- requests --- */

static enum MHD_Result take_argument(void *arg, enum MHD_ValueKind kind _unused_, const char *name,
				     const char *value)
{
	struct request *request = arg;

	if (request->query_cnt < REQUEST_QUERY_MAX)
		request->query[request->query_cnt++] =
			(struct request_value){ name, value != NULL ? value : "" };
	return MHD_YES;
}

/* Marks the connection of a stream; false: there are enough. */
static bool begin_stream(struct server *server, struct connection *place)
{
	bool room;

	(void)pthread_mutex_lock(&server->lock);
	room = server->stream_cnt < SERVER_STREAM_MAX && !server->closing;
	place->stream = room;
	(void)pthread_mutex_unlock(&server->lock);
	return room;
}

static enum MHD_Result reply(struct server *server, struct MHD_Connection *connection,
			     struct request *request, const char *method)
{
	struct connection *place = place_of(server, connection);
	const struct server_options *options = &server->options;
	struct answer answer = { 0 };
	const char *why = "";
	unsigned refused = check(server, place, request, method, &why);

	if (refused == 0 && request->writes && request->body == NULL) {
		refused = MHD_HTTP_CONTENT_TOO_LARGE;
		why = "the body is too long: 4096 bytes at most";
	}
	if (refused != 0)
		options->refuse(options->arg, request, refused, why, &answer);
	else
		options->answer(options->arg, request, &answer);
	if (answer.follow != NULL && strcmp(method, "HEAD") != 0) {
		if (begin_stream(server, place))
			return server_send_stream(server, connection, &answer);
		str_done(&answer.body);
		answer = (struct answer){ 0 };
		options->refuse(options->arg, request, MHD_HTTP_SERVICE_UNAVAILABLE,
				"too many event streams are open: close a page", &answer);
	}
	return server_send(server, connection, request, &answer);
}

/* What came of a request's body, and how much came in all. */
struct upload {
	struct str body;
	size_t seen;
};

static enum MHD_Result take_body(struct upload *upload, size_t max, const char *data, size_t len)
{
	upload->seen += len;
	if (upload->seen > BODY_BYTES_MAX)
		return MHD_NO;
	if (upload->seen <= max)
		str_append_len(&upload->body, data, len);
	return str_error(&upload->body) == 0 ? MHD_YES : MHD_NO;
}

static enum MHD_Result take_request(void *arg, struct MHD_Connection *connection, const char *url,
				    const char *method, const char *version _unused_,
				    const char *data, size_t *data_size, void **context)
{
	struct request request = { .path = url };
	struct upload *upload = *context;
	struct server *server = arg;
	size_t len = *data_size;

	if (upload == NULL) { /* the headers are complete, a body may follow */
		*context = calloc(1, sizeof(*upload));
		return *context != NULL ? MHD_YES : MHD_NO;
	}
	request.of_agent = takes_post(server, url);
	request.writes = !request.of_agent && strcmp(method, "POST") == 0;
	if (len > 0) {
		*data_size = 0;
		return take_body(upload, request.of_agent ? BODY_BYTES_MAX : BODY_BYTES_TAKEN, data,
				 len);
	}
	for (size_t i = 0; i < HEADER_CNT; i++)
		request.headers[i] = server->mhd.lookup_connection_value(
			connection, MHD_HEADER_KIND, request_header_names[i]);
	(void)server->mhd.get_connection_values(connection, MHD_GET_ARGUMENT_KIND, take_argument,
						&request);
	/* A NUL would hide what follows it from the readers of forms. */
	if (upload->seen == upload->body.len &&
	    (request.of_agent || strlen(str_borrow(&upload->body)) == upload->body.len)) {
		request.body = str_borrow(&upload->body);
		request.body_len = upload->body.len;
	}
	if (request.of_agent)
		request.headers[HEADER_IF_NONE_MATCH] = NULL;
	return reply(server, connection, &request, method);
}

static void end_request(void *arg, struct MHD_Connection *connection, void **context,
			enum MHD_RequestTerminationCode code)
{
	struct upload *upload = *context;

	if (upload != NULL)
		str_done(&upload->body);
	free(upload);
	*context = NULL;
	note_completed(arg, connection, context, code);
}

/* --- life --- */

static int start(struct server *server, int fd)
{
	server->daemon = server->mhd.start_daemon(
		MHD_USE_EPOLL_INTERNAL_THREAD | MHD_USE_ITC | MHD_ALLOW_SUSPEND_RESUME, 0, NULL,
		NULL, take_request, server, MHD_OPTION_LISTEN_SOCKET, fd,
		MHD_OPTION_CONNECTION_LIMIT, SERVER_CONNECTION_MAX, MHD_OPTION_CONNECTION_TIMEOUT,
		IDLE_SECONDS, MHD_OPTION_CONNECTION_MEMORY_LIMIT, (size_t)SERVER_REQUEST_BYTES,
		MHD_OPTION_THREAD_STACK_SIZE, STACK_BYTES, MHD_OPTION_NOTIFY_CONNECTION,
		note_connection, server, MHD_OPTION_NOTIFY_COMPLETED, end_request, server,
		MHD_OPTION_END);
	return server->daemon != NULL ? 0 : -ENOMEM;
}

static int check_open(const struct server_options *options, struct err *err)
{
	if (options->tokens != NULL || netaddress_is_local(&options->address))
		return 0;
	return err_set(
		err, EPERM,
		"%s is open to other machines: add --token-file FILE, or listen on 127.0.0.1 "
		"and come in by `ssh -L`",
		options->address.host);
}

static struct server *new_server(const struct server_options *options, const struct mhd *mhd,
				 int fd)
{
	struct server *server = calloc(1, sizeof(*server));

	if (server == NULL)
		return NULL;
	server->mhd = *mhd;
	server->options = *options;
	for (size_t i = 0; i < SERVER_CONNECTION_MAX; i++)
		server->connections[i].fd = -1;
	(void)pthread_mutex_init(&server->lock, NULL);
	if (gethostname(server->own_name, sizeof(server->own_name) - 1) < 0)
		server->own_name[0] = '\0';
	netaddress_describe(fd, server->address, sizeof(server->address));
	return server;
}

int server_open(const struct server_options *options, struct server **ret, struct err *err)
{
	struct server *server;
	struct mhd mhd;
	int fd, error = check_open(options, err);

	if (error == 0)
		error = mhd_open("the server", &mhd, err);
	if (error < 0)
		return error;
	fd = netaddress_listen(&options->address, err);
	if (fd < 0)
		return fd;
	server = new_server(options, &mhd, fd);
	if (server == NULL || start(server, fd) < 0) {
		(void)close(fd);
		(void)server_close(server);
		return err_set(err, ENOMEM, "the HTTP server can't be started");
	}
	*ret = server;
	return 0;
}

struct server *server_close(struct server *server)
{
	if (server == NULL)
		return NULL;
	if (server->daemon != NULL) {
		server_end_streams(server);
		server->mhd.stop_daemon(server->daemon); /* closes the socket it listens on, too */
		if (server->options.address.path[0] != '\0')
			(void)unlink(server->options.address.path);
	}
	(void)pthread_mutex_destroy(&server->lock);
	free(server);
	return NULL;
}

const char *server_borrow_address(const struct server *server)
{
	return server->address;
}
