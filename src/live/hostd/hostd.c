/* SPDX-License-Identifier: Apache-2.0 */
#include "base/clock.h"
#include "base/log.h"
#include "base/str.h"
#include "live/hostd/blocked_stacks.h"
#include "live/hostd/exitwatch.h"
#include "live/hostd/hostd_parts.h"
#include "live/hostd/record.h"
#include "live/link/wire_request.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define READERS 16 /* of stacks, at once */
#define DRAIN_MS 100
#define GAP_NS (3 * NSEC_PER_SEC)
#define BACKLOG 512

/* Workers and clients */

void hostd_publish(struct hostd *hostd, const char *subject, const void *data, size_t len)
{
	(void)bus_pub(hostd->setup.bus, subject, data, len); /* a full bus counts it */
}

void hostd_publish_state(struct client *client)
{
	struct wire_state state;

	worker_state(&client->worker, clock_mono_ns(), &state);
	metrics_worker_state(client->worker.metrics, &state, clock_wall_ns() - clock_mono_ns());
	hostd_publish(client->hostd, SUBJECT_STATE, &state, sizeof(state));
}

static void free_client(struct client *client)
{
	if (client->is_worker)
		worker_done(&client->worker);
	(void)close(client->fd);
	free(client);
}

static void client_closed(uv_handle_t *handle)
{
	struct client *client = handle->data;
	struct hostd *hostd = client->hostd;

	free_client(client);
	hostd_closed_one(hostd);
}

static void client_close(struct client *client)
{
	struct hostd *hostd = client->hostd;

	if (client->closing)
		return;
	client->closing = true;
	for (size_t i = 0; i < hostd->clients.cnt; i++) {
		if (hostd->clients.data[i] == client) {
			hostd->clients.data[i] = hostd->clients.data[--hostd->clients.cnt];
			break;
		}
	}
	uv_close((uv_handle_t *)&client->poll, client_closed);
}

static int save_record(const struct client *client)
{
	struct err err = { "" };
	int ret = record_save(&client->worker, client->hostd->setup.options->out_dir, &err);

	if (ret < 0)
		log_line(LOG_WARNING, "event=recorder-not-saved worker=%u why=\"%s\"",
			 client->worker.id, err.text);
	return ret;
}

/* Drains the last marks before the block is unmapped. */
static void client_gone(struct client *client)
{
	if (client->is_worker && !client->hostd->closing) {
		hostd_take_death(client);
		(void)save_record(client);
		worker_drain(&client->worker, clock_mono_ns());
		client->worker.gone = true;
		exitwatch_detach(client);
		owncosts_end_worker(&client->hostd->own, &client->worker, clock_mono_ns());
		hostd_publish_state(client);
	}
	client_close(client);
}

int hostd_reply(struct client *client, const struct message *message)
{
	struct message filled = *message;

	filled.magic = MESSAGE_MAGIC;
	filled.version = MESSAGE_VERSION;
	filled.type = MSG_REPLY;
	return send(client->fd, &filled, sizeof(filled), MSG_DONTWAIT | MSG_NOSIGNAL) < 0 ? -errno
											  : 0;
}

/* The smallest rank that no connected worker has: for jobs whose environment has no rank. */
static int32_t free_rank(const struct hostd *hostd)
{
	for (int32_t rank = 0;; rank++) {
		bool used = false;

		vec_foreach(client, &hostd->clients)
			used |= (*client)->is_worker && !(*client)->worker.gone &&
				(*client)->worker.rank == rank;
		if (!used)
			return rank;
	}
}

