/* SPDX-License-Identifier: Apache-2.0 */
#include "report/test_help.h"

#include "base/test_alloc.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static char *file_read(const char *path)
{
	FILE *file = fopen(path, "re");
	char *text = calloc(1, 1 << 22);

	assert_non_null(text);
	if (file != NULL) {
		(void)fread(text, 1, (1 << 22) - 1, file);
		(void)fclose(file);
	}
	return text;
}

static void file_write(const char *path, const struct str *text)
{
	FILE *file = fopen(path, "we");

	assert_non_null(file);
	assert_int_equal(fwrite(str_borrow(text), 1, text->len, file), text->len);
	assert_int_equal(fclose(file), 0);
}

static void compare_golden(const char *name, const char *suffix, printer print)
{
	struct report report;
	struct str out = { 0 }, path = { 0 };
	char *golden;

	sample_make(name, &report);
	str_printf(&path, "%s/%s.%s", GOLDEN_DIR, name, suffix);
	assert_int_equal(print(&report, &out), 0);
	if (getenv("PERFTRACKER_UPDATE_GOLDEN") != NULL)
		file_write(path.data, &out);
	golden = file_read(path.data);
	if (strcmp(golden, str_borrow(&out)) != 0)
		print_error("%s differs\n", path.data);
	assert_string_equal(golden, str_borrow(&out));
	free(golden);
	str_done(&path);
	str_done(&out);
	arena_done(&report.arena);
}

void help_compare_schema(const char *definition, json_t *expected)
{
	const char *path = DOCS_DIR "/report-schema.json";
	json_t *schema = json_load_file(path, 0, NULL);
	struct str text = { 0 };
	char *file = file_read(path), *dumped;

	assert_non_null(schema);
	assert_int_equal(
		json_object_set_new(json_object_get(schema, "$defs"), definition, expected), 0);
	dumped = json_dumps(schema, JSON_INDENT(1));
	str_printf(&text, "%s\n", dumped);
	free(dumped);
	if (getenv("PERFTRACKER_UPDATE_GOLDEN") != NULL)
		file_write(path, &text);
	else if (strcmp(file, str_borrow(&text)) != 0)
		fail_msg("%s: $defs.%s is stale; PERFTRACKER_UPDATE_GOLDEN=1 writes it", path,
			 definition);
	free(file);
	str_done(&text);
	json_decref(schema);
}

void help_compare_golden(const char *suffix, printer print)
{
	for (const struct sample_report *s = sample_reports; s->name != NULL; s++) {
		if (strstr(s->golden, suffix) != NULL)
			compare_golden(s->name, suffix, print);
	}
}

char *help_print(const char *name, printer print)
{
	struct report report;
	struct str out = { 0 };

	sample_make(name, &report);
	assert_int_equal(print(&report, &out), 0);
	arena_done(&report.arena);
	return out.data;
}

void help_assert_contains(const char *text, const char *part)
{
	assert_non_null(text);
	if (strstr(text, part) == NULL)
		fail_msg("not in the report: %s", part);
}

void help_print_without_memory(const char *name, printer print)
{
	struct report report;
	int error = -ENOMEM;

	sample_make(name, &report);
	for (int n = 0; error != 0; n++) {
		struct str out = { 0 };

		str_append(&out, "before");
		allocations_left = n;
		error = print(&report, &out);
		allocations_left = -1;
		assert_true(error == 0 || error == -ENOMEM);
		if (error != 0)
			assert_string_equal(out.data, "before");
		else
			assert_true(n > 3 && out.len > 100);
		str_done(&out);
	}
	arena_done(&report.arena);
}
