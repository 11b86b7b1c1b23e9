/* SPDX-License-Identifier: Apache-2.0 */
/* The tool's program is a script that logs its arguments and exits as the test sets it. */
#include "host/counters/gpupause.h"

#include "host/process/test_tree.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/inotify.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static struct {
	char commands[4][160], note[128], asked[128], answer[128];
	struct gpupause_tool first, second;
	const struct gpupause_tool *tools[3];
	struct gpupause pause;
} fixture;

static unsigned wrong_kills;

/* Replaces libc's. Counts signals to reaped children: their pid may belong to another process. */
int kill(pid_t pid, int number)
{
	const id_t child = (id_t)(pid < 0 ? -pid : pid);

	wrong_kills += waitid(P_PID, child, &(siginfo_t){ 0 }, WEXITED | WNOHANG | WNOWAIT) != 0;
	return (int)syscall(SYS_kill, pid, number);
}

static void set_answer(const char *answer)
{
	FILE *file = fopen(fixture.answer, "w");

	assert_non_null(file);
	assert_true(fputs(answer, file) >= 0);
	assert_int_equal(fclose(file), 0);
}

static const char *command(size_t idx, const char *root, const char *words)
{
	(void)snprintf(fixture.commands[idx], sizeof(fixture.commands[idx]), "%s/program %s", root,
		       words);
	return fixture.commands[idx];
}

static int make_tools(void **state)
{
	char script[512], program[160];
	const char *root;

	if (make_root(state) < 0)
		return -1;
	root = *state;
	memset(&fixture, 0, sizeof(fixture));
	(void)snprintf(program, sizeof(program), "%s/program", root);
	(void)snprintf(fixture.note, sizeof(fixture.note), "%s/note", root);
	(void)snprintf(fixture.asked, sizeof(fixture.asked), "%s/asked", root);
	(void)snprintf(fixture.answer, sizeof(fixture.answer), "%s/answer", root);
	(void)snprintf(script, sizeof(script), "#!/bin/sh\necho \"$@\" >>%s\n. %s\n", fixture.asked,
		       fixture.answer);
	write_file(root, "program", script);
	set_answer("exit 0\n");
	fixture.first = (struct gpupause_tool){ "first", command(0, root, "profile --pause"),
						command(1, root, "profile --resume") };
	fixture.second = (struct gpupause_tool){ "second", command(2, root, "hold it"),
						 command(3, root, "let it go") };
	fixture.tools[0] = &fixture.first;
	fixture.tools[1] = &fixture.second;
	fixture.pause = (struct gpupause){
		.tools = fixture.tools, .note = fixture.note, .answer_ms = 60000, .held_fd = -1
	};
	return chmod(program, 0700);
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

static void a_paused_tool_is_resumed(void **state _unused_)
{
	assert_int_equal(gpupause_end(&fixture.pause), 0);
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
	assert_int_equal(access(fixture.note, F_OK), 0);
	assert_int_equal(gpupause_recover(&fixture.pause), 0); /* this process lives */
	assert_int_equal(gpupause_end(&fixture.pause), 1);
	assert_int_equal(gpupause_end(&fixture.pause), 0);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
	assert_asked("profile --pause\nprofile --resume\n");
}

static void a_tool_is_paused_by_one_process_at_a_time(void **state _unused_)
{
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -EBUSY);
	assert_int_equal(gpupause_end(&fixture.pause), 1);
	assert_asked("profile --pause\nprofile --resume\n");
}

static void without_the_tool_nothing_is_left(void **state _unused_)
{
	set_answer("exit 3\n");
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -ENODEV);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
	fixture.first.pause = "/nonexistent/program --pause";
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -ENODEV);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
	fixture.pause.note = "/nonexistent/note";
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -ENOENT);
}

/* The pause may have taken effect: it is undone, at the latest by the next process. */
static void a_tool_that_does_not_answer_is_killed(void **state _unused_)
{
	fixture.pause.answer_ms = 300;
	set_answer("exec sleep 1000\n");
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -ETIME);
	assert_int_equal(access(fixture.note, F_OK), 0);
	fixture.pause.answer_ms = 60000;
	set_answer("exit 0\n");
	assert_int_equal(gpupause_end(&fixture.pause), 1);
}