static void take_hello(struct client *client, const struct message *message, int fd)
{
	struct hostd *hostd = client->hostd;
	struct err err = { "no block attached" };

	if (client->is_worker || fd < 0 ||
	    worker_init(&client->worker, message, client->pid, fd, hostd->setup.options, &err) <
		    0) {
		hostd->refused++;
		log_line(LOG_WARNING, "event=worker-refused pid=%u why=\"%s\"", client->pid,
			 err.text);
		client_gone(client);
		return;
	}
	client->worker.numbered = client->worker.rank < 0;
	if (client->worker.numbered)
		client->worker.rank = free_rank(hostd);
	if (hostd->setup.metrics != NULL) /* out of memory: /metrics lacks this worker */
		client->worker.metrics = metrics_worker_new(
			hostd->setup.metrics, client->worker.rank, client->worker.local_rank);
	client->worker.id = (uint32_t)client->id;
	client->worker.since_ns = clock_mono_ns();
	ownthreads_open(&client->worker.own, "", client->worker.pid, OWN_THREAD_CNT);
	client->is_worker = true;
	exitwatch_begin(client);
	block_back_off(&client->worker.block, hostd->overhead.backoff);
	if (hostd->suspended)
		worker_suspend(&client->worker, hostd->window_stops);
	hostd_publish_state(client);
}

/* Requests of clients */

static void publish_slices_cost(struct client *client)
{
	struct wire_slices_cost slices;

	if (worker_overhead_cost(&client->worker, &slices))
		hostd_publish(client->hostd, SUBJECT_SLICES_COST, &slices, sizeof(slices));
}

int hostd_save_records(struct hostd *hostd)
{
	int ret = 0;

	vec_foreach(client, &hostd->clients) {
		int error = (*client)->is_worker ? save_record(*client) : 0;

		ret = error < 0 ? error : ret;
	}
	return ret;
}

/* Where this host leads others, their recorders are fetched first: leader_mind_collect() answers. */
static void answer_flight(struct client *asker)
{
	struct hostd *hostd = asker->hostd;
	const struct wire_collect collect = { .client = asker->id };
	struct message answer = { .status = hostd_save_records(hostd) < 0 ? EIO : 0 };

	if (hostd->about.others.states.cnt > 0) {
		hostd_publish(hostd, SUBJECT_COLLECT, &collect, sizeof(collect));
		return;
	}
	(void)snprintf(answer.text, sizeof(answer.text), "%.480s/" RECORD_FOLDER,
		       hostd->setup.options->out_dir);
	(void)hostd_reply(asker, &answer);
}

static void take_request(struct client *client, const struct message *message,
			 enum wire_ask_kind kind)
{
	struct wire_ask ask = { .client = client->id,
				.window_ns = message->window_ns,
				.kind = kind,
				.pid = client->pid };

	wire_ask_say_why(&ask, message->text);
	hostd_publish(client->hostd, SUBJECT_ASK, &ask, sizeof(ask));
}

/* Returns false for a type that workers don't send. */
static bool take_worker_message(struct client *client, const struct message *message)
{
	if (message->type == MSG_PROFILE_BEGUN)
		hostd_take_begun(client, message);
	else if (message->type == MSG_PROFILE_DONE)
		hostd_take_done(client, message);
	else if (message->type == MSG_PROFILE_MISSED)
		hostd_take_missed(client, message);
	else if (message->type == MSG_BYE)
		worker_bye(&client->worker, message);
	else
		return false;
	return true;
}

/* Only hostd of the fleet, or this user, can connect: add_client(). */
static void take_relay(struct client *client, const struct message *message, int fd)
{
	const struct hostd_setup *setup = &client->hostd->setup;

	if (setup->take_relay == NULL || fd < 0 || setup->options->fleet == NULL ||
	    strcmp(message->text, setup->options->fleet->key) != 0)
		client->hostd->refused++;
	else
		setup->take_relay(setup->relay_arg, fd);
}

static void dispatch(struct client *client, const struct message *message, int fd)
{
	if (message->type == MSG_HELLO) {
		take_hello(client, message, fd);
	} else if (message->type == MSG_STATUS) {
		hostd_answer_status(client, message->window_ns);
	} else if (message->type == MSG_JOB) {
		hostd_answer_job(client);
	} else if (message->type == MSG_FLIGHT) {
		answer_flight(client);
	} else if (message->type == MSG_REQUEST) {
		take_request(client, message, ASK_PROFILE);
	} else if (message->type == MSG_ACCEPT) {
		take_request(client, message, ASK_ACCEPT);
	} else if (message->type == MSG_RELAY) {
		take_relay(client, message, fd);
	} else if (!client->is_worker || !take_worker_message(client, message)) {
		client->hostd->refused++;
	}
}

