/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a trace or an error, whatever the window is, and a trace keeps
 * the promises of event.h. Built with libFuzzer (option fuzz, clang) or, with
 * FUZZ_REPLAY, as a program that replays the files and folders it is given.
 */
#include "read/kineto/kineto.h"

#include "base/file.h"
#include "model/event_promises.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(bool ok, const char *what)
{
	if (ok)
		return;
	fprintf(stderr, "kineto_fuzz: %s\n", what);
	abort();
}

/* Reads with one window; *ret_cnt is the number of events or the error. */
static void read_once(const uint8_t *data, size_t len, size_t window_bytes, long long *ret_cnt,
		      struct err *err)
{
	/* Inputs that expand a thousandfold would only make the run slow. */
	const struct kineto_options opt = {
		.max_text_bytes = 1 << 24,
		.max_memory_bytes = 1 << 26,
		.window_bytes = window_bytes,
	};
	const char *broken;
	struct trace trace;
	int ret = kineto_read_memory(data, len, "fuzz", &opt, &trace, err);

	*ret_cnt = ret;
	if (ret < 0) {
		check(strstr(err->text, "fuzz:") == err->text, "an error without a place");
		return;
	}
	check(ret == 0, "positive result");
	broken = event_promise_broken(&trace);
	check(broken == NULL, broken);
	*ret_cnt = (long long)trace.event_cnt;
	trace_done(&trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	long long whole, pieces;
	struct err err, other = { "" };

	read_once(data, len, 0, &whole, &err);
	read_once(data, len, 64, &pieces, &other);
	check(whole == pieces, "the result depends on the window");
	/* Where damaged gzip data is noticed is the decompressor's affair. */
	if (whole < 0 && (len < 2 || data[0] != 0x1f || data[1] != 0x8b))
		check(strcmp(err.text, other.text) == 0, "the error depends on the window");
	return 0;
}

#ifdef FUZZ_REPLAY

static int replay_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC), ret;
	struct err err = { "" };
	char *data;
	size_t len;

	if (fd < 0) {
		perror(path);
		return 1;
	}
	ret = file_read_whole(path, fd, 1 << 24, &data, &len, &err);
	(void)close(fd);
	if (ret < 0) {
		(void)fprintf(stderr, "%s\n", err.text);
		return 1;
	}
	(void)LLVMFuzzerTestOneInput((const uint8_t *)data, len);
	free(data);
	return 0;
}

static int replay_folder(const char *path, size_t *cnt)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	int failed = 0;

	if (dir == NULL) {
		perror(path);
		return 1;
	}
	while ((entry = readdir(dir)) != NULL) {
		char name[4096];

		if (entry->d_name[0] == '.')
			continue;
		(void)snprintf(name, sizeof(name), "%s/%s", path, entry->d_name);
		failed |= replay_file(name);
		++*cnt;
	}
	(void)closedir(dir);
	return failed;
}

int main(int argc, char **argv)
{
	size_t cnt = 0;
	int failed = argc < 2;

	for (int i = 1; i < argc; i++)
		failed |= replay_folder(argv[i], &cnt);
	printf("%zu inputs\n", cnt);
	return failed || cnt == 0;
}

#endif