/* With SIGCHLD ignored, as inherited from some parents, the kernel reaps the children. */
static void a_reaped_tool_is_not_killed(void **state _unused_)
{
	assert_ptr_not_equal(signal(SIGCHLD, SIG_IGN), SIG_ERR);
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -ETIME);
	assert_ptr_not_equal(signal(SIGCHLD, SIG_DFL), SIG_ERR);
	assert_int_equal(wrong_kills, 0);
	assert_int_equal(gpupause_end(&fixture.pause), 1);
}

static void a_pause_without_an_answer_is_taken_back(void **state _unused_)
{
	fixture.pause.answer_ms = 300;
	set_answer("[ $2 != --pause ] || exec sleep 1000\n");
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -ENODEV);
	assert_int_not_equal(access(fixture.note, F_OK), 0);
}

/* Another process that reads an empty note would take it for a dead process's. */
static void a_note_is_never_seen_unfinished(void **state)
{
	_Alignas(struct inotify_event) char events[4096];
	int fd = inotify_init1(IN_NONBLOCK | IN_CLOEXEC), created = 0;
	ssize_t len;

	assert_true(inotify_add_watch(fd, *state, IN_CREATE | IN_MODIFY) >= 0);
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
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
	assert_int_equal(gpupause_end(&fixture.pause), 1);
}

static void a_resume_that_fails_is_left_to_the_next(void **state _unused_)
{
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
	set_answer("exit 1\n");
	assert_int_equal(gpupause_end(&fixture.pause), -EIO);
	assert_int_equal(access(fixture.note, F_OK), 0);
	set_answer("exit 0\n");
	assert_int_equal(gpupause_end(&fixture.pause), 1);
}

static void a_tool_paused_by_a_dead_process_is_resumed(void **state _unused_)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		if (gpupause_begin(&fixture.pause, &fixture.first) == 0)
			(void)raise(SIGKILL);
		_exit(1);
	}
	/* A zombie counts as dead. */
	assert_int_equal(waitid(P_PID, (id_t)pid, &(siginfo_t){ 0 }, WEXITED | WNOWAIT), 0);
	assert_int_equal(gpupause_recover(&fixture.pause), 1);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status));
	assert_asked("profile --pause\nprofile --resume\n");
	assert_int_equal(gpupause_recover(&fixture.pause), 0);
}

static pid_t start_recovery(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(gpupause_recover(&fixture.pause));
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

/* The second process comes while the first one pauses. */
static void two_recovering_processes_resume_the_tool_once(void **state)
{
	pid_t first, second;
	char answer[256];

	write_note_of("1 18446744073709551615\n");
	(void)snprintf(answer, sizeof(answer), "while [ ! -e %s.go ]; do sleep 0.01; done\n",
		       fixture.note);
	set_answer(answer);
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
static void a_pause_of_another_process_is_left_alone(void **state _unused_)
{
	struct gpupause late = fixture.pause;

	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
	assert_int_equal(gpupause_end(&late), 0);
	assert_int_equal(access(fixture.note, F_OK), 0);
	assert_int_equal(gpupause_end(&fixture.pause), 1);
	assert_asked("profile --pause\nprofile --resume\n");
}

/* As a process of another container sees it, where pids differ. */
static void the_living_are_known_whatever_number_they_have(void **state _unused_)
{
	struct gpupause other = fixture.pause;

	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
	write_note_of("2147483632\n"); /* no such process here */
	assert_int_equal(gpupause_recover(&other), 0);
	assert_int_equal(gpupause_begin(&other, &fixture.first), -EBUSY);
	assert_int_equal(access(fixture.note, F_OK), 0);
	assert_int_equal(gpupause_end(&fixture.pause), 1);
	assert_asked("profile --pause\nprofile --resume\n");
}

/* A pid may have been reused. */
static void the_dead_are_known_whatever_number_they_had(void **state _unused_)
{
	char note[32];

	(void)snprintf(note, sizeof(note), "%d\n", (int)getpid());
	write_note_of(note);
	assert_int_equal(gpupause_recover(&fixture.pause), 1);
	assert_asked("profile --resume\n");
}

static void a_paused_tool_is_resumed_without_its_note(void **state _unused_)
{
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
	assert_int_equal(unlink(fixture.note), 0);
	assert_int_equal(gpupause_end(&fixture.pause), 1);
	assert_int_equal(gpupause_end(&fixture.pause), 0);
	assert_asked("profile --pause\nprofile --resume\n");
}

/* A lock that is never released is neither awaited forever nor ignored. */
static void a_lock_that_is_never_released_is_left_alone(void **state _unused_)
{
	char path[160];
	int fd;

	fixture.pause.answer_ms = 20;
	write_note_of("0 0\n");
	(void)snprintf(path, sizeof(path), "%s.lock", fixture.note);
	fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(flock(fd, LOCK_EX), 0);
	assert_int_equal(gpupause_recover(&fixture.pause), -EBUSY);
	assert_int_equal(gpupause_end(&fixture.pause), -EBUSY);
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), -EBUSY);
	assert_int_equal(close(fd), 0);
	fixture.pause.answer_ms = 60000;
	assert_int_equal(gpupause_recover(&fixture.pause), 1);
	assert_asked("profile --resume\n");
}

