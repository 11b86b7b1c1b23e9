/* SPDX-License-Identifier: Apache-2.0 */
/*
 * Buffers and records of libcupti's double: records are laid out as the real library does, from its
 * published interface; a worker thread hands full buffers over. Each thread has a buffer of its
 * own if that is asked for, until a flush takes it.
 */
#include "libcupti_parts.h"

#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Names of the real library, which no header of the agent declares. */
EXPORT uint32_t cuptiActivityFlushAll(uint32_t flags);
EXPORT uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret);
EXPORT uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record);

static __thread size_t own;  /* place of the thread's buffer; 0: none yet */
static __thread bool inside; /* of a buffer's callback, on this thread */

void cupti_enter(const char *name)
{
	if (inside)
		cupti_fault(name);
}

/* --- buffers --- */

static int64_t cpu_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &t);
	return t.tv_sec * 1000000000LL + t.tv_nsec;
}

static void call_complete(const struct buffer *full)
{
	int64_t begin_ns = cpu_ns();

	inside = true;
	cupti.complete(NULL, 0, full->at, full->size, full->used);
	inside = false;
	cupti.callback_ns += cpu_ns() - begin_ns;
}

static void call_request(struct buffer *buffer)
{
	int64_t begin_ns = cpu_ns();
	size_t max = 0;

	inside = true;
	cupti.request(&buffer->at, &buffer->size, &max);
	inside = false;
	cupti.callback_ns += cpu_ns() - begin_ns;
}

static void *hand_over(void *arg)
{
	(void)arg;
	pthread_mutex_lock(&cupti.lock);
	for (;;) {
		struct buffer full;

		while (cupti.handed == cupti.queued)
			pthread_cond_wait(&cupti.changed, &cupti.lock);
		full = cupti.queue[cupti.handed % QUEUE_CNT];
		pthread_mutex_unlock(&cupti.lock);
		call_complete(&full);
		pthread_mutex_lock(&cupti.lock);
		cupti.handed++;
		pthread_cond_broadcast(&cupti.changed);
	}
	return NULL;
}

/* With the lock. */
static void queue_buffer(struct buffer *buffer)
{
	pthread_t thread;

	if (!cupti.thread)
		cupti.thread = pthread_create(&thread, NULL, hand_over, NULL) == 0;
	while (cupti.queued - cupti.handed >= QUEUE_CNT)
		pthread_cond_wait(&cupti.changed, &cupti.lock);
	cupti.queue[cupti.queued++ % QUEUE_CNT] = *buffer;
	buffer->at = NULL;
	pthread_cond_broadcast(&cupti.changed);
}

static void check_buffer(const struct buffer *buffer)
{
	if (((uintptr_t)buffer->at & 7) != 0)
		cupti_fault("a buffer is not aligned");
	for (size_t i = 0; cupti.zeroed && i < 4096 && i < buffer->size; i++) {
		if (buffer->at[i] != 0)
			cupti_fault("a buffer is not zeroed");
	}
	for (size_t i = 0; i <= cupti.thread_cnt; i++) {
		const struct buffer *other = &cupti.filling[i];

		if (other != buffer && other->at != NULL && other->at < buffer->at + buffer->size &&
		    buffer->at < other->at + other->size)
			cupti_fault("two threads have one buffer");
	}
}

static bool get_buffer(struct buffer *buffer)
{
	call_request(buffer);
	buffer->used = 0;
	cupti.buffer_cnt++;
	if (buffer->at == NULL && cupti.version < 27)
		cupti_fault("a buffer was refused in a version that crashes then");
	if (buffer->at == NULL)
		return false;
	check_buffer(buffer);
	return true;
}

static struct buffer *own_buffer(void)
{
	if (!cupti.per_thread)
		return &cupti.filling[0];
	if (own == 0 && cupti.thread_cnt + 1 == THREAD_CNT)
		cupti_fault("more threads than a test should have");
	else if (own == 0)
		own = ++cupti.thread_cnt;
	return &cupti.filling[own];
}

/* Room for a record, with the lock; NULL: it is dropped. */
static void *room(size_t bytes)
{
	struct buffer *buffer = own_buffer();

	if (buffer->at != NULL && buffer->size - buffer->used < bytes)
		queue_buffer(buffer);
	if (buffer->at == NULL && !get_buffer(buffer)) {
		cupti.dropped++;
		return NULL;
	}
	buffer->used += bytes;
	return buffer->at + buffer->used - bytes;
}

/* --- records --- */

