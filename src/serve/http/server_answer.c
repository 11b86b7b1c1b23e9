/* SPDX-License-Identifier: Apache-2.0 */
/* Answers with their headers: what a browser may do with them, and whether it has them already. */
#include "serve/http/server_parts.h"

#include <stdio.h>
#include <string.h>
#include <xxhash.h>

/* Pages load their own files only, and no text becomes markup or script. */
#define STRICT_POLICY                                                                       \
	"default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "   \
	"connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'; " \
	"require-trusted-types-for 'script'; trusted-types 'none'"

void server_add_headers(const struct server *server, struct MHD_Response *response,
			const struct answer *answer)
{
	const struct {
		const char *name, *value;
	} headers[] = {
		{ "Content-Type",
		  answer->type != NULL ? answer->type : "text/html; charset=utf-8" },
		{ "Content-Security-Policy",
		  answer->policy != NULL ? answer->policy : STRICT_POLICY },
		{ "X-Content-Type-Options", "nosniff" },
		{ "X-Frame-Options", "DENY" },
		{ "Referrer-Policy", "same-origin" },
		{ "Cross-Origin-Resource-Policy", "same-origin" },
		{ "Cross-Origin-Opener-Policy",
		  answer->opens_windows ? "same-origin-allow-popups" : "same-origin" },
		{ "Cache-Control", answer->follow != NULL ? "no-store" : "private, no-cache" },
	};

	for (size_t i = 0; i < ARRAY_SIZE(headers); i++)
		(void)server->mhd.add_response_header(response, headers[i].name, headers[i].value);
}

static void add_status_headers(const struct server *server, struct MHD_Response *response,
			       const struct request *request, unsigned status,
			       const struct answer *answer)
{
	char refresh[16], disposition[96];

	(void)snprintf(refresh, sizeof(refresh), "%u", answer->refresh_s);
	if (answer->refresh_s > 0)
		(void)server->mhd.add_response_header(response, "Refresh", refresh);
	if (answer->location[0] != '\0')
		(void)server->mhd.add_response_header(response, "Location", answer->location);
	(void)snprintf(disposition, sizeof(disposition), "attachment; filename=\"%s\"",
		       answer->file_name);
	if (answer->file_name[0] != '\0')
		(void)server->mhd.add_response_header(response, "Content-Disposition", disposition);
	if (status == MHD_HTTP_METHOD_NOT_ALLOWED)
		(void)server->mhd.add_response_header(response, "Allow",
						      request->of_agent ? "POST" : "GET, HEAD");
	if (status == MHD_HTTP_SERVICE_UNAVAILABLE)
		(void)server->mhd.add_response_header(response, "Retry-After", "5");
	if (status != MHD_HTTP_UNAUTHORIZED)
		return;
	/* A browser asks for name and password; the password is the token. */
	(void)server->mhd.add_response_header(response, "WWW-Authenticate",
					      "Basic realm=\"PerfTracker\", charset=\"UTF-8\"");
	(void)server->mhd.add_response_header(response, "WWW-Authenticate",
					      "Bearer realm=\"PerfTracker\"");
}

enum MHD_Result server_send(struct server *server, struct MHD_Connection *connection,
			    const struct request *request, struct answer *answer)
{
	unsigned status = answer->status != 0 ? answer->status : MHD_HTTP_OK;
	struct MHD_Response *response;
	enum MHD_Result ret;
	char tag[24];

	if (str_error(&answer->body) < 0) {
		str_done(&answer->body);
		answer->body = (struct str){ 0 };
		status = MHD_HTTP_SERVICE_UNAVAILABLE;
	}
	(void)snprintf(
		tag, sizeof(tag), "\"%016llx\"",
		(unsigned long long)XXH3_64bits(str_borrow(&answer->body), answer->body.len));
	if (status == MHD_HTTP_OK && request_has_tag(request->headers[HEADER_IF_NONE_MATCH], tag)) {
		str_done(&answer->body);
		answer->body = (struct str){ 0 };
		status = MHD_HTTP_NOT_MODIFIED;
	}
	response = server->mhd.create_response_from_buffer(answer->body.len, answer->body.data,
							   MHD_RESPMEM_MUST_FREE);
	if (response == NULL) {
		str_done(&answer->body);
		return MHD_NO;
	}
	server_add_headers(server, response, answer);
	add_status_headers(server, response, request, status, answer);
	if (status == MHD_HTTP_OK || status == MHD_HTTP_NOT_MODIFIED)
		(void)server->mhd.add_response_header(response, "ETag", tag);
	ret = server->mhd.queue_response(connection, status, response);
	server->mhd.destroy_response(response);
	return ret;
}