/* The first descriptor of the control data, -1 when there is none; further ones are closed. */
static int take_fd(struct msghdr *header)
{
	int ret = -1;

	for (struct cmsghdr *c = CMSG_FIRSTHDR(header); c != NULL; c = CMSG_NXTHDR(header, c)) {
		size_t cnt;

		if (c->cmsg_level != SOL_SOCKET || c->cmsg_type != SCM_RIGHTS)
			continue;
		cnt = (c->cmsg_len - CMSG_LEN(0)) / sizeof(int);
		for (size_t i = 0; i < cnt; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(c) + i * sizeof(fd), sizeof(fd));
			if (ret < 0)
				ret = fd;
			else
				(void)close(fd);
		}
	}
	return ret;
}

static bool message_valid(const struct message *message, ssize_t len)
{
	return len == (ssize_t)sizeof(*message) && message->magic == MESSAGE_MAGIC &&
	       message->version == MESSAGE_VERSION;
}

/* Returns false when there is nothing more to read now. */
static bool read_one(struct client *client)
{
	struct message message;
	_Alignas(struct cmsghdr) char control[CMSG_SPACE(4 * sizeof(int))];
	struct iovec iov = { &message, sizeof(message) };
	struct msghdr header = { .msg_iov = &iov,
				 .msg_iovlen = 1,
				 .msg_control = control,
				 .msg_controllen = sizeof(control) };
	ssize_t len = recvmsg(client->fd, &header, MSG_DONTWAIT | MSG_CMSG_CLOEXEC);
	int fd;

	if (len < 0 && (errno == EAGAIN || errno == EINTR))
		return false;
	if (len <= 0) {
		client_gone(client);
		return false;
	}
	fd = take_fd(&header);
	message.text[MESSAGE_TEXT - 1] = '\0';
	if (message_valid(&message, (header.msg_flags & MSG_TRUNC) == 0 ? len : -1))
		dispatch(client, &message, fd);
	else
		client->hostd->refused++;
	if (fd >= 0)
		(void)close(fd);
	return !client->closing;
}

static void client_readable(uv_poll_t *poll, int status, int events)
{
	struct client *client = poll->data;

	(void)events;
	if (status < 0) {
		client_gone(client);
		return;
	}
	/* A few at a time, so that one busy client cannot delay the others. */
	for (int i = 0; i < 16 && read_one(client); i++)
		;
}

/* Children of the process may hold its end of the socket: no end of file comes then. */
void hostd_take_end(struct client *client)
{
	while (read_one(client))
		;
	if (!client->closing)
		client_gone(client);
}

/* Connections */

static int peer_pid(int fd, uint32_t *ret)
{
	struct ucred peer;
	socklen_t len = sizeof(peer);

	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &len) != 0)
		return -errno;
	if (peer.uid != geteuid() && peer.uid != 0)
		return -EPERM;
	*ret = (uint32_t)peer.pid;
	return 0;
}

static int add_client(struct hostd *hostd, int fd)
{
	struct client *client = calloc(1, sizeof(*client));
	int ret;

	if (client == NULL)
		return -ENOMEM;
	client->hostd = hostd;
	client->fd = fd;
	ret = peer_pid(fd, &client->pid);
	if (ret == 0 && hostd->clients.cnt >= HOSTD_CLIENT_MAX)
		ret = -EMFILE;
	if (ret == 0)
		ret = vec_push(&hostd->clients, client);
	if (ret < 0) {
		free(client);
		return ret;
	}
	client->id = ++hostd->next_client;
	client->poll.data = client;
	(void)uv_poll_init(hostd->setup.loop, &client->poll, fd);
	hostd->open_handles++;
	(void)uv_poll_start(&client->poll, UV_READABLE | UV_DISCONNECT, client_readable);
	return 0;
}