static void put32(uint8_t *at, size_t off, uint32_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static void put64(uint8_t *at, size_t off, uint64_t value)
{
	memcpy(at + off, &value, sizeof(value));
}

static bool on(int kind)
{
	return (cupti.kinds >> kind & 1) != 0 && cupti.request != NULL;
}

/* CUPTI's own copy of a name: one pointer for all records of a kernel. */
static const char *own_name(const char *name)
{
	for (size_t i = 0; i < cupti.name_cnt; i++) {
		if (strcmp(cupti.names[i], name) == 0)
			return cupti.names[i];
	}
	if (cupti.name_cnt == NAME_CNT)
		return cupti.names[0];
	cupti.names[cupti.name_cnt] = strdup(name);
	return cupti.names[cupti.name_cnt++];
}

static size_t kernel_bytes(void)
{
	static const size_t bytes[] = { 160, 168, 176, 200, 208, 216, 224, 232, 248 };

	return bytes[cupti.kernel - 5];
}

static void put_kernel(const struct double_kernel *kernel)
{
	uint8_t *at = room(kernel_bytes());
	bool untimed =
		cupti.untimed > 0 && (int64_t)(++cupti.kernel_cnt % (size_t)cupti.untimed) == 0;
	const char *name = own_name(kernel->name);

	cupti.kernel_cnt += cupti.untimed == 0;
	if (at == NULL)
		return;
	put32(at, 0, CONCURRENT);
	put64(at, 16, untimed ? 0 : (uint64_t)kernel->start_ns);
	put64(at, 24, untimed ? 0 : (uint64_t)kernel->end_ns);
	put32(at, 44, 1);
	put32(at, 48, kernel->stream);
	for (size_t i = 0; i < 6; i++)
		put32(at, 52 + 4 * i, i == 3 ? kernel->threads : 1);
	put32(at, 92, kernel->correlation);
	memcpy(at + 104, &name, sizeof(name));
	put64(at, 144, kernel->graph_node);
}

void cupti_on_kernel(const struct double_kernel *kernel)
{
	pthread_mutex_lock(&cupti.lock);
	for (int64_t i = 0; i < cupti.repeat && on(CONCURRENT); i++)
		put_kernel(kernel);
	pthread_mutex_unlock(&cupti.lock);
}

void cupti_on_copy(const struct double_copy *copy)
{
	int kind = copy->kind == 0 ? MEMSET : MEMCPY;
	uint8_t *at;

	pthread_mutex_lock(&cupti.lock);
	at = on(kind) ? room(kind == MEMSET ? 88 : 96) : NULL;
	if (at != NULL) {
		put32(at, 0, (uint32_t)kind);
		if (kind == MEMCPY) {
			at[4] = copy->kind;
			at[5] = copy->from;
			at[6] = copy->to;
		} else {
			at[50] = 3; /* of the device */
		}
		put64(at, 8, copy->bytes);
		put64(at, 16, (uint64_t)copy->start_ns);
		put64(at, 24, (uint64_t)copy->end_ns);
		put32(at, 36, 1);
		put32(at, 40, copy->stream);
		put32(at, 44, copy->correlation);
	}
	pthread_mutex_unlock(&cupti.lock);
}

void cupti_on_call(const struct double_call *call)
{
	bool runtime = call->domain == 2;
	int kind = runtime ? RUNTIME : DRIVER;
	uint8_t *at;

	pthread_mutex_lock(&cupti.lock);
	at = cupti.request != NULL && on(kind) &&
			     (runtime ? cupti.runtime : cupti.driver)[call->call % CALL_CNT]
		     ? room(40)
		     : NULL;
	if (at != NULL) {
		put32(at, 0, (uint32_t)kind);
		put32(at, 4, call->call);
		put64(at, 8, (uint64_t)call->start_ns);
		put64(at, 16, (uint64_t)call->end_ns);
		put32(at, 28, call->tid);
		put32(at, 32, call->correlation);
	}
	pthread_mutex_unlock(&cupti.lock);
}

void cupti_on_sync(uint32_t stream, int64_t start_ns, int64_t end_ns, uint32_t correlation)
{
	uint8_t *at;

	pthread_mutex_lock(&cupti.lock);
	at = on(SYNC) ? room(56) : NULL;
	if (at != NULL) {
		put32(at, 0, SYNC);
		put32(at, 4, 3); /* of a stream */
		put64(at, 8, (uint64_t)start_ns);
		put64(at, 16, (uint64_t)end_ns);
		put32(at, 24, correlation);
		put32(at, 28, 1);
		put32(at, 32, stream);
	}
	pthread_mutex_unlock(&cupti.lock);
}

static size_t record_bytes(uint32_t kind)
{
	switch (kind) {
	case CONCURRENT:
		return kernel_bytes();
	case MEMCPY:
		return 96;
	case MEMSET:
		return 88;
	case RUNTIME:
	case DRIVER:
		return 40;
	case SYNC:
		return 56;
	default:
		return 0;
	}
}

uint32_t cuptiActivityGetNextRecord(uint8_t *buffer, size_t valid, void **record)
{
	uint8_t *at = *record == NULL ? buffer : *record;
	uint32_t kind;

	cupti_enter("cuptiActivityGetNextRecord in a buffer's callback");
	if (*record != NULL) {
		memcpy(&kind, at, sizeof(kind));
		at += record_bytes(kind);
	}
	if (at >= buffer + valid)
		return MAX_LIMIT;
	memcpy(&kind, at, sizeof(kind));
	if (record_bytes(kind) == 0)
		return INVALID_KIND;
	*record = at;
	return OK;
}

uint32_t cuptiActivityFlushAll(uint32_t flags)
{
	struct timespec lag = { .tv_nsec = cupti.lag };

	cupti_enter("cuptiActivityFlushAll in a buffer's callback");
	nanosleep(&lag, NULL);
	cupti_disturb_captures();
	pthread_mutex_lock(&cupti.lock);
	for (size_t i = 0; flags != 0 && i <= cupti.thread_cnt; i++) {
		if (cupti.filling[i].at != NULL)
			queue_buffer(&cupti.filling[i]);
	}
	while (cupti.handed != cupti.queued)
		pthread_cond_wait(&cupti.changed, &cupti.lock);
	pthread_mutex_unlock(&cupti.lock);
	return OK;
}

uint32_t cuptiActivityGetNumDroppedRecords(void *context, uint32_t stream, size_t *ret)
{
	(void)context;
	(void)stream;
	*ret = cupti.dropped;
	cupti.dropped = 0;
	return OK;
}
