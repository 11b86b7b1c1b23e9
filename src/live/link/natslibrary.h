/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The functions of libnats that are used. The library brings TLS and threads of its own, so it is
 * loaded only by a daemon that talks to other hosts, and never into a training process.
 */
#pragma once

#include "base/err.h"

#include <nats/nats.h>

struct natslibrary {
	__typeof__(natsOptions_Create) *options_create;
	__typeof__(natsOptions_Destroy) *options_destroy;
	__typeof__(natsOptions_SetURL) *set_url;
	__typeof__(natsOptions_SetName) *set_name;
	__typeof__(natsOptions_SetUserInfo) *set_user_info;
	__typeof__(natsOptions_SetToken) *set_token;
	__typeof__(natsOptions_SetUserCredentialsFromFiles) *set_credentials;
	__typeof__(natsOptions_SetNKeyFromSeed) *set_nkey;
	__typeof__(natsOptions_SetSecure) *set_secure;
	__typeof__(natsOptions_LoadCATrustedCertificates) *load_ca;
	__typeof__(natsOptions_LoadCertificatesChain) *load_certificate;
	__typeof__(natsOptions_SetExpectedHostname) *expect_name;
	__typeof__(natsOptions_SetTimeout) *set_timeout;
	__typeof__(natsOptions_SetMaxReconnect) *set_max_reconnect;
	__typeof__(natsOptions_SetReconnectWait) *set_reconnect_wait;
	__typeof__(natsOptions_SetReconnectJitter) *set_reconnect_jitter;
	__typeof__(natsOptions_SetWriteDeadline) *set_write_deadline;
	__typeof__(natsOptions_SetPingInterval) *set_ping_interval;
	__typeof__(natsOptions_SetIgnoreDiscoveredServers) *ignore_discovered;
	__typeof__(natsOptions_UseGlobalMessageDelivery) *deliver_by_one;
	__typeof__(natsOptions_SetSendAsap) *set_send_asap;
	__typeof__(natsOptions_DisableNoResponders) *disable_no_responders;
	__typeof__(natsOptions_SetErrorHandler) *set_error_handler;
	__typeof__(natsOptions_SetReconnectedCB) *set_reconnected;
	__typeof__(natsOptions_SetClosedCB) *set_closed;
	__typeof__(natsConnection_Connect) *connect;
	__typeof__(natsConnection_Status) *status;
	__typeof__(natsConnection_GetLastError) *last_error_of;
	__typeof__(natsConnection_Publish) *publish;
	__typeof__(natsConnection_PublishRequest) *publish_request;
	__typeof__(natsConnection_Subscribe) *subscribe;
	__typeof__(natsConnection_FlushTimeout) *flush;
	__typeof__(natsConnection_Destroy) *connection_destroy;
	__typeof__(natsSubscription_Destroy) *subscription_destroy;
	__typeof__(natsSubscription_SetOnCompleteCB) *set_on_complete;
	__typeof__(natsMsg_GetSubject) *message_subject;
	__typeof__(natsMsg_GetReply) *message_reply;
	__typeof__(natsMsg_GetData) *message_data;
	__typeof__(natsMsg_GetDataLength) *message_len;
	__typeof__(natsMsg_Destroy) *message_destroy;
	__typeof__(nats_GetLastError) *last_error;
	__typeof__(natsStatus_GetText) *status_text;
};

/* Returns 0, or -ENOPKG with a line in err that says what to install. Stays loaded. */
_must_check_ int natslibrary_open(struct natslibrary *ret, struct err *err);