static void listener_readable(uv_poll_t *poll, int status, int events)
{
	struct hostd *hostd = poll->data;

	(void)events;
	for (int i = 0; i < 64 && status == 0; i++) {
		int fd = accept4(hostd->listen_fd, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);

		if (fd < 0)
			return;
		if (add_client(hostd, fd) < 0) {
			hostd->refused++;
			(void)close(fd);
		}
	}
}

/*
 * After a suspend of the machine, or a stop of the daemon together with the job, the silence
 * of that time is no evidence against the workers or the hub.
 */
static void forget_gap(struct hostd *hostd)
{
	int64_t now_ns = clock_mono_ns(), gap_ns = now_ns - hostd->drained_ns;

	if (hostd->drained_ns != 0 && gap_ns > GAP_NS) {
		hostd_forget_silence(hostd);
		hostd->hub_heard_ns = now_ns;
	}
	hostd->drained_ns = now_ns;
}

static void tick_metrics(struct hostd *hostd, size_t worker_cnt)
{
	if (hostd->setup.metrics == NULL)
		return;
	metrics_host_tick(hostd->setup.metrics, worker_cnt, clock_mono_ns());
	metrics_host_refused(hostd->setup.metrics, hostd->refused);
}

static void publish_own(struct hostd *hostd, int64_t now_ns)
{
	if (!owncosts_look(&hostd->own, now_ns))
		return;
	vec_foreach(client, &hostd->clients) {
		if ((*client)->is_worker && !(*client)->worker.gone)
			owncosts_add_worker(&hostd->own, &(*client)->worker, now_ns);
	}
	hostd_publish(hostd, SUBJECT_OWN, &hostd->own.cpu, sizeof(hostd->own.cpu));
	if (hostd->setup.metrics != NULL)
		metrics_host_own(hostd->setup.metrics, &hostd->own.cpu);
}

static void drain_tick(uv_timer_t *timer)
{
	struct hostd *hostd = timer->data;
	size_t worker_cnt = 0;

	forget_gap(hostd);
	hostd_mind_hub(hostd, clock_mono_ns());
	vec_foreach(client, &hostd->clients)
		worker_cnt += (*client)->is_worker;
	tick_metrics(hostd, worker_cnt);
	hostd_report_gpus(hostd, clock_mono_ns());
	hostd_report_gpu_faults(hostd);
	vec_foreach(client, &hostd->clients) {
		if (!(*client)->is_worker)
			continue;
		worker_drain(&(*client)->worker, clock_mono_ns());
		publish_slices_cost(*client);
		hostd_publish_state(*client);
	}
	blocked_stacks_publish(hostd);
	publish_own(hostd, clock_mono_ns());
}

static int bind_socket(const char *path, struct err *err)
{
	struct sockaddr_un addr = { .sun_family = AF_UNIX };
	int fd;

	if (strlen(path) >= sizeof(addr.sun_path))
		return err_set(err, ENAMETOOLONG, "%s: a socket path may have %zu bytes", path,
			       sizeof(addr.sun_path) - 1);
	memcpy(addr.sun_path, path, strlen(path));
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return err_set(err, errno, "%s: %s", path, strerror(errno));
	(void)unlink(path);
	if (bind(fd, (const struct sockaddr *)&addr, sizeof(addr)) != 0 || chmod(path, 0600) != 0 ||
	    listen(fd, BACKLOG) != 0) {
		int ret = err_set(err, errno, "%s: cannot listen: %s", path, strerror(errno));

		(void)close(fd);
		return ret;
	}
	return fd;
}

static void free_hostd(struct hostd *hostd)
{
	for (size_t i = 0; i < ARRAY_SIZE(hostd->subs); i++)
		hostd->subs[i] = bus_unsub(hostd->setup.bus, hostd->subs[i]);
	otherhosts_done(&hostd->about.others);
	pool_close(hostd->pool);
	stallhunt_close(hostd->stallhunt);
	pool_close(hostd->hangstacks.pool);
	vec_foreach(reading, &hostd->hangstacks.readings)
		free(*reading);
	vec_done(&hostd->hangstacks.readings);
	contenders_close(&hostd->contenders);
	netwatch_close(&hostd->netwatch);
	gpuwatch_stop(hostd->gpuwatch);
	vec_foreach(summary, &hostd->summaries)
		hostd_free_summary(*summary);
	vec_done(&hostd->summaries);
	vec_done(&hostd->clients);
	vec_done(&hostd->exits);
	if (hostd->listen_fd >= 0)
		(void)close(hostd->listen_fd);
	free(hostd);
}

