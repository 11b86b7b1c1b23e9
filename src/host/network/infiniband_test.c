/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/infiniband.h"

#include "host/process/test_tree.h"

#include <stdio.h>

#define PORT "sys/class/infiniband/mlx5_0/ports/1/"

static int64_t fake_now_ns = NSEC_PER_SEC;
static int64_t read_cost_ns; /* of one look */

static int64_t fake_clock(void)
{
	fake_now_ns += read_cost_ns;
	return fake_now_ns;
}

static int make_host(void **state)
{
	read_cost_ns = 0;
	return make_root(state);
}

static void put_port(const char *root)
{
	write_file(root, PORT "counters/port_xmit_wait", "1000\n");
	write_file(root, PORT "counters/link_downed", "3\n");
	write_file(root, PORT "hw_counters/lifespan", "10\n");
	write_file(root, PORT "hw_counters/out_of_sequence", "50\n");
	write_file(root, PORT "hw_counters/np_cnp_sent", "7\n");
}

static void add_card(struct sidecar *side, const char *name)
{
	struct sidecar_nic nic = { .flags = SIDECAR_NIC_RDMA };

	(void)snprintf(nic.name, sizeof(nic.name), "%s", name);
	assert_int_equal(vec_push(&side->nics, nic), 0);
}

static void a_counter_that_grew_is_recorded_with_its_port(void **state)
{
	struct sidecar side = { 0 };
	struct ibports ib;

	put_port(*state);
	assert_int_equal(ibports_open(&ib, *state), 0);
	assert_int_equal(ib.ports.cnt, 1);
	assert_string_equal(ib.ports.data[0].name, "mlx5_0/1");
	assert_int_equal(ib.ports.data[0].counter_cnt, 4);
	write_file(*state, PORT "counters/port_xmit_wait", "1900\n");
	write_file(*state, PORT "hw_counters/out_of_sequence", "51\n");
	ibports_look_now(&ib);
	add_card(&side, "eth0");
	add_card(&side, "mlx5_0/1");
	assert_int_equal(ibports_record(&ib, &side), 0);
	assert_int_equal(side.nic_counters.cnt, 2);
	assert_int_equal(side.nic_counters.data[0].nic, 1);
	assert_int_equal(side.nic_counters.data[0].counter, SIDECAR_NIC_XMIT_WAIT);
	assert_int_equal(side.nic_counters.data[0].grown, 900);
	assert_int_equal(side.nic_counters.data[1].counter, SIDECAR_NIC_OUT_OF_SEQUENCE);
	assert_int_equal(side.nic_counters.data[1].grown, 1);
	ibports_close(&ib);
	sidecar_done(&side);
}

static void a_port_that_is_no_card_of_the_sidecar_is_left_out(void **state)
{
	struct sidecar side = { 0 };
	struct ibports ib;

	put_port(*state);
	assert_int_equal(ibports_open(&ib, *state), 0);
	write_file(*state, PORT "counters/link_downed", "4\n");
	ibports_look_now(&ib);
	add_card(&side, "mlx5_0/2");
	assert_int_equal(ibports_record(&ib, &side), 0);
	assert_int_equal(side.nic_counters.cnt, 0);
	ibports_close(&ib);
	sidecar_done(&side);
}

static void looks_wait_for_the_copies_to_be_renewed_and_for_their_own_cost(void **state)
{
	struct ibports ib;

	put_port(*state);
	write_file(*state, PORT "hw_counters/lifespan", "300\n");
	assert_int_equal(ibports_open(&ib, *state), 0);
	assert_int_equal(ib.ports.data[0].lifespan_ns, 300 * NSEC_PER_MSEC);
	assert_int_equal(ibports_look(&ib, fake_clock), 1);
	fake_now_ns += 299 * NSEC_PER_MSEC;
	assert_int_equal(ibports_look(&ib, fake_clock), 0);
	fake_now_ns += NSEC_PER_MSEC;
	read_cost_ns = NSEC_PER_MSEC;
	assert_int_equal(ibports_look(&ib, fake_clock), 1);
	read_cost_ns = 0;
	fake_now_ns += 900 * NSEC_PER_MSEC;
	assert_int_equal(ibports_look(&ib, fake_clock), 0);
	fake_now_ns += 200 * NSEC_PER_MSEC;
	assert_int_equal(ibports_look(&ib, fake_clock), 1);
	ibports_close(&ib);
}

static void lifespans_that_make_no_sense_are_the_kernels_own(void **state)
{
	static const char *const texts[] = { "", "soon\n", "99999999999\n", "-1\n" };

	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		struct ibports ib;

		put_port(*state);
		write_file(*state, PORT "hw_counters/lifespan", texts[i]);
		assert_int_equal(ibports_open(&ib, *state), 0);
		assert_int_equal(ib.ports.data[0].lifespan_ns, IB_LIFESPAN_NS);
		ibports_close(&ib);
	}
}

static void growth_before_a_reset_counts_too(void **state)
{
	static const char *const texts[] = { "1900\n", "5\n", "no number\n", "8\n", "0\n", "2\n" };
	struct sidecar side = { 0 };
	struct ibports ib;

	put_port(*state);
	assert_int_equal(ibports_open(&ib, *state), 0);
	for (size_t i = 0; i < ARRAY_SIZE(texts); i++) {
		write_file(*state, PORT "counters/port_xmit_wait", texts[i]);
		ibports_look_now(&ib);
	}
	add_card(&side, "mlx5_0/1");
	assert_int_equal(ibports_record(&ib, &side), 0);
	assert_int_equal(side.nic_counters.cnt, 1);
	assert_int_equal(side.nic_counters.data[0].grown, 900 + 8 + 2);
	ibports_close(&ib);
	sidecar_done(&side);
}

static void a_host_without_rdma_has_no_ports(void **state)
{
	struct ibports ib;

	write_file(*state, "sys/class/infiniband/rxe0/node_type", "1: CA\n");
	write_file(*state, "sys/class/infiniband/efa0/ports/1/state", "4: ACTIVE\n");
	assert_int_equal(ibports_open(&ib, *state), 0);
	assert_int_equal(ib.ports.cnt, 0);
	assert_int_equal(ibports_look(&ib, fake_clock), 0);
	ibports_close(&ib);
	assert_int_equal(ibports_open(&ib, "/nonexistent"), 0);
	ibports_close(&ib);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, make_host, remove_root)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_counter_that_grew_is_recorded_with_its_port),
		TEST(a_port_that_is_no_card_of_the_sidecar_is_left_out),
		TEST(looks_wait_for_the_copies_to_be_renewed_and_for_their_own_cost),
		TEST(lifespans_that_make_no_sense_are_the_kernels_own),
		TEST(growth_before_a_reset_counts_too),
		TEST(a_host_without_rdma_has_no_ports),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
