/* SPDX-License-Identifier: Apache-2.0 */
/* docs/openapi.json is what the tables say; PERFTRACKER_UPDATE_GOLDEN=1 writes it. */
#include "serve/openapi.h"

#include "base/file.h"
#include "serve/routes.h"

#include <fcntl.h>
#include <jansson.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static const char path[] = DOCS_DIR "/openapi.json";

static void the_document_is_in_docs(void **state)
{
	_cleanup_free_ char *text = NULL;
	struct str out = { 0 };
	struct err err;
	size_t len = 0;
	int fd;

	(void)state;
	assert_int_equal(openapi_print(&out), 0);
	if (getenv("PERFTRACKER_UPDATE_GOLDEN") != NULL)
		assert_int_equal(file_replace(path, str_borrow(&out), out.len, 0644), 0);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_int_equal(file_read_whole(path, fd, 1 << 20, &text, &len, &err), 0);
	(void)close(fd);
	assert_int_equal(len, out.len);
	assert_memory_equal(text, str_borrow(&out), len);
	str_done(&out);
}

/* Every reference leads to a schema, and every parameter in a path is in its pattern. */
static void references_lead_somewhere(void **state)
{
	const char *at;
	struct str out = { 0 };
	json_t *root, *all;

	(void)state;
	assert_int_equal(openapi_print(&out), 0);
	root = json_loads(str_borrow(&out), 0, NULL);
	all = json_object_get(json_object_get(root, "components"), "schemas");
	assert_true(json_object_size(all) > 5);
	at = str_borrow(&out);
	while ((at = strstr(at, "#/components/schemas/")) != NULL) {
		char name[64] = "";

		at += strlen("#/components/schemas/");
		(void)sscanf(at, "%63[A-Za-z]", name);
		if (json_object_get(all, name) == NULL)
			fail_msg("no schema %s", name);
	}
	for (size_t i = 0; i < routes_cnt; i++) {
		for (size_t j = 0; j < routes_table[i].param_cnt; j++) {
			char name[64];

			(void)snprintf(name, sizeof(name), "{%s}", routes_table[i].params[j].name);
			assert_int_equal(routes_table[i].params[j].in_path,
					 strstr(routes_table[i].path, name) != NULL);
		}
	}
	json_decref(root);
	str_done(&out);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_document_is_in_docs),
		cmocka_unit_test(references_lead_somewhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
