/* SPDX-License-Identifier: Apache-2.0 */
#include "live/ending/orphans.h"

#include "host/process/test_tree.h"
#include "live/hub/test_states.h"

#define CNT 3

static const char *root;
static struct wire_state states[CNT];

static void add_process(unsigned pid, char letter)
{
	char path[64], text[256];

	(void)snprintf(path, sizeof(path), "proc/%u/stat", pid);
	(void)snprintf(
		text, sizeof(text),
		"%u (python) %c 1 1 1 0 -1 4194304 0 0 0 0 5 5 0 0 20 0 1 0 100 0 0 0 0 0 0 0 "
		"0 0 0 0 0 0 0 0 17 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n",
		pid, letter);
	write_file(root, path, text);
}

static int set_up(void **state)
{
	if (make_root(state) < 0)
		return -1;
	root = *state;
	for (int i = 0; i < CNT; i++) {
		states[i] = test_worker(i, 300, NSEC_PER_MSEC);
		states[i].pid = 77 + (uint32_t)i;
		add_process(states[i].pid, 'S');
	}
	return 0;
}

static void expect(const char *text)
{
	struct str out = { 0 };

	orphans_append(root, states, CNT, &out);
	assert_string_equal(str_borrow(&out), text);
	str_done(&out);
}

static void ranks_that_run_are_named(void **state)
{
	(void)state;
	expect("; 3 ranks still run without it (pids 77, 78, 79): end them before the next start, to "
	       "free the devices");
	states[2].worker += WIRE_OWN_WORKERS; /* of another host: its pid means nothing here */
	add_process(77, 'Z');
	expect("; 1 rank still runs without it (pid 78): end it before the next start, to free the "
	       "devices");
}

static void without_any_nothing_is_said(void **state)
{
	(void)state;
	states[0].phase = PHASE_GONE;
	states[1].pid = 99; /* no such process */
	states[2].phase = PHASE_GONE;
	expect("");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(ranks_that_run_are_named, set_up, remove_root),
		cmocka_unit_test_setup_teardown(without_any_nothing_is_said, set_up, remove_root),
	};

	return cmocka_run_group_tests_name("orphans", tests, NULL, NULL);
}
