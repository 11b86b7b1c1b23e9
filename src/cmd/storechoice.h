/* SPDX-License-Identifier: Apache-2.0 */
/* The store that jobs, history and report read: shared by them. */
#pragma once

#include "base/str.h"
#include "cmd/cmd.h"
#include "report/jsonwriter.h"
#include "serve/jobwords.h"
#include "store/storelist.h"

#define STORE_CHOICE_ROW(owner, field)                                                   \
	{                                                                                \
		.name = "store", .argument = "FILE|URL", OPTION_FIELD(owner, field),     \
		.help = "the store to read",                                             \
		.preset = "$PERFTRACKER_STORE, else ~/.local/state/perftracker/store.db" \
	}

/* Opens the store that given (NULL: none) means. 0 or -errno with a line in err. */
_must_check_ int storechoice_open(const char *given, struct store **ret, struct err *err);