static void take_stalls(void *arg, const struct wire_stalls *stalls)
{
	hostd_publish(arg, SUBJECT_STALLS, stalls, sizeof(*stalls));
}

static void start_handles(struct hostd *hostd)
{
	uv_loop_t *loop = hostd->setup.loop;

	(void)uv_poll_init(loop, &hostd->listener, hostd->listen_fd);
	(void)uv_timer_init(loop, &hostd->drain_timer);
	(void)uv_timer_init(loop, &hostd->sample_timer);
	hostd->listener.data = hostd->drain_timer.data = hostd->sample_timer.data = hostd;
	hostd->open_handles = 3;
	(void)uv_poll_start(&hostd->listener, UV_READABLE, listener_readable);
	(void)uv_timer_start(&hostd->drain_timer, drain_tick, DRAIN_MS, DRAIN_MS);
}

int hostd_open(const struct hostd_setup *setup, struct hostd **ret, struct err *err)
{
	struct hostd *hostd = calloc(1, sizeof(*hostd));
	int r;

	if (hostd == NULL)
		return err_set(err, ENOMEM, "out of memory");
	hostd->setup = *setup;
	hostd->about = (struct about_job){
		.supervisor_pid = (uint32_t)(setup->options->fleet != NULL ? getpid() : getppid()),
		.started_wall_ns = clock_wall_ns()
	};
	hostd->listen_fd = bind_socket(setup->socket_path, err);
	if (hostd->listen_fd < 0) {
		r = hostd->listen_fd;
		free_hostd(hostd);
		return r;
	}
	hostd->pool = pool_new(setup->loop, setup->options->jobs, hostd_summary_done, hostd);
	if (!setup->options->no_stall_window)
		hostd->stallhunt = stallhunt_new(setup->loop, setup->options, take_stalls, hostd);
	hostd->hangstacks.pool = pool_new(setup->loop, READERS, hangstacks_done, hostd);
	r = hostd->pool == NULL || hostd->hangstacks.pool == NULL ? -ENOMEM
								  : hostd_subscribe(hostd);
	if (r < 0) {
		free_hostd(hostd);
		return err_set(err, -r, "out of memory");
	}
	start_handles(hostd);
	owncosts_open(&hostd->own);
	hostd->gpuwatch = hostd_start_gpuwatch(hostd);
	*ret = hostd;
	return 0;
}

void hostd_set_job(struct hostd *hostd, uint32_t pid)
{
	hostd->setup.job_pid = pid;
}

size_t hostd_workers(const struct hostd *hostd)
{
	size_t ret = 0;

	vec_foreach(client, &hostd->clients)
		ret += (*client)->is_worker && (*client)->exit == NULL;
	return ret + hostd->exits.cnt;
}

void hostd_closed_one(struct hostd *hostd)
{
	if (--hostd->open_handles == 0 && hostd->closing)
		free_hostd(hostd);
}

static void handle_closed(uv_handle_t *handle)
{
	hostd_closed_one(handle->data);
}

void hostd_close(struct hostd *hostd)
{
	if (hostd == NULL || hostd->closing)
		return;
	hostd->closing = true;
	if (hostd->refused > 0)
		log_line(LOG_WARNING, "event=refused datagrams=%" PRIu64, hostd->refused);
	(void)unlink(hostd->setup.socket_path);
	while (hostd->clients.cnt > 0)
		client_close(hostd->clients.data[0]);
	exitwatch_close_all(hostd);
	uv_close((uv_handle_t *)&hostd->listener, handle_closed);
	uv_close((uv_handle_t *)&hostd->drain_timer, handle_closed);
	uv_close((uv_handle_t *)&hostd->sample_timer, handle_closed);
}
