/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Any bytes are a dump of each kind: records or one line. A libFuzzer target; with FUZZ_REPLAY a program that
 * reads the files it is given, and each of them with some bytes changed, always the same ones.
 */
#include "read/dumps/dumps.h"

#include "base/file.h"
#include "base/splitmix.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len);

static void check(const struct dumps *dumps)
{
	vec_foreach(record, &dumps->records) {
		if (record->rank < 0 || record->stack == NULL || record->says == NULL)
			abort();
		for (size_t i = 0; i < record->entered_cnt; i++)
			if (record->entered[i].group == NULL || record->entered[i].name == NULL)
				abort();
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t len)
{
	struct err err = { "" };
	struct dumps dumps;
	int error;

	dumps_init(&dumps);
	error = dumps_parse("fuzz", (const char *)data, len, &dumps, &err);
	if (error < 0 && err.text[0] == '\0')
		abort();
	dumps_join(&dumps);
	check(&dumps);
	dumps_done(&dumps);
	return 0;
}

#ifdef FUZZ_REPLAY
enum { ROUNDS = 300 };

static void replay(char *data, size_t len)
{
	uint64_t seed = len;

	(void)LLVMFuzzerTestOneInput((const uint8_t *)data, len);
	for (int i = 0; i < ROUNDS && len > 8; i++) {
		const size_t at = (size_t)(splitmix_next(&seed) % len);
		const char before = data[at];

		data[at] = (char)splitmix_next(&seed);
		(void)LLVMFuzzerTestOneInput((const uint8_t *)data,
					     len - (size_t)(i % 3) * (len / 4));
		data[at] = before;
	}
}

int main(int argc, char **argv)
{
	for (int i = 1; i < argc; i++) {
		const int fd = open(argv[i], O_RDONLY | O_CLOEXEC);
		struct err err = { "" };
		char *data = NULL;
		size_t len;

		if (fd < 0 || file_read_whole(argv[i], fd, 1 << 24, &data, &len, &err) < 0) {
			(void)fprintf(stderr, "%s: cannot be read %s\n", argv[i], err.text);
			return 1;
		}
		(void)close(fd);
		replay(data, len);
		free(data);
	}
	return 0;
}
#endif
