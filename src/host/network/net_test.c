/* SPDX-License-Identifier: Apache-2.0 */
#include "host/network/netdev.h"
#include "host/network/sockdiag.h"
#include "host/network/sockets.h"
#include "host/process/pressure.h"
#include "host/process/test_tree.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/inet_diag.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <linux/sock_diag.h>
#include <linux/tcp.h>
#include <math.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* The clock that looks ask; next_look() moves it on, so that no test waits. */
static int64_t fake_now_ns = NSEC_PER_SEC;

static int64_t fake_clock(void)
{
	return fake_now_ns;
}

static void next_look(void)
{
	fake_now_ns += NSEC_PER_SEC;
}

/* --- the kernel's answers --- */

#define STATE_ESTABLISHED 1
#define STATE_CLOSE_WAIT 8

struct answer {
	unsigned char data[4096];
	size_t len;
};

static void put(struct answer *answer, const void *data, size_t len)
{
	assert_true(answer->len + len <= sizeof(answer->data));
	memcpy(answer->data + answer->len, data, len);
	answer->len += len;
}

/* One socket whose attribute of type `attr` holds info[info_len]. */
static void put_socket(struct answer *answer, uint32_t seq, uint8_t state, uint32_t inode,
		       uint16_t attr, const struct tcp_info *info, size_t info_len)
{
	static const unsigned char zeros[4];
	struct rtattr head = { .rta_type = attr, .rta_len = (uint16_t)RTA_LENGTH(info_len) };
	struct inet_diag_msg body = { .idiag_family = AF_INET,
				      .idiag_state = state,
				      .id.idiag_cookie = { inode, 7 },
				      .idiag_inode = inode };
	struct nlmsghdr message = {
		.nlmsg_type = SOCK_DIAG_BY_FAMILY,
		.nlmsg_seq = seq,
		.nlmsg_len = (uint32_t)(sizeof(message) + sizeof(body) + RTA_SPACE(info_len)),
	};

	put(answer, &message, sizeof(message));
	put(answer, &body, sizeof(body));
	put(answer, &head, sizeof(head));
	put(answer, info, info_len);
	put(answer, zeros, RTA_SPACE(info_len) - RTA_LENGTH(info_len));
}

static void put_status(struct answer *answer, uint32_t seq, uint16_t type, int32_t status)
{
	struct nlmsghdr message = { .nlmsg_type = type,
				    .nlmsg_seq = seq,
				    .nlmsg_len = sizeof(message) + sizeof(status) };

	put(answer, &message, sizeof(message));
	put(answer, &status, sizeof(status));
}

static const struct tcp_info some_info = { .tcpi_bytes_acked = 90,
					   .tcpi_bytes_received = 50,
					   .tcpi_bytes_sent = 120,
					   .tcpi_bytes_retrans = 20 };

static void retransmissions_and_the_end_of_a_stream_are_no_payload(void **state)
{
	struct answer answer = { .len = 0 };
	sockdiag_sockets out = { 0 };

	(void)state;
	put_socket(&answer, 3, STATE_ESTABLISHED, 11, INET_DIAG_INFO, &some_info,
		   sizeof(some_info));
	put_socket(&answer, 3, STATE_CLOSE_WAIT, 12, INET_DIAG_INFO, &some_info, sizeof(some_info));
	put_status(&answer, 3, NLMSG_DONE, 0);
	assert_int_equal(sockdiag_parse(answer.data, answer.len, 3, &out), 1);
	assert_int_equal(out.cnt, 2);
	assert_int_equal(out.data[0].inode, 11);
	assert_int_equal(out.data[0].cookie, (7ULL << 32) + 11);
	assert_int_equal(out.data[0].tx_bytes, 100);
	assert_int_equal(out.data[0].rx_bytes, 50);
	assert_int_equal(out.data[1].rx_bytes, 49);
	vec_done(&out);
}

