/* SPDX-License-Identifier: Apache-2.0 */
/* perftracker prune: removes what is old from the store, or says what would go. */
#include "base/clock.h"
#include "cmd/storechoice.h"
#include "store/storeprune.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

struct prune_options {
	const char *store;
	struct store_limits limits;
	bool dry_run;
	enum output_format format; /* text or JSON */
};

struct unit {
	const char *name;
	double size;
};

/* A number and a unit; "" stands for the first one. Returns 0 or -EINVAL. */
static int parse_amount(const char *text, const struct unit *units, size_t unit_cnt, int64_t *ret)
{
	char *end;
	double value;

	/* No sign, no "inf", no hexadecimal number. */
	if (text == NULL || strspn(text, "0123456789.") == 0)
		return -EINVAL;
	value = strtod(text, &end);
	for (size_t i = 0; i < unit_cnt; i++) {
		bool fits = strcmp(end, units[i].name) == 0 || (i == 0 && *end == '\0');

		if (fits && value * units[i].size >= 1 && value * units[i].size < 9e17) {
			*ret = (int64_t)(value * units[i].size);
			return 0;
		}
	}
	return -EINVAL;
}

static int set_age(void *age_s, const char *text, struct err *err _unused_)
{
	static const struct unit units[] = {
		{ "d", 86400 }, { "h", 3600 }, { "w", 7 * 86400 }, { "y", 365 * 86400 }
	};
	int64_t seconds;

	/* In ns it has to fit, too. */
	if (parse_amount(text, units, ARRAY_SIZE(units), &seconds) < 0 || seconds > 9000000000)
		return -EINVAL;
	*(int64_t *)age_s = seconds;
	return 0;
}

static int set_bytes(void *bytes, const char *text, struct err *err _unused_)
{
	static const struct unit units[] = {
		{ "G", 1 << 30 }, { "M", 1 << 20 }, { "K", 1 << 10 }, { "T", 1099511627776.0 }
	};

	return parse_amount(text, units, ARRAY_SIZE(units), bytes);
}

#define FIELD(field) OPTION_FIELD(struct prune_options, field)
#define AGE_EXPECTED "an age such as 36h, 90d, 8w or 2y"

static const struct option_row rows[] = {
	STORE_CHOICE_ROW(struct prune_options, store),
	{ .name = "dry-run",
	  .letter = 'n',
	  FIELD(dry_run),
	  .help = "remove nothing; print what would go" },
	{ .name = "age",
	  .argument = "AGE",
	  FIELD(limits.data_s),
	  .set = set_age,
	  .expected = AGE_EXPECTED,
	  .help = "remove fingerprints and texts of reports that are older",
	  .preset = "90d" },
	{ .name = "bytes",
	  .argument = "SIZE",
	  FIELD(limits.bytes_max),
	  .set = set_bytes,
	  .expected = "a size such as 500M or 2G",
	  .help = "remove those of the oldest jobs until the file is no larger",
	  .preset = "2G",
	  .more = "Of a PostgreSQL server the size is not limited." },
	{ .name = "jobs",
	  .argument = "AGE",
	  FIELD(limits.job_s),
	  .set = set_age,
	  .expected = AGE_EXPECTED,
	  .help = "remove jobs that are older, with all that is kept of them",
	  .preset = "they stay" },
	{ .name = "format",
	  .letter = 'f',
	  .words = "text|json",
	  FIELD(format),
	  .help = "output format",
	  .preset = "text" },
};

static const struct {
	const char *name;
	size_t off;
} counts[] = {
	{ "jobs", offsetof(struct store_size, job_cnt) },
	{ "reports", offsetof(struct store_size, report_cnt) },
	{ "findings", offsetof(struct store_size, finding_cnt) },
	{ "documents", offsetof(struct store_size, document_cnt) },
	{ "fingerprints", offsetof(struct store_size, fingerprint_cnt) },
	{ "pace", offsetof(struct store_size, pace_cnt) },
	{ "events", offsetof(struct store_size, event_cnt) },
	{ "bytes", offsetof(struct store_size, bytes) },
};