static void notes_that_make_no_sense_are_of_the_dead(void **state _unused_)
{
	static const char *const notes[] = {
		"", "x", "0 0\n", "-1 7\n", "1", "99999999999 1\n", "1 18446744073709551615\n"
	};

	for (size_t i = 0; i < ARRAY_SIZE(notes); i++) {
		write_note_of(notes[i]);
		assert_int_equal(gpupause_recover(&fixture.pause), 1);
		write_note_of(notes[i]);
		assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first), 0);
		assert_int_equal(gpupause_recover(&fixture.pause), 0);
		assert_int_equal(gpupause_end(&fixture.pause), 1);
	}
}

static void a_note_that_is_a_link_is_not_followed(void **state _unused_)
{
	assert_int_equal(symlink("/etc/passwd", fixture.note), 0);
	assert_int_equal(gpupause_begin(&fixture.pause, &fixture.first),
			 0); /* the link was removed */
	assert_int_equal(gpupause_end(&fixture.pause), 1);
}

/* A later process finds the tool's name in the note. */
static void the_tool_that_was_paused_is_resumed(void **state _unused_)
{
	struct gpupause later = fixture.pause;
	pid_t pid = fork();

	if (pid == 0)
		_exit(gpupause_begin(&fixture.pause, &fixture.second) == 0 ? 0 : 1);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(gpupause_recover(&later), 1);
	assert_ptr_equal(later.tool, &fixture.second);
	assert_asked("hold it\nlet it go\n");
	assert_ptr_equal(gpupause_find(&later, "first"), &fixture.first);
	assert_null(gpupause_find(&later, "fir"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_tools, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_paused_tool_is_resumed),
		TEST(a_tool_is_paused_by_one_process_at_a_time),
		TEST(without_the_tool_nothing_is_left),
		TEST(a_tool_that_does_not_answer_is_killed),
		TEST(a_reaped_tool_is_not_killed),
		TEST(a_pause_without_an_answer_is_taken_back),
		TEST(a_note_is_never_seen_unfinished),
		TEST(a_resume_that_fails_is_left_to_the_next),
		TEST(a_tool_paused_by_a_dead_process_is_resumed),
		TEST(two_recovering_processes_resume_the_tool_once),
		TEST(a_pause_of_another_process_is_left_alone),
		TEST(the_living_are_known_whatever_number_they_have),
		TEST(the_dead_are_known_whatever_number_they_had),
		TEST(a_paused_tool_is_resumed_without_its_note),
		TEST(a_lock_that_is_never_released_is_left_alone),
		TEST(notes_that_make_no_sense_are_of_the_dead),
		TEST(a_note_that_is_a_link_is_not_followed),
		TEST(the_tool_that_was_paused_is_resumed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
