/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The description of the API, made from the table of routes and from the tables of fields in
 * openapi.c; docs/openapi.json is the same.
 * Source: OpenAPI 3.1.1.
 */
#pragma once

#include "base/str.h"

/* Appends the document. Returns 0 or -ENOMEM. */
_must_check_ int openapi_print(struct str *out);