static void an_older_kernel_counts_what_was_acknowledged(void **state)
{
	struct answer answer = { .len = 0 };
	sockdiag_sockets out = { 0 };

	(void)state;
	put_socket(&answer, 3, STATE_ESTABLISHED, 11, INET_DIAG_INFO, &some_info,
		   offsetof(struct tcp_info, tcpi_bytes_sent));
	assert_int_equal(sockdiag_parse(answer.data, answer.len, 3, &out), 0);
	assert_int_equal(out.cnt, 1);
	assert_int_equal(out.data[0].tx_bytes, 90);
	vec_done(&out);
}

static void sockets_without_counters_and_other_dumps_are_skipped(void **state)
{
	struct answer answer = { .len = 0 };
	sockdiag_sockets out = { 0 };

	(void)state;
	put_socket(&answer, 3, STATE_ESTABLISHED, 11, INET_DIAG_INFO, &some_info, 40);
	put_socket(&answer, 3, STATE_ESTABLISHED, 12, INET_DIAG_CONG, &some_info, 8);
	put_socket(&answer, 2, STATE_ESTABLISHED, 13, INET_DIAG_INFO, &some_info,
		   sizeof(some_info));
	put_status(&answer, 2, NLMSG_DONE, 0);
	assert_int_equal(sockdiag_parse(answer.data, answer.len, 3, &out), 0);
	assert_int_equal(out.cnt, 0);
	vec_done(&out);
}

static void a_refusal_is_reported_with_its_number(void **state)
{
	struct answer refused = { .len = 0 }, at_end = { .len = 0 };
	sockdiag_sockets out = { 0 };

	(void)state;
	put_status(&refused, 3, NLMSG_ERROR, -EPERM);
	put_status(&at_end, 3, NLMSG_DONE, -ENOENT);
	assert_int_equal(sockdiag_parse(refused.data, refused.len, 3, &out), -EPERM);
	assert_int_equal(sockdiag_parse(at_end.data, at_end.len, 3, &out), -ENOENT);
}

/* Every cut at its exact length, and every byte changed: never read outside, never loop. */
static void any_short_or_changed_answer_is_survived(void **state)
{
	struct answer answer = { .len = 0 };

	(void)state;
	put_socket(&answer, 3, STATE_ESTABLISHED, 11, INET_DIAG_INFO, &some_info,
		   sizeof(some_info));
	put_status(&answer, 3, NLMSG_DONE, 0);
	for (size_t cut = 0; cut < answer.len; cut++) {
		unsigned char *copy = malloc(cut > 0 ? cut : 1);
		sockdiag_sockets out = { 0 };

		assert_non_null(copy);
		memcpy(copy, answer.data, cut);
		assert_true(sockdiag_parse(copy, cut, 3, &out) <= 0);
		vec_done(&out);
		free(copy);
	}
	for (size_t i = 0; i < answer.len; i++) {
		sockdiag_sockets out = { 0 };
		int ret;

		answer.data[i] ^= 0xff;
		ret = sockdiag_parse(answer.data, answer.len, 3, &out);
		assert_true(ret <= 1 && out.cnt <= 1);
		answer.data[i] ^= 0xff;
		vec_done(&out);
	}
}

/* --- real sockets between two processes --- */

/* A process that runs commands of one letter and a number, and answers when done. */
struct order {
	char what; /* 'o'pen, 'w'rite, 'r'ead, 'c'lose */
	size_t bytes;
};

struct peer {
	pid_t pid;
	int fd; /* orders go out, answers come in */
};

static bool transfer(int fd, bool out, size_t bytes)
{
	static char data[65536];

	while (bytes > 0) {
		size_t want = MIN(bytes, sizeof(data));
		ssize_t done = out ? write(fd, data, want) : read(fd, data, want);

		if (done <= 0)
			return false;
		bytes -= (size_t)done;
	}
	return true;
}

static _noreturn_ void obey(int orders, int listener, const struct sockaddr_storage *address,
			    socklen_t len)
{
	struct order order;
	int fd = -1;

	while (read(orders, &order, sizeof(order)) == (ssize_t)sizeof(order)) {
		bool ok = true;

		if (order.what == 'o' && listener >= 0) {
			fd = accept(listener, NULL, NULL);
			ok = fd >= 0;
		} else if (order.what == 'o') {
			fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
			ok = fd >= 0 && connect(fd, (const struct sockaddr *)address, len) == 0;
		} else if (order.what == 'c') {
			ok = close(fd) == 0;
		} else {
			ok = transfer(fd, order.what == 'w', order.bytes);
		}
		if (write(orders, &ok, sizeof(ok)) != (ssize_t)sizeof(ok))
			break;
	}
	_exit(0);
}

