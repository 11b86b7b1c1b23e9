/* SPDX-License-Identifier: Apache-2.0 */
/* How a client shows who it is, and makes sure who the broker is. */
#pragma once

#include "live/link/brokerurl.h"
#include "live/link/bus.h"
#include "live/link/natslibrary.h"

/*
 * Parses the url. Returns 0, -EINVAL (no url of a broker) or -EPERM (plain text to another host, which the login
 * does not allow), with a line in err.
 */
_must_check_ int natslogin_check(const struct bus_login *login, struct brokerurl *ret,
				 struct err *err);

/* Sets the options that the login asks for, and those that all connections have. */
natsStatus natslogin_apply(const struct bus_login *login, const struct natslibrary *nats,
			   natsOptions *options);
