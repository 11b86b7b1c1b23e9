/* SPDX-License-Identifier: Apache-2.0 */
/* What of a site's configuration belongs together, and the login to its bus. */
#include "live/link/brokerurl.h"
#include "live/site/site_parts.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static bool is_set(const char *text)
{
	return text != NULL && text[0] != '\0';
}

/* The line of the key in the file, for a problem that shows only when all is known. */
static struct site_place place_of(const struct site *site, const char *name)
{
	const struct site_origin *origin = &site->origins[sitekeys_find(name) - site_keys];
	struct site_place ret = { .name = site->path[0] != '\0' ? site->path : "configuration" };

	if (origin->source == SITE_FILE) {
		ret.line = origin->line;
		ret.column = origin->column;
	}
	return ret;
}

/* Letters, digits and '-' are kept as they are in subjects of the bus, so permissions fit. */
static bool is_plain(const char *name)
{
	size_t len = strlen(name);

	for (size_t i = 0; i < len; i++) {
		if (!isalnum((unsigned char)name[i]) && name[i] != '-')
			return false;
	}
	return len > 0 && len <= SITE_HOST_MAX;
}

static void check_names(const struct site *site, struct site_problems *problems)
{
	static const char *const names[] = { "cluster", "host" };
	const char *const values[] = { site->values.cluster, site->values.host };

	for (size_t i = 0; i < ARRAY_SIZE(names); i++) {
		struct site_place place = place_of(site, names[i]);

		if (!is_plain(values[i]))
			site_problem(problems, &place,
				     "%s: expected 1 to %u letters, digits and '-', found '%.64s'",
				     names[i], SITE_HOST_MAX, values[i]);
	}
}

static void check_url(const struct site *site, struct site_problems *problems)
{
	const struct site_values *v = &site->values;
	struct site_place place = place_of(site, "bus.url");
	struct err err = { "" };
	struct brokerurl url;

	if (!is_set(v->bus_url))
		site_problem(problems, &place,
			     "bus.url: expected the address of the site's NATS server, for "
			     "instance tls://nats.example:4222, found nothing");
	else if (brokerurl_parse(v->bus_url, &url, &err) < 0)
		site_problem(problems, &place, "bus.url: %s", err.text);
	else if (!url.tls && !v->bus_insecure && !brokerurl_is_local(&url))
		site_problem(problems, &place,
			     "bus.url: expected tls:// to another host, found '%.200s': without "
			     "TLS everybody on the network can forge what hosts say; bus.insecure: "
			     "yes allows it",
			     v->bus_url);
}

/* Two keys that need each other. */
static void check_pair(const struct site *site, const char *name, const char *value,
		       const char *other_name, const char *other, struct site_problems *problems)
{
	struct site_place place = place_of(site, name);

	if (is_set(value) && !is_set(other))
		site_problem(problems, &place, "%s: expected %s beside it, found nothing", name,
			     other_name);
}

static void check_identity(const struct site *site, struct site_problems *problems)
{
	const struct site_values *v = &site->values;
	struct site_place place = place_of(site, "bus.user");
	int ways = is_set(v->bus_user) + is_set(v->bus_credentials) + is_set(v->bus_nkey_file);

	check_pair(site, "bus.certificate", v->bus_certificate, "bus.key", v->bus_key, problems);
	check_pair(site, "bus.key", v->bus_key, "bus.certificate", v->bus_certificate, problems);
	check_pair(site, "bus.user", v->bus_user, "bus.password_file", v->bus_password_file,
		   problems);
	check_pair(site, "bus.password_file", v->bus_password_file, "bus.user", v->bus_user,
		   problems);
	check_pair(site, "bus.nkey_file", v->bus_nkey_file, "bus.nkey_seed_file",
		   v->bus_nkey_seed_file, problems);
	check_pair(site, "bus.nkey_seed_file", v->bus_nkey_seed_file, "bus.nkey_file",
		   v->bus_nkey_file, problems);
	if (ways > 1)
		site_problem(problems, &place,
			     "expected one of bus.user, bus.credentials and bus.nkey_file, found "
			     "%d of them",
			     ways);
}

void site_check(const struct site *site, struct site_problems *problems)
{
	check_names(site, problems);
	check_url(site, problems);
	check_identity(site, problems);
}

/* The first line of a small file, without its end. */
static int read_line(const char *path, const char *what, char *ret, size_t size, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t len = fd < 0 ? -1 : read(fd, ret, size - 1);
	int error = errno;

	if (fd >= 0)
		(void)close(fd);
	if (len < 0)
		return err_set(err, error, "%s: cannot read %s: %s", path, what, strerror(error));
	ret[len] = '\0';
	ret[strcspn(ret, "\r\n")] = '\0';
	return ret[0] != '\0'
		       ? 0
		       : err_set(err, EINVAL, "%s: expected %s, found an empty file", path, what);
}

static const char *or_null(const char *text)
{
	return is_set(text) ? text : NULL;
}

int site_login(struct site *site, struct bus_login *ret, struct err *err)
{
	const struct site_values *v = &site->values;
	int r = 0;

	if (is_set(v->bus_password_file))
		r = read_line(v->bus_password_file, "the password", site->password,
			      sizeof(site->password), err);
	if (r == 0 && is_set(v->bus_nkey_file))
		r = read_line(v->bus_nkey_file, "the public key", site->nkey, sizeof(site->nkey),
			      err);
	if (r < 0)
		return r;
	*ret = (struct bus_login){ .url = v->bus_url,
				   .user = or_null(v->bus_user),
				   .password = or_null(site->password),
				   .credentials_file = or_null(v->bus_credentials),
				   .nkey_public = or_null(site->nkey),
				   .nkey_seed_file = or_null(v->bus_nkey_seed_file),
				   .ca_file = or_null(v->bus_ca),
				   .certificate_file = or_null(v->bus_certificate),
				   .key_file = or_null(v->bus_key),
				   .insecure = v->bus_insecure };
	return 0;
}
