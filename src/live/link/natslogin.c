/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/natslogin.h"

#include <errno.h>
#include <string.h>

#define CONNECT_MS 2000
#define WRITE_MS 5000
#define PING_MS 20000 /* a broker that misses 2 is gone */
#define RECONNECT_MS 500
#define JITTER_MS 1500

int natslogin_check(const struct bus_login *login, struct brokerurl *ret, struct err *err)
{
	struct brokerurl url;
	int r = brokerurl_parse(login->url, &url, err);

	if (r < 0)
		return r;
	if (!url.tls && !login->insecure && !brokerurl_is_local(&url))
		return err_set(err, EPERM,
			       "%s: without TLS everybody on the network can read and forge what "
			       "hosts say: use tls:// or allow it with --insecure",
			       login->url);
	*ret = url;
	return 0;
}

static natsStatus set_identity(const struct bus_login *login, const struct natslibrary *nats,
			       natsOptions *options)
{
	natsStatus status = NATS_OK;

	if (login->user != NULL)
		status = nats->set_user_info(options, login->user, login->password);
	if (status == NATS_OK && login->token != NULL)
		status = nats->set_token(options, login->token);
	if (status == NATS_OK && login->credentials_file != NULL)
		status = nats->set_credentials(options, login->credentials_file, NULL);
	if (status == NATS_OK && login->nkey_seed_file != NULL)
		status = nats->set_nkey(options, login->nkey_public, login->nkey_seed_file);
	return status;
}

static natsStatus set_tls(const struct bus_login *login, const struct natslibrary *nats,
			  natsOptions *options)
{
	natsStatus status = NATS_OK;

	if (strncmp(login->url, "tls://", 6) != 0)
		return NATS_OK;
	status = nats->set_secure(options, true);
	if (status == NATS_OK && login->ca_file != NULL)
		status = nats->load_ca(options, login->ca_file);
	if (status == NATS_OK && login->certificate_file != NULL)
		status = nats->load_certificate(options, login->certificate_file, login->key_file);
	if (status == NATS_OK && login->broker_name != NULL)
		status = nats->expect_name(options, login->broker_name);
	return status;
}

/* Alike for all connections. */
static natsStatus set_common(const struct natslibrary *nats, natsOptions *options)
{
	natsStatus status = nats->set_name(options, "perftracker");

	if (status == NATS_OK)
		status = nats->set_timeout(options, CONNECT_MS);
	/* Without it a send to a broker that hangs waits as long as TCP does: many minutes. */
	if (status == NATS_OK)
		status = nats->set_write_deadline(options, WRITE_MS);
	if (status == NATS_OK)
		status = nats->set_ping_interval(options, PING_MS);
	if (status == NATS_OK)
		status = nats->set_max_reconnect(options, -1);
	if (status == NATS_OK)
		status = nats->set_reconnect_wait(options, RECONNECT_MS);
	if (status == NATS_OK)
		status = nats->set_reconnect_jitter(options, JITTER_MS, JITTER_MS);
	if (status == NATS_OK)
		status = nats->set_send_asap(options, true);
	/* One thread for all subscriptions keeps the order of a publisher's messages. */
	if (status == NATS_OK)
		status = nats->deliver_by_one(options, true);
	/* An empty answer of the broker would look like one of a host. */
	if (status == NATS_OK)
		status = nats->disable_no_responders(options, true);
	return status;
}

natsStatus natslogin_apply(const struct bus_login *login, const struct natslibrary *nats,
			   natsOptions *options)
{
	natsStatus status = nats->set_url(options, login->url);

	if (status == NATS_OK)
		status = set_common(nats, options);
	/* The broker may name others, which were not checked: without TLS they are left out. */
	if (status == NATS_OK)
		status = nats->ignore_discovered(options, strncmp(login->url, "tls://", 6) != 0);
	if (status == NATS_OK)
		status = set_identity(login, nats, options);
	return status == NATS_OK ? set_tls(login, nats, options) : status;
}
