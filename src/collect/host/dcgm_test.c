/* SPDX-License-Identifier: Apache-2.0 */
/* DCGM's program is a script that notes down what it is asked, and answers as it is told. */
#include "collect/host/dcgm.h"

#include "collect/host/testtree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	char program[128], note[128], asked[128], answer[128];
	struct dcgm dcgm;
} fixture;

static void tell(const char *answer)
{
	FILE *file = fopen(fixture.answer, "w");

	assert_non_null(file);
	assert_true(fputs(answer, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static int make_dcgm(void **state)
{
	const char *root;
	char script[512];

	if (make_root(state) < 0)
		return -1;
	root = *state;
	(void)snprintf(fixture.program, sizeof(fixture.program), "%s/dcgmi", root);
	(void)snprintf(fixture.note, sizeof(fixture.note), "%s/note", root);
	(void)snprintf(fixture.asked, sizeof(fixture.asked), "%s/asked", root);
	(void)snprintf(fixture.answer, sizeof(fixture.answer), "%s/answer", root);
	(void)snprintf(script, sizeof(script), "#!/bin/sh\necho \"$@\" >>%s\n. %s\n", fixture.asked,
		       fixture.answer);
	write_file(root, "dcgmi", script);
	tell("exit 0\n");
	fixture.dcgm = (struct dcgm){ fixture.program, fixture.note, 60000, -1 };
	return chmod(fixture.program, 0700);
}

static void assert_asked(const char *expected)
{
	FILE *file = fopen(fixture.asked, "r");
	char text[256] = "";

	if (file != NULL) {
		text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
		(void)fclose(file);
	}
	assert_string_equal(text, expected);
}

static void write_note_of(const char *text)
{
	FILE *file = fopen(fixture.note, "w");

	assert_non_null(file);
	assert_true(fputs(text, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static void what_is_paused_is_resumed(void **state _unused_)
{
	assert_int_equal(dcgm_resume(&fixture.dcgm), 0);
	assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
	assert_int_equal(access(fixture.note, F_OK), 0);
	assert_int_equal(dcgm_recover(&fixture.dcgm), 0); /* we live */
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
	assert_int_equal(dcgm_resume(&fixture.dcgm), 0);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
	assert_asked("profile --pause\nprofile --resume\n");
}

static void it_is_paused_by_one_at_a_time(void **state _unused_)
{
	assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
	assert_int_equal(dcgm_pause(&fixture.dcgm), -EBUSY);
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
	assert_asked("profile --pause\nprofile --resume\n");
}

static void without_dcgm_nothing_is_left(void **state _unused_)
{
	tell("exit 3\n");
	assert_int_equal(dcgm_pause(&fixture.dcgm), -ENODEV);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
	fixture.dcgm.program = "/nonexistent/dcgmi";
	assert_int_equal(dcgm_pause(&fixture.dcgm), -ENODEV);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
	fixture.dcgm.note = "/nonexistent/note";
	assert_int_equal(dcgm_pause(&fixture.dcgm), -ENOENT);
}

/* The pause may have come through: it is taken back, at the latest by the next to come. */
static void one_that_does_not_answer_is_killed(void **state _unused_)
{
	fixture.dcgm.answer_ms = 300;
	tell("exec sleep 1000\n");
	assert_int_equal(dcgm_pause(&fixture.dcgm), -ETIME);
	assert_int_equal(access(fixture.note, F_OK), 0);
	fixture.dcgm.answer_ms = 60000;
	tell("exit 0\n");
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
}

static void a_pause_without_an_answer_is_taken_back(void **state _unused_)
{
	fixture.dcgm.answer_ms = 300;
	tell("[ $2 != --pause ] || exec sleep 1000\n");
	assert_int_equal(dcgm_pause(&fixture.dcgm), -ENODEV);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
}

/* Another process that reads it meanwhile would take an empty one for that of a dead one. */
static void a_note_is_never_seen_unfinished(void **state)
{
	_Alignas(struct inotify_event) char events[4096];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), created = 0;
	ssize_t len;

	assert_true(inotify_add_watch(fd, *state, IN_CREATE | IN_MODIFY) >= 0);
	assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
	len = read(fd, events, sizeof(events));
	assert_true(len > 0);
	for (ssize_t at = 0; at < len;) {
		const struct inotify_event *event = (const void *)(events + at);

		if (strcmp(event->name, "note") == 0) {
			assert_int_equal(event->mask & IN_MODIFY, 0);
			created++;
		}
		at += (ssize_t)(sizeof(*event) + event->len);
	}
	assert_int_equal(created, 1);
	assert_int_equal(close(fd), 0);
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
}

static void a_resume_that_fails_is_left_to_the_next(void **state _unused_)
{
	assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
	tell("exit 1\n");
	assert_int_equal(dcgm_resume(&fixture.dcgm), -EIO);
	assert_int_equal(access(fixture.note, F_OK), 0);
	tell("exit 0\n");
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
}

static void what_the_dead_left_is_resumed(void **state _unused_)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (dcgm_pause(&fixture.dcgm) == 0)
			(void)raise(SIGKILL);
		_exit(1);
	}
	/* As long as it is not buried, too. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(dcgm_recover(&fixture.dcgm), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_asked("profile --pause\nprofile --resume\n");
	assert_int_equal(dcgm_recover(&fixture.dcgm), 0);
}

static pid_t start_recovery(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(dcgm_recover(&fixture.dcgm));
	assert_true(pid > 0);
	return pid;
}

static int status_of(pid_t pid)
{
	int status = 0;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

/* The first is at it when the second comes. */
static void two_that_find_what_the_dead_left_resume_it_once(void **state)
{
	pid_t first, second;
	char answer[256];

	write_note_of("1 18446744073709551615\n");
	(void)snprintf(answer, sizeof(answer), "while [ ! -e %s.go ]; do sleep 0.01; done\n",
		       fixture.note);
	tell(answer);
	first = start_recovery();
	while (access(fixture.asked, F_OK) != 0)
		(void)usleep(1000);
	second = start_recovery();
	(void)usleep(100000); /* so that it would ask, too */
	write_file(*state, "note.go", "");
	assert_int_equal(status_of(first) + status_of(second), 1);
	assert_asked("profile --resume\n");
	assert_int_not_equal(access(fixture.note, F_OK), 0);
}

/* As a sampler may that has lost its keeper, when another has begun. */
static void what_another_paused_meanwhile_is_left_to_it(void **state _unused_)
{
	struct dcgm late = fixture.dcgm;

	assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
	assert_int_equal(dcgm_resume(&late), 0);
	assert_int_equal(access(fixture.note, F_OK), 0);
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
	assert_asked("profile --pause\nprofile --resume\n");
}

/* As one of another container sees it, where processes have other numbers. */
static void the_living_are_known_whatever_number_they_have(void **state _unused_)
{
	struct dcgm other = fixture.dcgm;

	assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
	write_note_of("2147483632\n"); /* there is no such process here */
	assert_int_equal(dcgm_recover(&other), 0);
	assert_int_equal(dcgm_pause(&other), -EBUSY);
	assert_int_equal(access(fixture.note, F_OK), 0);
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
	assert_asked("profile --pause\nprofile --resume\n");
}

/* A number may have been given again, to anybody. */
static void the_dead_are_known_whatever_number_they_had(void **state _unused_)
{
	char note[32];

	(void)snprintf(note, sizeof(note), "%d\n", (int)getpid());
	write_note_of(note);
	assert_int_equal(dcgm_recover(&fixture.dcgm), 1);
	assert_asked("profile --resume\n");
}

static void what_we_paused_is_resumed_though_its_note_is_gone(void **state _unused_)
{
	assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
	assert_int_equal(unlink(fixture.note), 0);
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
	assert_int_equal(dcgm_resume(&fixture.dcgm), 0);
	assert_asked("profile --pause\nprofile --resume\n");
}

/* Who holds the lock and does not let go is not waited for, and not passed by. */
static void one_that_is_at_it_for_ever_is_left_at_it(void **state _unused_)
{
	char path[160];
	int fd;

	fixture.dcgm.answer_ms = 20;
	write_note_of("0 0\n");
	(void)snprintf(path, sizeof(path), "%s.lock", fixture.note);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(dcgm_recover(&fixture.dcgm), -EBUSY);
	assert_int_equal(dcgm_resume(&fixture.dcgm), -EBUSY);
	assert_int_equal(dcgm_pause(&fixture.dcgm), -EBUSY);
	assert_int_equal(close(fd), 0);
	fixture.dcgm.answer_ms = 60000;
	assert_int_equal(dcgm_recover(&fixture.dcgm), 1);
	assert_asked("profile --resume\n");
}

static void notes_that_make_no_sense_are_of_the_dead(void **state _unused_)
{
	static const char *const notes[] = {
		"", "x", "0 0\n", "-1 7\n", "1", "99999999999 1\n", "1 18446744073709551615\n"
	};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		write_note_of(notes[i]);
		assert_int_equal(dcgm_recover(&fixture.dcgm), 1);
		write_note_of(notes[i]);
		assert_int_equal(dcgm_pause(&fixture.dcgm), 0);
		assert_int_equal(dcgm_recover(&fixture.dcgm), 0);
		assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
	}
}

static void a_note_that_is_a_link_is_not_followed(void **state _unused_)
{
	assert_int_equal(symlink("/etc/passwd", fixture.note), 0);
	assert_int_equal(dcgm_pause(&fixture.dcgm), 0); /* the link was removed */
	assert_int_equal(dcgm_resume(&fixture.dcgm), 1);
}

static void chips_before_hopper_are_dcgms(void **state _unused_)
{
	assert_true(dcgm_owns_counters("GA100"));
	assert_true(dcgm_owns_counters("TU102"));
	assert_true(dcgm_owns_counters("AD102"));
	assert_false(dcgm_owns_counters("GH100"));
	assert_false(dcgm_owns_counters("GB202"));
	assert_false(dcgm_owns_counters(""));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_dcgm, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_paused_is_resumed),
		TEST(it_is_paused_by_one_at_a_time),
		TEST(without_dcgm_nothing_is_left),
		TEST(one_that_does_not_answer_is_killed),
		TEST(a_pause_without_an_answer_is_taken_back),
		TEST(a_note_is_never_seen_unfinished),
		TEST(a_resume_that_fails_is_left_to_the_next),
		TEST(what_the_dead_left_is_resumed),
		TEST(two_that_find_what_the_dead_left_resume_it_once),
		TEST(what_another_paused_meanwhile_is_left_to_it),
		TEST(the_living_are_known_whatever_number_they_have),
		TEST(the_dead_are_known_whatever_number_they_had),
		TEST(what_we_paused_is_resumed_though_its_note_is_gone),
		TEST(one_that_is_at_it_for_ever_is_left_at_it),
		TEST(notes_that_make_no_sense_are_of_the_dead),
		TEST(a_note_that_is_a_link_is_not_followed),
		TEST(chips_before_hopper_are_dcgms),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
