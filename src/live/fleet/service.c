/* SPDX-License-Identifier: Apache-2.0 */
#include "live/fleet/service.h"

#include "base/clock.h"
#include "base/log.h"

#include <signal.h>
#include <string.h>

#define OFFLINE_NS (5 * NSEC_PER_SEC) /* then a line says that the broker is not reached */

static void wake(void *arg)
{
	struct service *service = arg;

	(void)uv_async_send(&service->wake);
}

static void run_bus(uv_async_t *async)
{
	struct service *service = async->data;

	if (!service->stopping)
		(void)bus_run(service->bus, clock_mono_ns());
}

static void mind_bus(struct service *service, int64_t now_ns)
{
	char why[256] = "";

	if (bus_is_connected(service->bus, why, sizeof(why))) {
		if (service->offline_ns != 0)
			log_line(LOG_INFO, "event=bus-connected");
		service->offline_ns = 0;
		service->told_offline = false;
		return;
	}
	if (service->offline_ns == 0)
		service->offline_ns = now_ns;
	if (service->told_offline || now_ns - service->offline_ns < OFFLINE_NS || why[0] == '\0')
		return;
	service->told_offline = true;
	log_line(LOG_WARNING,
		 "event=bus-not-reached why=\"%s\" effect=\"each host watches its jobs alone until "
		 "the bus is back\"",
		 why);
}

static void on_tick(uv_timer_t *timer)
{
	struct service *service = timer->data;
	int64_t now_ns = clock_mono_ns();

	(void)bus_run(service->bus, now_ns);
	mind_bus(service, now_ns);
	service->calls->tick(service->arg, now_ns);
}

static void on_signal(uv_signal_t *handle, int number)
{
	struct service *service = handle->data;

	if (number == SIGCHLD)
		service->calls->children_ended(service->arg);
	else
		service->calls->asked_to_end(service->arg);
}

static void start_handles(struct service *service)
{
	static const int numbers[] = { SIGTERM, SIGINT, SIGCHLD };

	_Static_assert(ARRAY_SIZE(numbers) == ARRAY_SIZE(service->signals), "one for each");
	(void)uv_timer_init(&service->loop, &service->tick);
	service->tick.data = service;
	(void)uv_timer_start(&service->tick, on_tick, SERVICE_TICK_MS, SERVICE_TICK_MS);
	for (size_t i = 0; i < ARRAY_SIZE(numbers); i++) {
		(void)uv_signal_init(&service->loop, &service->signals[i]);
		service->signals[i].data = service;
		(void)uv_signal_start(&service->signals[i], on_signal, numbers[i]);
	}
}

int service_open(struct service *service, const struct bus_login *login,
		 const struct service_calls *calls, void *arg, struct err *err)
{
	int ret;

	*service = (struct service){ .calls = calls, .arg = arg, .offline_ns = clock_mono_ns() };
	(void)signal(SIGPIPE, SIG_IGN);
	ret = uv_loop_init(&service->loop);
	if (ret == 0)
		ret = uv_async_init(&service->loop, &service->wake, run_bus);
	if (ret < 0)
		return err_set(err, -ret, "cannot start: %s", strerror(-ret));
	service->wake.data = service;
	ret = bus_connect(login, wake, service, &service->bus, err);
	if (ret < 0)
		return ret;
	start_handles(service);
	return 0;
}

void service_run(struct service *service)
{
	(void)uv_run(&service->loop, UV_RUN_DEFAULT);
}

void service_stop(struct service *service)
{
	if (service->stopping)
		return;
	service->stopping = true;
	uv_close((uv_handle_t *)&service->tick, NULL);
	uv_close((uv_handle_t *)&service->wake, NULL);
	for (size_t i = 0; i < ARRAY_SIZE(service->signals); i++)
		uv_close((uv_handle_t *)&service->signals[i], NULL);
}

/* wake() may be called until the bus is closed: the loop's memory outlives it. */
uint64_t service_close(struct service *service)
{
	uint64_t dropped = bus_stats(service->bus).dropped;

	service->bus = bus_close(service->bus);
	(void)uv_loop_close(&service->loop);
	return dropped;
}

bool service_is_online(const struct service *service)
{
	return service->offline_ns == 0;
}
