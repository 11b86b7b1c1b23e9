/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/http/request.h"

#include <arpa/inet.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#define HOST_MAX 256

const char *const request_header_names[HEADER_CNT] = {
	"Host",		 "Origin",	 "Authorization",  "If-None-Match",
	"Last-Event-ID", "Content-Type", "Sec-Fetch-Site", "MCP-Protocol-Version",
	"Mcp-Method",	 "Mcp-Name",	 "Accept",
};

const char *request_query(const struct request *request, const char *name)
{
	for (size_t i = 0; i < request->query_cnt; i++) {
		if (strcmp(request->query[i].name, name) == 0)
			return request->query[i].value;
	}
	return NULL;
}

int request_number(const struct request *request, const char *name, uint64_t high, uint64_t *value,
		   struct err *err)
{
	const char *text = request_query(request, name);
	uint64_t number = 0;
	size_t i = 0;

	if (text == NULL || text[0] == '\0')
		return 0;
	for (; text[i] >= '0' && text[i] <= '9' && i < 19; i++)
		number = number * 10 + (unsigned)(text[i] - '0');
	if (text[i] != '\0' || number > high)
		return err_set(err, EINVAL,
			       "%s: expected a whole number up to %" PRIu64 ", found %.80s", name,
			       high, text);
	*value = number;
	return 0;
}

/* --- Host and Origin --- */

/* What names and numbers of hosts are made of. */
static const char host_letters[] =
	"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.:";

/* Cuts "name:port" or "[number]:port" to its name. Returns false when it is neither. */
static bool host_name(const char *host, char ret[static HOST_MAX])
{
	const char *begin = host[0] == '[' ? host + 1 : host;
	size_t len = strcspn(begin, host[0] == '[' ? "]" : ":");
	const char *rest = begin + len;

	if (len == 0 || len >= HOST_MAX || (host[0] == '[' && *rest++ != ']'))
		return false;
	if (*rest == ':')
		rest += 1 + strspn(rest + 1, "0123456789");
	if (*rest != '\0')
		return false;
	if (strspn(begin, host_letters) < len)
		return false;
	memcpy(ret, begin, len);
	ret[len] = '\0';
	return true;
}

/* name itself, or with a domain behind it. */
static bool is_name(const char *text, const char *name)
{
	size_t len = name != NULL ? strlen(name) : 0;

	return len > 0 && strncasecmp(text, name, len) == 0 &&
	       (text[len] == '\0' || text[len] == '.');
}

bool request_host_is_ours(const char *host, const struct request_names *names)
{
	unsigned char number[sizeof(struct in6_addr)];
	char name[HOST_MAX];

	if (host == NULL || !host_name(host, name))
		return false;
	return inet_pton(AF_INET, name, number) == 1 || inet_pton(AF_INET6, name, number) == 1 ||
	       strcasecmp(name, "localhost") == 0 || is_name(name, names->own) ||
	       (names->given != NULL && strcasecmp(name, names->given) == 0);
}

bool request_origin_is_ours(const char *origin, const struct request_names *names)
{
	static const char *const schemes[] = { "http://", "https://" };

	if (origin == NULL)
		return true;
	for (size_t i = 0; i < ARRAY_SIZE(schemes); i++) {
		size_t len = strlen(schemes[i]);

		if (strncasecmp(origin, schemes[i], len) == 0)
			return request_host_is_ours(origin + len, names);
	}
	return false;
}

bool request_may_write(const struct request *request)
{
	const char *site = request->headers[HEADER_FETCH_SITE];
	const char *origin = request->headers[HEADER_ORIGIN], *host = request->headers[HEADER_HOST];
	const char *begin;

	if (site != NULL)
		return strcmp(site, "same-origin") == 0;
	if (origin == NULL)
		return true;
	begin = strstr(origin, "://");
	return begin != NULL && host != NULL && strcasecmp(begin + 3, host) == 0;
}

/* --- forms --- */

static int hex_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* One character of the text up to end; *at is moved behind it. */
static char decode_one(const char **at, const char *end)
{
	const char *p = *at;
	int high, low;

	*at = p + 1;
	if (*p != '%' || end - p < 3)
		return *p == '+' ? ' ' : *p;
	high = hex_value(p[1]);
	low = hex_value(p[2]);
	if (high < 0 || low < 0)
		return *p;
	*at = p + 3;
	return (char)(high << 4 | low);
}

