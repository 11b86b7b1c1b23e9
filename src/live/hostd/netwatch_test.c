/* SPDX-License-Identifier: Apache-2.0 */
#include "live/hostd/netwatch.h"

#include "host/process/test_tree.h"

static int64_t fake_now_ns = NSEC_PER_SEC;

static int64_t fake_clock(void)
{
	return fake_now_ns;
}

/* A host with one card and without a file of I/O pressure. */
static int make_host(void **state)
{
	const char *root;

	if (make_root(state) < 0)
		return -1;
	root = *state;
	write_file(root, "sys/class/net/eth0/device/vendor", "x\n");
	write_file(root, "sys/class/net/eth0/speed", "1000\n");
	write_file(root, "sys/class/net/eth0/statistics/tx_bytes", "5\n");
	write_file(root, "sys/class/net/eth0/statistics/rx_bytes", "6\n");
	write_file(root, "proc/pressure/cpu", "some avg10=0.00 avg60=0.00 avg300=0.00 total=7\n");
	return 0;
}

static void each_worker_gets_what_its_host_shows(void **state)
{
	struct sidecar sides[2] = { { .networks = { 0 } }, { .networks = { 0 } } };
	const struct netwatch_worker workers[2] = { { 70, &sides[0] }, { 71, &sides[1] } };
	struct netwatch watch = { .open = false };

	netwatch_open(&watch, *state);
	for (int i = 0; i < 20; i++) {
		fake_now_ns += 10 * NSEC_PER_MSEC;
		assert_int_equal(netwatch_look(&watch, workers, 2, fake_clock), 0);
	}
	for (int i = 0; i < 2; i++) {
		bool tcp = watch.sockets.error == 0;

		assert_int_equal(netwatch_finish(&watch, workers[i].pid, &sides[i]), 0);
		assert_int_equal(sides[i].nic_samples.cnt, 20);
		assert_int_equal(sides[i].pressures.cnt, 2);
		assert_int_equal(sides[i].pressures.data[0].some_us[0], 7);
		assert_int_equal(sides[i].nics.cnt, 1);
		assert_string_equal(sides[i].nics.data[0].name, "eth0");
		assert_int_equal(sides[i].networks.cnt, 1);
		/* The interval depends on the samples' real cost, so their number may vary. */
		assert_true(tcp == (sides[i].socket_samples.cnt > 0));
		assert_true(tcp == (sides[i].networks.data[0].why[0] == '\0'));
		sidecar_done(&sides[i]);
	}
	netwatch_close(&watch);
	netwatch_close(&watch);
}

static void errors_of_a_port_are_added_at_the_end(void **state)
{
	struct sidecar side = { .networks = { 0 } };
	const struct netwatch_worker worker = { 70, &side };
	struct netwatch watch = { .open = false };

#define PORT "sys/class/infiniband/mlx5_0/ports/1/"
	write_file(*state, PORT "counters/port_xmit_data", "1\n");
	write_file(*state, PORT "counters/port_rcv_data", "1\n");
	write_file(*state, PORT "counters/port_xmit_wait", "1\n");
	netwatch_open(&watch, *state);
	fake_now_ns += NSEC_PER_SEC;
	assert_int_equal(netwatch_look(&watch, &worker, 1, fake_clock), 0);
	write_file(*state, PORT "counters/port_xmit_wait", "70\n");
	assert_int_equal(netwatch_finish(&watch, 70, &side), 0);
	assert_int_equal(side.nic_counters.cnt, 1);
	assert_int_equal(side.nic_counters.data[0].counter, SIDECAR_NIC_XMIT_WAIT);
	assert_int_equal(side.nic_counters.data[0].grown, 69);
	assert_string_equal(side.nics.data[side.nic_counters.data[0].nic].name, "mlx5_0/1");
	sidecar_done(&side);
	netwatch_close(&watch);
}

static void a_closed_watch_does_nothing(void **state)
{
	struct sidecar side = { .networks = { 0 } };
	const struct netwatch_worker worker = { 70, &side };
	struct netwatch watch = { .open = false };

	(void)state;
	assert_int_equal(netwatch_look(&watch, &worker, 1, fake_clock), 0);
	assert_int_equal(netwatch_finish(&watch, 70, &side), 0);
	assert_int_equal(side.networks.cnt, 0);
	netwatch_close(&watch);
}

static void without_a_worker_in_a_window_nothing_is_sampled(void **state)
{
	struct netwatch watch = { .open = false };

	netwatch_open(&watch, *state);
	assert_int_equal(netwatch_look(&watch, NULL, 0, fake_clock), 0);
	assert_int_equal(watch.netdevs.look_ns, 0);
	netwatch_close(&watch);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(each_worker_gets_what_its_host_shows, make_host,
						remove_root),
		cmocka_unit_test_setup_teardown(errors_of_a_port_are_added_at_the_end, make_host,
						remove_root),
		cmocka_unit_test(a_closed_watch_does_nothing),
		cmocka_unit_test_setup_teardown(without_a_worker_in_a_window_nothing_is_sampled,
						make_host, remove_root),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
