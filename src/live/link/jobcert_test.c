/* SPDX-License-Identifier: Apache-2.0 */
#include "live/link/jobcert.h"

#include "base/file.h"
#include "host/process/test_tree.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

struct made {
	char *certificate, *key;
};

static char *read_text(const char *path)
{
	struct err err = { "" };
	char *text = NULL;
	size_t len;
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(file_read_whole(path, fd, 1 << 16, &text, &len, &err), 0);
	(void)close(fd);
	text = realloc(text, len + 1);
	assert_non_null(text);
	text[len] = '\0';
	return text;
}

static struct made make(const char *dir, const char *secret)
{
	char certificate[256], key[256];
	struct err err = { "" };

	(void)snprintf(certificate, sizeof(certificate), "%s/job.crt", dir);
	(void)snprintf(key, sizeof(key), "%s/job.key", dir);
	if (jobcert_write(secret, certificate, key, &err) < 0)
		fail_msg("%s", err.text);
	return (struct made){ read_text(certificate), read_text(key) };
}

static void release(struct made made)
{
	free(made.certificate);
	free(made.key);
}

/* Hosts whose broker shows another byte would not trust it. */
static void all_who_know_the_secret_make_the_same_certificate_and_nobody_else(void **state)
{
	struct made one = make(*state, "secret"), same = make(*state, "secret"),
		    other = make(*state, "Secret");

	assert_non_null(strstr(one.certificate, "BEGIN CERTIFICATE"));
	assert_non_null(strstr(one.key, "BEGIN PRIVATE KEY"));
	assert_string_equal(one.certificate, same.certificate);
	assert_string_equal(one.key, same.key);
	assert_string_not_equal(one.certificate, other.certificate);
	assert_string_not_equal(one.key, other.key);
	release(one);
	release(same);
	release(other);
}

/* By another program: printf 'a\0b' | sha256sum. */
static void a_password_is_a_digest_of_purpose_and_secret(void **state)
{
	char password[65], other[65];
	struct err err = { "" };

	(void)state;
	assert_int_equal(jobcert_password("b", "a", password, &err), 0);
	assert_string_equal(password,
			    "59b271ae1bbcb1d31d41929817f4b16fb439eb4f31520b5ad1d5ce98920a7138");
	assert_int_equal(jobcert_password("b", "c", other, &err), 0);
	assert_string_not_equal(password, other);
}

static void a_folder_that_is_not_there_is_told(void **state)
{
	char path[256];
	struct err err = { "" };

	(void)snprintf(path, sizeof(path), "%s/none/job.crt", (const char *)*state);
	assert_true(jobcert_write("secret", path, NULL, &err) < 0);
	assert_non_null(strstr(err.text, "none/job.crt"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			all_who_know_the_secret_make_the_same_certificate_and_nobody_else,
			make_root, remove_root),
		cmocka_unit_test(a_password_is_a_digest_of_purpose_and_secret),
		cmocka_unit_test_setup_teardown(a_folder_that_is_not_there_is_told, make_root,
						remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