bool request_form(const char *body, const char *name, char *ret, size_t size)
{
	size_t name_len = strlen(name), len = 0;

	ret[0] = '\0';
	for (const char *at = body; *at != '\0';) {
		const char *end = at + strcspn(at, "&");

		if (strncmp(at, name, name_len) == 0 && at[name_len] == '=') {
			for (at += name_len + 1; at < end && len + 1 < size;) {
				char c = decode_one(&at, end);

				if (c != '\0')
					ret[len++] = c;
			}
			ret[len] = '\0';
			return true;
		}
		at = *end == '&' ? end + 1 : end;
	}
	return false;
}

/* --- Authorization --- */

static int base64_value(char c)
{
	static const char letters[] =
		"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
	const char *found = c != '\0' ? strchr(letters, c) : NULL;

	return found != NULL ? (int)(found - letters) : -1;
}

/* Decodes up to the first character that is no letter of it. Returns the bytes, 0: too many. */
static size_t base64_decode(const char *text, char *ret, size_t size)
{
	unsigned bits = 0, held = 0;
	size_t len = 0;

	for (int value; (value = base64_value(*text)) >= 0; text++) {
		held = held << 6 | (unsigned)value;
		bits += 6;
		if (bits < 8)
			continue;
		bits -= 8;
		if (len >= size)
			return 0;
		ret[len++] = (char)(held >> bits & 0xff);
		held &= (1u << bits) - 1;
	}
	return text[strspn(text, "=")] == '\0' ? len : 0;
}

/* Past the scheme and its blanks, or NULL. */
static const char *after_scheme(const char *text, const char *scheme)
{
	size_t len = strlen(scheme);

	if (strncasecmp(text, scheme, len) != 0 || text[len] != ' ')
		return NULL;
	return text + len + strspn(text + len, " ");
}

bool request_token(const char *authorization, char ret[static REQUEST_TOKEN_MAX])
{
	char pair[2 * REQUEST_TOKEN_MAX];
	const char *token, *colon;
	size_t len;

	if (authorization == NULL)
		return false;
	token = after_scheme(authorization, "Bearer");
	if (token == NULL && (token = after_scheme(authorization, "Basic")) != NULL) {
		len = base64_decode(token, pair, sizeof(pair) - 1);
		pair[len] = '\0';
		colon = strlen(pair) == len ? strchr(pair, ':') : NULL;
		token = colon != NULL ? colon + 1 : NULL;
	}
	len = token != NULL ? strlen(token) : 0;
	if (len == 0 || len >= REQUEST_TOKEN_MAX)
		return false;
	memcpy(ret, token, len + 1);
	return true;
}

/* --- the rest --- */

bool request_is_json(const char *content_type)
{
	static const char json[] = "application/json";
	size_t len = sizeof(json) - 1;

	return content_type != NULL && strncasecmp(content_type, json, len) == 0 &&
	       (content_type[len] == '\0' || strchr("; \t", content_type[len]) != NULL);
}

bool request_has_tag(const char *if_none_match, const char *tag)
{
	size_t len = strlen(tag);

	if (if_none_match == NULL)
		return false;
	for (const char *at = if_none_match; *at != '\0';) {
		at += strspn(at, " \t,");
		if (*at == '*')
			return true;
		if (strncmp(at, "W/", 2) == 0)
			at += 2;
		if (strncmp(at, tag, len) == 0 &&
		    (at[len] == '\0' || strchr(" \t,", at[len]) != NULL))
			return true;
		at += strcspn(at, ",");
	}
	return false;
}

bool request_path_fits(const char *path, const char *pattern, char *ret, size_t size)
{
	bool taken = false;

	ret[0] = '\0';
	while (*pattern != '\0') {
		size_t len = strcspn(path, "/");

		if (*pattern != '{') {
			if (*path++ != *pattern++)
				return false;
			continue;
		}
		if (len == 0 || len >= size)
			return false;
		if (!taken)
			(void)snprintf(ret, size, "%.*s", (int)len, path);
		taken = true;
		path += len;
		pattern += strcspn(pattern, "}") + 1;
	}
	return *path == '\0';
}