static int64_t value_of(const struct store_size *size, size_t i)
{
	int64_t ret;

	memcpy(&ret, (const char *)size + counts[i].off, sizeof(ret));
	return ret;
}

static void print_text(const struct store_size sizes[static 2], bool dry)
{
	bool any = false;

	for (size_t i = 0; i < ARRAY_SIZE(counts); i++) {
		int64_t before = value_of(&sizes[0], i), after = value_of(&sizes[1], i);

		if (before == after)
			continue;
		if (!any)
			(void)printf("%-14s %14s %14s\n", "", dry ? "would go" : "removed",
				     dry ? "would stay" : "left");
		(void)printf("%-14s %14lld %14lld\n", counts[i].name, (long long)(before - after),
			     (long long)after);
		any = true;
	}
	if (!any)
		(void)puts("nothing is old enough, or too much");
	else if (dry)
		(void)puts("nothing was removed: --dry-run");
}

static int print_json(const struct store_size sizes[static 2], bool dry, struct err *err)
{
	json_t *root = json_object();
	struct json_writer w = { 0 };
	struct str out = { 0 };
	int ret;

	jsonwriter_put_text(&w, root, "schema", "perftracker.prune.v1");
	jsonwriter_put(&w, root, "dry_run", json_boolean(dry));
	for (int side = 0; side < 2; side++) {
		json_t *object = json_object();

		for (size_t i = 0; i < ARRAY_SIZE(counts); i++)
			jsonwriter_put(&w, object, counts[i].name,
				       json_integer(value_of(&sizes[side], i)));
		jsonwriter_put(&w, root, side == 0 ? "before" : "after", object);
	}
	ret = jsonwriter_print(&w, root, &out);
	if (ret == 0)
		(void)fputs(str_borrow(&out), stdout);
	str_done(&out);
	return ret < 0 ? err_set(err, ENOMEM, "out of memory") : 0;
}

/* A store is never made here: one that is missing is an error, as of `perftracker jobs`. */
static int open_store(const char *given, struct store **ret, struct err *err)
{
	char where[4200];
	int r = storechoice_open(given, ret, err);

	if (r < 0)
		return r;
	*ret = store_close(*ret);
	store_place(given, where, sizeof(where));
	return store_open(where, ret, err);
}

static int prune_main(const struct command *command, int argc, char **argv)
{
	struct prune_options options = { .limits = store_default_limits };
	struct store_size sizes[2] = { 0 };
	struct store *store = NULL;
	struct err err = { "" };
	int first, ret, status = optiontable_parse(command, argc, argv, &options, &first);

	if (status == OPTIONS_PARSED)
		status = optiontable_no_more(command, argc, argv, first);
	if (status != OPTIONS_PARSED)
		return status;
	ret = open_store(options.store, &store, &err);
	if (ret == 0)
		ret = store_prune_counted(store, &options.limits, clock_wall_ns(), options.dry_run,
					  sizes, &err);
	if (ret == 0 && options.format == OUTPUT_JSON)
		ret = print_json(sizes, options.dry_run, &err);
	else if (ret == 0)
		print_text(sizes, options.dry_run);
	(void)store_close(store);
	return ret == 0 ? EXIT_DONE : cmd_fail("%s", err.text);
}

const struct command cmd_prune = {
	.name = "prune",
	.summary = "remove what is old from the store",
	.usage = "[OPTION]...\n",
	.about =
		"Removes from the store what is older than the limits, or more than its size allows, "
		"and says how much of each kind went. A job that runs does the same by itself each "
		"hour, with the presets; jobs with their findings and events stay unless --jobs is "
		"given. Jobs that write meanwhile wait for it.\n",
	OPTION_ROWS(rows),
	.examples = "perftracker prune --dry-run\n"
		    "perftracker prune --age 30d --bytes 500M\n"
		    "perftracker prune --jobs 1y\n",
	.run = prune_main,
};
