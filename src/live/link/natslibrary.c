/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/natslibrary.h"

#include "base/brokerversion.h"
#include "base/symbols.h"

#include <dlfcn.h>
#include <errno.h>

static const char *const names[] = BROKER_LIBRARIES;

static void *load(void)
{
	void *library = NULL;

	for (size_t i = 0; i < ARRAY_SIZE(names) && library == NULL; i++)
		library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL);
	return library;
}

int natslibrary_open(struct natslibrary *ret, struct err *err)
{
	const struct symbol table[] = {
		{ &ret->options_create, "natsOptions_Create" },
		{ &ret->options_destroy, "natsOptions_Destroy" },
		{ &ret->set_url, "natsOptions_SetURL" },
		{ &ret->set_name, "natsOptions_SetName" },
		{ &ret->set_user_info, "natsOptions_SetUserInfo" },
		{ &ret->set_token, "natsOptions_SetToken" },
		{ &ret->set_credentials, "natsOptions_SetUserCredentialsFromFiles" },
		{ &ret->set_nkey, "natsOptions_SetNKeyFromSeed" },
		{ &ret->set_secure, "natsOptions_SetSecure" },
		{ &ret->load_ca, "natsOptions_LoadCATrustedCertificates" },
		{ &ret->load_certificate, "natsOptions_LoadCertificatesChain" },
		{ &ret->expect_name, "natsOptions_SetExpectedHostname" },
		{ &ret->set_timeout, "natsOptions_SetTimeout" },
		{ &ret->set_max_reconnect, "natsOptions_SetMaxReconnect" },
		{ &ret->set_reconnect_wait, "natsOptions_SetReconnectWait" },
		{ &ret->set_reconnect_jitter, "natsOptions_SetReconnectJitter" },
		{ &ret->set_write_deadline, "natsOptions_SetWriteDeadline" },
		{ &ret->set_ping_interval, "natsOptions_SetPingInterval" },
		{ &ret->ignore_discovered, "natsOptions_SetIgnoreDiscoveredServers" },
		{ &ret->deliver_by_one, "natsOptions_UseGlobalMessageDelivery" },
		{ &ret->set_send_asap, "natsOptions_SetSendAsap" },
		{ &ret->disable_no_responders, "natsOptions_DisableNoResponders" },
		{ &ret->set_error_handler, "natsOptions_SetErrorHandler" },
		{ &ret->set_reconnected, "natsOptions_SetReconnectedCB" },
		{ &ret->set_closed, "natsOptions_SetClosedCB" },
		{ &ret->connect, "natsConnection_Connect" },
		{ &ret->status, "natsConnection_Status" },
		{ &ret->last_error_of, "natsConnection_GetLastError" },
		{ &ret->publish, "natsConnection_Publish" },
		{ &ret->publish_request, "natsConnection_PublishRequest" },
		{ &ret->subscribe, "natsConnection_Subscribe" },
		{ &ret->flush, "natsConnection_FlushTimeout" },
		{ &ret->connection_destroy, "natsConnection_Destroy" },
		{ &ret->subscription_destroy, "natsSubscription_Destroy" },
		{ &ret->set_on_complete, "natsSubscription_SetOnCompleteCB" },
		{ &ret->message_subject, "natsMsg_GetSubject" },
		{ &ret->message_reply, "natsMsg_GetReply" },
		{ &ret->message_data, "natsMsg_GetData" },
		{ &ret->message_len, "natsMsg_GetDataLength" },
		{ &ret->message_destroy, "natsMsg_Destroy" },
		{ &ret->last_error, "nats_GetLastError" },
		{ &ret->status_text, "natsStatus_GetText" },
	};
	void *library = load();
	const char *missing;

	if (library == NULL)
		return err_set(err, ENOPKG,
			       "several hosts need libnats, which is not installed: on Debian and "
			       "Ubuntu `apt-get install libnats3.4`");
	missing = symbols_find(library, table, ARRAY_SIZE(table));
	return missing == NULL ? 0
			       : err_set(err, ENOPKG, "libnats has no %s: it is too old", missing);
}
