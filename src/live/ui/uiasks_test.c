/* SPDX-License-Identifier: Apache-2.0 */
/* Requests of a page, against a socket where the test answers as a daemon would. */
#include "live/ui/uiasks.h"

#include "format/shared/message.h"

#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

/* Needs the headers above, so it cannot be sorted among them. */
/* clang-format off */
#include <cmocka.h>
/* clang-format on */

static struct {
	char folder[64], path[96];
	int fd;
	struct uiasks *asks;
	struct err err;
} f;

static int set_up(void **state)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };

	(void)state;
	(void)snprintf(f.folder, sizeof(f.folder), "/tmp/uiasks_test.XXXXXX");
	assert_non_null(mkdtemp(f.folder));
	(void)snprintf(f.path, sizeof(f.path), "%s/sock", f.folder);
	(void)snprintf(addr.sun_path, sizeof(addr.sun_path), "%s", f.path);
	f.fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(f.fd, (const struct sockaddr *)&addr, sizeof(addr)), 0);
	assert_int_equal(listen(f.fd, 32), 0);
	f.asks = uiasks_new();
	assert_non_null(f.asks);
	return 0;
}

static int tear_down(void **state)
{
	(void)state;
	f.asks = uiasks_free(f.asks);
	(void)close(f.fd);
	(void)unlink(f.path);
	return rmdir(f.folder);
}

static int send_one(const char *reason)
{
	const struct routes_wish wish = { "3fa9d1e0b2c4", "/out", "ann", reason };

	return uiasks_send(f.asks, f.path, &wish, &f.err);
}

/* What the daemon got, in *ret; returns its end of the connection. */
static int take(struct message *ret)
{
	int fd = accept4(f.fd, NULL, NULL, SOCK_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(recv(fd, ret, sizeof(*ret), 0), sizeof(*ret));
	return fd;
}

static void reply(int fd, int status, const char *text)
{
	struct message message = { .magic = MESSAGE_MAGIC,
				   .version = MESSAGE_VERSION,
				   .type = MSG_REPLY,
				   .status = status };

	(void)snprintf(message.text, sizeof(message.text), "%s", text);
	assert_int_equal(send(fd, &message, sizeof(message), 0), sizeof(message));
}

static json_t *requests(const char *job)
{
	struct json_writer w = { 0 };
	json_t *root = json_object(), *ret;

	uiasks_put(f.asks, job, &w, root);
	assert_int_equal(w.error, 0);
	ret = json_incref(json_object_get(root, "requests"));
	json_decref(root);
	return ret;
}

static const char *text_at(const json_t *list, size_t i, const char *key)
{
	return json_string_value(json_object_get(json_array_get(list, i), key));
}

static void a_request_has_its_user_and_reason_and_gets_its_outcome(void **state)
{
	struct message got;
	json_t *list;
	int first, second;

	(void)state;
	assert_int_equal(send_one("slow"), 0);
	first = take(&got);
	assert_int_equal(got.type, MSG_REQUEST);
	assert_string_equal(got.text, "ann\nslow");
	assert_int_equal(send_one("again"), 0);
	second = take(&got);
	assert_false(uiasks_look(f.asks)); /* no answer yet: it does not wait */
	reply(first, 0, "/out/report-1.html");
	assert_true(uiasks_look(f.asks));
	(void)close(second); /* the daemon ended */
	assert_true(uiasks_look(f.asks));
	list = requests("3fa9d1e0b2c4");
	assert_int_equal(json_array_size(list), 2);
	assert_string_equal(text_at(list, 1, "state"), "done");
	assert_string_equal(text_at(list, 1, "text"), "/out/report-1.html");
	assert_string_equal(text_at(list, 1, "reason"), "slow");
	assert_string_equal(text_at(list, 0, "state"), "failed");
	json_decref(list);
	list = requests("000000000000");
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
	(void)close(first);
}

static void too_many_at_once_are_refused_and_old_ones_make_room(void **state)
{
	int fds[UIASKS_WAITING_MAX];
	struct message got;
	json_t *list;

	(void)state;
	for (int round = 0; round < 7; round++) {
		for (unsigned i = 0; i < UIASKS_WAITING_MAX; i++) {
			assert_int_equal(send_one("more"), 0);
			fds[i] = take(&got);
		}
		assert_int_equal(send_one("too many"), -EBUSY);
		for (unsigned i = 0; i < UIASKS_WAITING_MAX; i++) {
			reply(fds[i], EAGAIN, "not yet");
			(void)close(fds[i]);
		}
		assert_true(uiasks_look(f.asks));
	}
	list = requests("3fa9d1e0b2c4");
	assert_int_equal(json_array_size(list), UIASKS_KEPT_MAX);
	assert_string_equal(text_at(list, 0, "state"), "failed");
	assert_string_equal(text_at(list, 0, "text"), "not yet");
	json_decref(list);
}

static void where_no_daemon_is_nothing_waits(void **state)
{
	const struct routes_wish wish = { "3fa9d1e0b2c4", "/out", "ann", "slow" };
	char other[128];
	json_t *list;

	(void)state;
	(void)snprintf(other, sizeof(other), "%s.other", f.path);
	assert_int_equal(uiasks_send(f.asks, other, &wish, &f.err), -ENOENT);
	list = requests("3fa9d1e0b2c4");
	assert_int_equal(json_array_size(list), 0);
	json_decref(list);
}

#define in_folder(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		in_folder(a_request_has_its_user_and_reason_and_gets_its_outcome),
		in_folder(too_many_at_once_are_refused_and_old_ones_make_room),
		in_folder(where_no_daemon_is_nothing_waits),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