static struct peer start_peer(int listener, const struct sockaddr_storage *address, socklen_t len)
{
	struct peer peer;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	peer.pid = fork();
	assert_true(peer.pid >= 0);
	if (peer.pid == 0) {
		(void)close(pair[0]);
		obey(pair[1], listener, address, len);
	}
	(void)close(pair[1]);
	peer.fd = pair[0];
	return peer;
}

static void send_order(const struct peer *peer, char what, size_t bytes)
{
	struct order order = { what, bytes };

	assert_int_equal(write(peer->fd, &order, sizeof(order)), sizeof(order));
}

static void await(const struct peer *peer)
{
	bool ok = false;

	assert_int_equal(read(peer->fd, &ok, sizeof(ok)), sizeof(ok));
	assert_true(ok);
}

static void stop_peer(struct peer *peer)
{
	(void)close(peer->fd);
	assert_int_equal(waitpid(peer->pid, NULL, 0), peer->pid);
}

/* A listener on loopback: its address in *ret. -1 when the family is not there. */
static int listen_on(int family, struct sockaddr_storage *ret, socklen_t *ret_len)
{
	struct sockaddr_in in = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	struct sockaddr_in6 in6 = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT };
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	if (fd < 0)
		return -1;
	memset(ret, 0, sizeof(*ret));
	*ret_len = family == AF_INET ? sizeof(in) : sizeof(in6);
	memcpy(ret, family == AF_INET ? (void *)&in : (void *)&in6, *ret_len);
	if (bind(fd, (struct sockaddr *)ret, *ret_len) != 0 || listen(fd, 4) != 0 ||
	    getsockname(fd, (struct sockaddr *)ret, ret_len) != 0) {
		(void)close(fd);
		return -1;
	}
	return fd;
}

struct pair {
	struct peer server, client;
	struct sockets sockets;
};

static void open_connection(struct pair *pair)
{
	send_order(&pair->client, 'o', 0);
	send_order(&pair->server, 'o', 0);
	await(&pair->client);
	await(&pair->server);
}

static void send_bytes(const struct peer *from, const struct peer *to, size_t bytes)
{
	send_order(from, 'w', bytes);
	send_order(to, 'r', bytes);
	await(from);
	await(to);
}

static int look(struct pair *pair)
{
	next_look();
	return sockets_look(&pair->sockets, fake_now_ns, fake_clock);
}

static bool start_pair(int family, struct pair *pair)
{
	struct sockaddr_storage address;
	socklen_t len;
	int listener = listen_on(family, &address, &len);

	if (listener < 0)
		return false;
	pair->server = start_peer(listener, &address, len);
	pair->client = start_peer(-1, &address, len);
	(void)close(listener);
	sockets_open(&pair->sockets, "");
	assert_int_equal(sockets_follow(&pair->sockets, (uint32_t)pair->server.pid), 0);
	assert_int_equal(sockets_follow(&pair->sockets, (uint32_t)pair->client.pid), 0);
	if (look(pair) == 1)
		return true;
	print_message("no TCP counters here: %s\n", sockets_why(&pair->sockets));
	return false;
}

static void stop_pair(struct pair *pair)
{
	stop_peer(&pair->client);
	stop_peer(&pair->server);
	sockets_close(&pair->sockets);
}

static void assert_counts(struct pair *pair, const struct peer *peer, uint64_t tx, uint64_t rx)
{
	const struct socket_owner *owner = sockets_find(&pair->sockets, (uint32_t)peer->pid);

	assert_non_null(owner);
	assert_int_equal(owner->tx_bytes, tx);
	assert_int_equal(owner->rx_bytes, rx);
}

