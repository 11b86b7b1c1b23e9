/* SPDX-License-Identifier: Apache-2.0 */
#include "cmd/memory/storedwindow.h"

#include "cmd/storechoice.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct taker {
	struct load_result *ret;
	const char *label;
	struct err *err;
};

static int push(struct load_result *result, struct fingerprint *fp)
{
	struct fingerprint **fps =
		realloc(result->fps, (result->cnt + 1) * sizeof(struct fingerprint *));

	if (fps == NULL)
		return -ENOMEM;
	result->fps = fps;
	fps[result->cnt++] = fp;
	return 0;
}

static int take_fingerprint(void *arg, int rank, const void *data, size_t len)
{
	const struct taker *taker = arg;
	struct fingerprint *fp = calloc(1, sizeof(*fp));
	int ret;

	(void)rank;
	if (fp == NULL)
		return -ENOMEM;
	ret = fingerprint_read_memory(data, len, taker->label, fp, taker->err);
	if (ret == 0 && push(taker->ret, fp) == 0)
		return 0;
	if (ret == 0)
		fingerprint_done(fp);
	free(fp);
	return ret < 0 ? ret : -ENOMEM;
}

int storedwindow_read(struct store *store, const char *key, uint64_t number, const char *label,
		      struct load_result *ret, struct err *err)
{
	struct taker taker = { .ret = ret, .label = label, .err = err };

	return store_list_fingerprints(store, key, number, take_fingerprint, &taker, err);
}

/* "JOB/3", "JOB/end": splits it. */
static int parse_word(const char *word, char ret_job[static 256], uint64_t *ret_number)
{
	const char *slash = strrchr(word, '/');
	int64_t number = 0;

	if (slash == NULL || slash == word || slash - word >= 256)
		return -EINVAL;
	if (strcmp(slash + 1, "end") != 0 && cmd_parse_int(slash + 1, 1, INT64_MAX, &number) < 0)
		return -EINVAL;
	(void)snprintf(ret_job, 256, "%.*s", (int)(slash - word), word);
	*ret_number = (uint64_t)number;
	return 0;
}

bool storedwindow_is(const char *word)
{
	uint64_t number;
	char job[256];

	return access(word, F_OK) < 0 && errno == ENOENT && parse_word(word, job, &number) == 0 &&
	       strchr(job, '/') == NULL;
}

int storedwindow_load(const char *place, const char *word, struct load_result *ret, struct err *err)
{
	char job[256], key[STORE_KEY_BYTES];
	struct store *store = NULL;
	uint64_t number;
	int r = parse_word(word, job, &number);

	if (r < 0)
		return err_set(err, EINVAL, "'%s': expected JOB/NUMBER or JOB/end", word);
	r = storechoice_open(place, &store, err);
	if (r == 0)
		r = store_find_job(store, job, key, err);
	if (r == 0)
		r = storedwindow_read(store, key, number, word, ret, err);
	if (r == 0 && ret->cnt == 0)
		r = err_set(err, ENOENT,
			    "%s: the store keeps no fingerprints of this report; it keeps those of "
			    "profiles, for 90 days",
			    word);
	(void)store_close(store);
	return r;
}
