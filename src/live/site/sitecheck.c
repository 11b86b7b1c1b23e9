/* SPDX-License-Identifier: Apache-2.0 */
/* What of a site's configuration belongs together, and the login to its bus. */
#include "base/file.h"
#include "live/link/brokerurl.h"
#include "live/site/site_parts.h"
#include "serve/http/netaddress.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

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

static void check_orders(const struct site *site, struct site_problems *problems)
{
	const struct site_values *v = &site->values;
	struct site_place place = place_of(site, "orders.key");
	struct seal *seal;
	struct err err = { "" };

	check_pair(site, "orders.seed_file", v->orders_seed_file, "orders.key", v->orders_key,
		   problems);
	if (!is_set(v->orders_key))
		return;
	if (seal_of_public_key(v->orders_key, &seal, &err) < 0)
		site_problem(problems, &place, "orders.key: %s", err.text);
	else
		(void)seal_close(seal);
}

/* The page of the hub, which reads the store. */
static void check_page(const struct site *site, struct site_problems *problems)
{
	const struct site_values *v = &site->values;
	struct site_place place = place_of(site, "hub.ui");
	struct netaddress address;
	struct err err = { "" };

	check_pair(site, "hub.ui_token_file", v->hub_ui_token_file, "hub.ui", v->hub_ui, problems);
	if (!is_set(v->hub_ui))
		return;
	if (netaddress_parse_any(v->hub_ui, &address, &err) < 0)
		site_problem(problems, &place, "hub.ui: %s", err.text);
	else if (!netaddress_is_local(&address) && !is_set(v->hub_ui_token_file))
		site_problem(problems, &place,
			     "hub.ui: expected hub.ui_token_file beside an address that is open to "
			     "other machines, found nothing: name one, or serve on 127.0.0.1");
	if (strcmp(v->hub_store, "none") == 0)
		site_problem(
			problems, &place,
			"hub.ui: expected a store, whose jobs it shows, found hub.store: none");
}

void site_check(const struct site *site, struct site_problems *problems)
{
	check_names(site, problems);
	check_url(site, problems);
	check_identity(site, problems);
	check_orders(site, problems);
	check_page(site, problems);
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
		r = file_read_line(v->bus_password_file, "the password", site->password,
				   sizeof(site->password), err);
	if (r == 0 && is_set(v->bus_nkey_file))
		r = file_read_line(v->bus_nkey_file, "the public key", site->nkey,
				   sizeof(site->nkey), err);
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

/* A seed that does not belong to the key would make a hub that no host obeys. */
static int check_pair_of_keys(const struct seal *signs, const struct site_values *v,
			      struct err *err)
{
	uint8_t message[SEAL_BYTES];
	struct seal *checks;
	int ret = seal_of_public_key(v->orders_key, &checks, err);

	if (ret < 0)
		return ret;
	if (seal_add(signs, "", message, 0) < 0 || !seal_is_valid(checks, "", message, SEAL_BYTES))
		ret = err_set(err, EINVAL,
			      "orders.seed_file: expected the seed of orders.key, found that of "
			      "another key: %s",
			      v->orders_seed_file);
	(void)seal_close(checks);
	return ret;
}

int site_seal(const struct site *site, bool signs, struct seal **ret, struct err *err)
{
	const struct site_values *v = &site->values;
	int r;

	*ret = NULL;
	if (!is_set(v->orders_key))
		return 0;
	if (!signs)
		return seal_of_public_key(v->orders_key, ret, err);
	if (!is_set(v->orders_seed_file))
		return err_set(err, EINVAL,
			       "orders.seed_file: expected the seed of orders.key, found nothing: "
			       "hosts would take no order of this hub");
	r = seal_of_seed_file(v->orders_seed_file, ret, err);
	if (r == 0)
		r = check_pair_of_keys(*ret, v, err);
	if (r < 0)
		*ret = seal_close(*ret);
	return r;
}