static void check_counts(int family)
{
	struct pair pair;

	if (!start_pair(family, &pair))
		skip();
	open_connection(&pair);
	assert_int_equal(look(&pair), 1);
	assert_counts(&pair, &pair.client, 0, 0);
	send_bytes(&pair.client, &pair.server, 1234567);
	send_bytes(&pair.server, &pair.client, 89);
	assert_int_equal(look(&pair), 1);
	assert_counts(&pair, &pair.client, 1234567, 89);
	assert_counts(&pair, &pair.server, 89, 1234567);
	assert_true(fabs(pair.sockets.peak_tx_bytes_per_sec - 1234567) < 1);
	stop_pair(&pair);
}

static void both_ends_of_a_connection_have_what_was_sent(void **state)
{
	(void)state;
	check_counts(AF_INET);
}

static void connections_over_ipv6_count_as_well(void **state)
{
	(void)state;
	check_counts(AF_INET6);
}

static void a_closed_socket_keeps_its_bytes_and_a_new_one_adds(void **state)
{
	struct pair pair;

	(void)state;
	if (!start_pair(AF_INET, &pair))
		skip();
	open_connection(&pair);
	send_bytes(&pair.client, &pair.server, 5000);
	assert_int_equal(look(&pair), 1);
	send_order(&pair.client, 'c', 0);
	await(&pair.client);
	assert_int_equal(look(&pair), 1); /* the server knows, and hasn't closed its end */
	assert_counts(&pair, &pair.client, 5000, 0);
	assert_counts(&pair, &pair.server, 0, 5000);
	send_order(&pair.server, 'c', 0);
	await(&pair.server);
	assert_int_equal(look(&pair), 1);
	assert_counts(&pair, &pair.client, 5000, 0);
	assert_counts(&pair, &pair.server, 0, 5000);
	open_connection(&pair);
	send_bytes(&pair.client, &pair.server, 700);
	assert_int_equal(look(&pair), 1);
	assert_counts(&pair, &pair.client, 5700, 0);
	assert_counts(&pair, &pair.server, 0, 5700);
	stop_pair(&pair);
}

/* Between two lists the kernel is asked for the known sockets alone. */
static void known_sockets_are_counted_between_two_lists(void **state)
{
	struct pair pair;

	(void)state;
	if (!start_pair(AF_INET, &pair))
		skip();
	open_connection(&pair);
	assert_int_equal(look(&pair), 1);
	for (uint64_t i = 1; i <= 3; i++) {
		send_bytes(&pair.client, &pair.server, 1000);
		fake_now_ns += SOCKETS_LOOK_NS;
		assert_true(fake_now_ns < pair.sockets.list_due_ns);
		assert_int_equal(sockets_look(&pair.sockets, fake_now_ns, fake_clock), 1);
		assert_counts(&pair, &pair.client, 1000 * i, 0);
		assert_counts(&pair, &pair.server, 0, 1000 * i);
	}
	send_order(&pair.client, 'c', 0);
	send_order(&pair.server, 'c', 0);
	await(&pair.client);
	await(&pair.server);
	fake_now_ns += SOCKETS_LOOK_NS;
	assert_int_equal(sockets_look(&pair.sockets, fake_now_ns, fake_clock), 1);
	assert_counts(&pair, &pair.client, 3000, 0);
	stop_pair(&pair);
}

static void bytes_sent_before_a_process_is_followed_do_not_count(void **state)
{
	struct pair pair;

	(void)state;
	if (!start_pair(AF_INET, &pair))
		skip();
	sockets_close(&pair.sockets);
	sockets_open(&pair.sockets, "");
	open_connection(&pair);
	send_bytes(&pair.client, &pair.server, 5000);
	assert_int_equal(look(&pair), 1); /* two strangers */
	assert_int_equal(sockets_follow(&pair.sockets, (uint32_t)pair.client.pid), 0);
	assert_int_equal(look(&pair), 1);
	assert_counts(&pair, &pair.client, 0, 0);
	send_bytes(&pair.client, &pair.server, 30);
	assert_int_equal(look(&pair), 1);
	assert_counts(&pair, &pair.client, 30, 0);
	assert_null(sockets_find(&pair.sockets, (uint32_t)pair.server.pid));
	stop_pair(&pair);
}

static void no_look_comes_before_its_time(void **state)
{
	struct pair pair;

	(void)state;
	if (!start_pair(AF_INET, &pair))
		skip();
	assert_int_equal(sockets_look(&pair.sockets, fake_now_ns, fake_clock), 0);
	stop_pair(&pair);
}

static void a_kernel_without_an_answer_is_reported_once(void **state)
{
	struct sockets sockets;

	(void)state;
	sockets_open(&sockets, "");
	if (sockets.diag.fd >= 0)
		(void)close(sockets.diag.fd);
	sockets.diag.fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	sockets.error = 0;
	next_look();
	assert_true(sockets_look(&sockets, fake_now_ns, fake_clock) < 0);
	assert_true(sockets_why(&sockets)[0] != '\0');
	sockets_close(&sockets);
	sockets_close(&sockets);
}

/* --- fixture trees --- */

#define PORT "sys/class/infiniband/mlx5_0/ports/1/"
#define ETH "sys/class/net/eth0/"

static void put_devices(const char *root, const char *words, const char *bytes)
{
	write_file(root, PORT "rate", "400 Gb/sec (4X NDR)\n");
	write_file(root, PORT "counters/port_xmit_data", words);
	write_file(root, PORT "counters/port_rcv_data", words);
	write_file(root, ETH "device/vendor", "0x15b3\n");
	write_file(root, ETH "speed", "25000\n");
	write_file(root, ETH "statistics/tx_bytes", bytes);
	write_file(root, ETH "statistics/rx_bytes", bytes);
}

static void cards_are_found_with_rate_and_bytes(void **state)
{
	struct sidecar out = { 0 };
	struct netdevs devs;

	put_devices(*state, "1000\n", "77\n");
	assert_int_equal(netdevs_open(&devs, *state), 0);
	assert_int_equal(devs.devices.cnt, 2);
	assert_string_equal(devs.devices.data[0].nic.name, "mlx5_0/1");
	assert_int_equal(devs.devices.data[0].nic.flags, SIDECAR_NIC_RDMA);
	assert_true(fabs(devs.devices.data[0].nic.bytes_per_sec - 50e9) < 1);
	assert_string_equal(devs.devices.data[1].nic.name, "eth0");
	assert_true(fabs(devs.devices.data[1].nic.bytes_per_sec - 3.125e9) < 1);
	put_devices(*state, "2000\n", "99\n");
	assert_int_equal(netdevs_look(&devs, fake_clock), 1);
	assert_int_equal(netdevs_look(&devs, fake_clock), 0);
	assert_int_equal(netdevs_record(&devs, &out), 0);
	assert_int_equal(out.nic_samples.cnt, 2);
	assert_int_equal(out.nic_samples.data[0].tx_bytes, 8000);
	assert_int_equal(out.nic_samples.data[1].tx_bytes, 99);
	assert_int_equal(out.nic_samples.data[1].nic, 1);
	netdevs_close(&devs);
	sidecar_done(&out);
}

/* Of Amazon: no counters in words, bytes among those of the hardware. */
static void efa_counts_bytes_elsewhere(void **state)
{
	struct netdevs devs;

	write_file(*state, "sys/class/infiniband/rdmap0/ports/1/rate", "100 Gb/sec (4X EDR)\n");
	write_file(*state, "sys/class/infiniband/rdmap0/ports/1/hw_counters/tx_bytes", "123\n");
	write_file(*state, "sys/class/infiniband/rdmap0/ports/1/hw_counters/rx_bytes", "45\n");
	assert_int_equal(netdevs_open(&devs, *state), 0);
	assert_int_equal(devs.devices.cnt, 1);
	assert_string_equal(devs.devices.data[0].nic.name, "rdmap0/1");
	assert_int_equal(devs.devices.data[0].tx_bytes, 123);
	assert_int_equal(devs.devices.data[0].rx_bytes, 45);
	netdevs_close(&devs);
}

static void virtual_and_broken_devices_are_left_out(void **state)
{
	struct netdevs devs;

	write_file(*state, "sys/class/net/lo/statistics/tx_bytes", "5\n");
	write_file(*state, "sys/class/net/lo/statistics/rx_bytes", "5\n");
	write_file(*state, "sys/class/net/eth1/device/vendor", "x\n");
	write_file(*state, "sys/class/net/eth1/statistics/tx_bytes", "no number\n");
	write_file(*state, "sys/class/net/eth1/statistics/rx_bytes", "5\n");
	assert_int_equal(netdevs_open(&devs, *state), 0);
	assert_int_equal(devs.devices.cnt, 0);
	assert_int_equal(netdevs_look(&devs, fake_clock), 0);
	netdevs_close(&devs);
	assert_int_equal(netdevs_open(&devs, "/nonexistent"), 0);
	netdevs_close(&devs);
}

static void only_rates_that_mean_something_are_taken(void **state)
{
	(void)state;
	assert_true(fabs(netdev_parse_rate("2.5 Gb/sec (1X SDR)") - 312.5e6) < 1);
	assert_true(netdev_parse_rate("400 Tb/sec") == 0);
	assert_true(netdev_parse_rate("inf Gb/sec") == 0);
	assert_true(netdev_parse_rate("-1 Gb/sec") == 0);
	assert_true(netdev_parse_rate("") == 0);
	assert_true(fabs(netdev_parse_speed("10000\n") - 1.25e9) < 1);
	assert_true(netdev_parse_speed("-1\n") == 0);
	assert_true(netdev_parse_speed("4294967295\n") == 0);
	assert_true(netdev_parse_speed("") == 0);
}

static void pressure_is_the_total_of_the_first_line(void **state)
{
	struct sidecar_pressure now;
	struct pressure pressure;

	write_file(*state, "proc/pressure/cpu",
		   "some avg10=1.49 avg60=0.39 avg300=0.45 total=4583\n"
		   "full avg10=0.00 avg60=0.00 avg300=0.00 total=9\n");
	write_file(*state, "proc/pressure/io", "garbage\n");
	pressure_open(&pressure, *state);
	assert_int_equal(pressure_look(&pressure, NSEC_PER_SEC, &now), 1);
	assert_int_equal(now.some_us[0], 4583);
	assert_true(now.some_us[1] == SIDECAR_PRESSURE_UNKNOWN);
	assert_true(now.some_us[2] == SIDECAR_PRESSURE_UNKNOWN);
	assert_int_equal(pressure_look(&pressure, NSEC_PER_SEC + 1, &now), 0);
	pressure_close(&pressure);
	pressure_close(&pressure);
}

static void a_kernel_without_pressure_has_no_values(void **state)
{
	struct sidecar_pressure now;
	struct pressure pressure;

	(void)state;
	pressure_open(&pressure, "/nonexistent");
	assert_int_equal(pressure_look(&pressure, NSEC_PER_SEC, &now), 0);
	pressure_close(&pressure);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(retransmissions_and_the_end_of_a_stream_are_no_payload),
		cmocka_unit_test(an_older_kernel_counts_what_was_acknowledged),
		cmocka_unit_test(sockets_without_counters_and_other_dumps_are_skipped),
		cmocka_unit_test(a_refusal_is_reported_with_its_number),
		cmocka_unit_test(any_short_or_changed_answer_is_survived),
		cmocka_unit_test(both_ends_of_a_connection_have_what_was_sent),
		cmocka_unit_test(connections_over_ipv6_count_as_well),
		cmocka_unit_test(a_closed_socket_keeps_its_bytes_and_a_new_one_adds),
		cmocka_unit_test(known_sockets_are_counted_between_two_lists),
		cmocka_unit_test(bytes_sent_before_a_process_is_followed_do_not_count),
		cmocka_unit_test(no_look_comes_before_its_time),
		cmocka_unit_test(a_kernel_without_an_answer_is_reported_once),
		cmocka_unit_test_setup_teardown(cards_are_found_with_rate_and_bytes, make_root,
						remove_root),
		cmocka_unit_test_setup_teardown(efa_counts_bytes_elsewhere, make_root, remove_root),
		cmocka_unit_test_setup_teardown(virtual_and_broken_devices_are_left_out, make_root,
						remove_root),
		cmocka_unit_test(only_rates_that_mean_something_are_taken),
		cmocka_unit_test_setup_teardown(pressure_is_the_total_of_the_first_line, make_root,
						remove_root),
		cmocka_unit_test(a_kernel_without_pressure_has_no_values),
	};

	(void)signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
