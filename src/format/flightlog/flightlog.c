/* SPDX-License-Identifier: Apache-2.0 */
#include "format/flightlog/flightlog.h"

#include "format/flightlog/flightlog_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define TEXT_MAX (3 * FLIGHT_STRING_MAX + 1) /* every byte may become U+FFFD */

/* --- texts --- */

/* Bytes of the UTF-8 character at text[len], 0 when there is none. */
static size_t utf8_len(const unsigned char *text, size_t len)
{
	static const uint32_t least[] = { 0, 1, 0x80, 0x800, 0x10000 };
	size_t cnt = text[0] < 0x80 ? 1 : text[0] < 0xc2 ? 0 : text[0] < 0xe0 ? 2 : 0;
	uint32_t code = text[0];

	if (text[0] >= 0xe0 && text[0] < 0xf5)
		cnt = text[0] < 0xf0 ? 3 : 4;
	if (cnt == 0 || cnt > len || text[0] == '\0')
		return 0;
	if (cnt > 1)
		code &= 0x7fu >> cnt;
	for (size_t i = 1; i < cnt; i++) {
		if ((text[i] & 0xc0) != 0x80)
			return 0;
		code = code << 6 | (text[i] & 0x3fu);
	}
	return code < least[cnt] || code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ? 0 : cnt;
}

size_t flightlog_text(char *ret, size_t size, const char *text, size_t len)
{
	static const char replacement[] = "\xef\xbf\xbd";
	size_t out = 0;

	for (size_t i = 0; i < len;) {
		size_t cnt = utf8_len((const unsigned char *)text + i, len - i);
		const char *from = cnt > 0 ? text + i : replacement;
		size_t need = cnt > 0 ? cnt : sizeof(replacement) - 1;

		if (need >= size - out)
			break;
		memcpy(ret + out, from, need);
		out += need;
		i += cnt > 0 ? cnt : 1;
	}
	ret[out] = '\0';
	return out;
}

/* The worker may change its memory at any time: only a private copy is checked. */
static void copy_out(void *ret, const void *from, size_t len)
{
	memcpy(ret, from, len);
	/* Keeps the compiler from reading the source a second time. */
	atomic_thread_fence(memory_order_acquire);
}

/* A field of fixed size. */
static void take_field(char *ret, size_t size, const char *field, size_t field_size)
{
	char copy[128];
	size_t len = MIN(field_size, sizeof(copy));

	copy_out(copy, field, len);
	(void)flightlog_text(ret, size, copy, strnlen(copy, len));
}

/* --- life --- */

void flightlog_init(struct flightlog *log)
{
	*log = (struct flightlog){ .rank = -1, .world_size = -1 };
	arena_init(&log->arena);
}

void flightlog_done(struct flightlog *log)
{
	vec_foreach(lane, &log->lanes) {
		vec_done(&lane->records);
		vec_done(&lane->window);
	}
	vec_done(&log->lanes);
	vec_done(&log->strings);
	vec_done(&log->frames);
	vec_done(&log->nodes);
	vec_done(&log->gpu_lanes);
	vec_done(&log->marks);
	vec_done(&log->samples);
	arena_done(&log->arena);
}

size_t flightlog_record_cnt(const struct flightlog *log)
{
	size_t cnt = log->marks.cnt + log->samples.cnt;

	vec_foreach(lane, &log->lanes)
		cnt += lane->records.cnt + lane->window.cnt;
	return cnt;
}

/* --- the mapping --- */

static int check_file(int fd, struct err *err)
{
	int seals = fcntl(fd, F_GET_SEALS);
	struct stat st;

	if (seals < 0)
		return err_set(err, errno, "recorder: no sealed memory file: %s", strerror(errno));
	if ((seals & F_SEAL_SHRINK) == 0)
		return err_set(err, EINVAL, "recorder: expected F_SEAL_SHRINK, found seals %#x",
			       (unsigned int)seals);
	if (fstat(fd, &st) < 0)
		return err_set(err, errno, "recorder: fstat: %s", strerror(errno));
	if (st.st_size < (off_t)sizeof(struct flight))
		return err_set(err, EINVAL, "recorder: expected %zu bytes, found %lld",
			       sizeof(struct flight), (long long)st.st_size);
	return 0;
}

static int check_layout(const struct flight *flight, struct err *err)
{
	uint32_t magic = flight->block.magic, version = flight->block.version;
	uint32_t ring_cnt = flight->block.ring_cnt, layout_bytes = flight->layout_bytes;

	if (magic != BLOCK_MAGIC || version != BLOCK_VERSION || ring_cnt != MARK_RING_CNT)
		return err_set(err, EINVAL,
			       "recorder: expected magic %#x version %u ring %u, found %#x %u %u",
			       BLOCK_MAGIC, BLOCK_VERSION, MARK_RING_CNT, magic, version, ring_cnt);
	if (layout_bytes != sizeof(struct flight))
		return err_set(err, EINVAL, "recorder: expected a layout of %zu bytes, found %u",
			       sizeof(struct flight), layout_bytes);
	return 0;
}

int flight_map(int fd, const struct flight **ret, struct err *err)
{
	int error = check_file(fd, err);
	const struct flight *flight;

	if (error < 0)
		return error;
	flight = mmap(NULL, sizeof(*flight), PROT_READ, MAP_SHARED, fd, 0);
	if (flight == MAP_FAILED)
		return err_set(err, errno, "recorder: mmap: %s", strerror(errno));
	error = check_layout(flight, err);
	if (error < 0)
		flight_unmap(flight);
	else
		*ret = flight;
	return error;
}

void flight_unmap(const struct flight *flight)
{
	if (flight != NULL)
		(void)munmap((void *)(uintptr_t)flight, sizeof(*flight));
}

/* --- validation --- */

static bool sample_ok(const struct flightlog *log, const struct ring_record *record)
{
	switch (record->kind) {
	case FLIGHT_SAMPLE:
		return record->value >= -1 && record->value <= FLIGHT_TIME_MAX_NS &&
		       (uint32_t)record->extra < log->nodes.cnt;
	case FLIGHT_CHILD:
		return record->value == 0 && (uint32_t)record->extra < log->nodes.cnt;
	case FLIGHT_CPU:
		return flightlog_time_ok(record->value) && record->extra <= FLIGHT_TIME_MAX_NS;
	case FLIGHT_FAULTS:
	case FLIGHT_SWITCHES:
	case FLIGHT_GIL:
		return record->value >= 0;
	default:
		return false;
	}
}

static bool us_pair_ok(uint64_t pair)
{
	return flight_us_first(pair) <= FLIGHT_US_MAX && flight_us_second(pair) <= FLIGHT_US_MAX;
}

static bool lane_record_ok(const struct flightlog *log, const struct ring_record *record)
{
	switch (record->kind) {
	case FLIGHT_OPERATOR:
	case FLIGHT_ANNOTATION:
	case FLIGHT_COLLECTIVE:
	case FLIGHT_C_CALL:
	case FLIGHT_NETWORK:
	case FLIGHT_TIMED:
	case FLIGHT_COLLECTIVE_DONE:
		return flightlog_time_ok(record->value) && record->extra < log->strings.cnt;
	case FLIGHT_PYTHON:
		return flightlog_time_ok(record->value) && record->extra < log->frames.cnt;
	case FLIGHT_GPU_KERNEL:
	case FLIGHT_GPU_MEMOP:
	case FLIGHT_GPU_SYNC:
	case FLIGHT_GPU_API:
	case FLIGHT_GPU_OVERHEAD:
		return flightlog_time_ok(record->value) &&
		       (record->detail & ~FLIGHT_GPU_NODE) < log->gpu_lanes.cnt &&
		       flight_gpu_string(record->extra) < log->strings.cnt;
	case FLIGHT_COLLECTIVE_ARGS:
		return record->value >= -1 && (int64_t)record->extra >= -1;
	case FLIGHT_COLLECTIVE_GROUP:
		return record->value >= 0 && (uint32_t)record->value < log->strings.cnt &&
		       record->extra < log->strings.cnt;
	case FLIGHT_COLLECTIVE_HOW:
		return (uint64_t)record->value >> 32 < log->strings.cnt &&
		       (uint32_t)record->value < log->strings.cnt &&
		       record->extra >> 32 < log->strings.cnt;
	case FLIGHT_NETWORK_SEND:
	case FLIGHT_NETWORK_RECV:
		return us_pair_ok((uint64_t)record->value) && us_pair_ok(record->extra);
	case FLIGHT_TIMED_SHAPE:
		return true;
	case FLIGHT_TIMED_GROUPS:
		return record->value >= 0;
	case FLIGHT_CALLS:
		return record->value >= 0 && record->detail < FLIGHT_CALLS_CNT;
	default:
		return false;
	}
}

bool flightlog_record_ok(const struct flightlog *log, enum flight_ring ring,
			 const struct ring_record *record)
{
	if (!flightlog_time_ok(record->time_ns))
		return false;
	switch (ring) {
	case FLIGHT_RING_MARKS:
		return record->kind >= MARK_DATALOADER && record->kind <= MARK_BACKWARD &&
		       flightlog_time_ok(record->value);
	case FLIGHT_RING_SAMPLES:
		return sample_ok(log, record);
	case FLIGHT_RING_LANE:
		return lane_record_ok(log, record);
	}
	return false;
}

/* --- rings --- */

/* One ring of the worker and where its records go. */
struct source {
	enum flight_ring ring;
	const struct ring_record *records;
	uint32_t cnt;
	const _Atomic uint64_t *head;
	struct ring_tail *tail;
	record_vec *to;
	size_t had; /* records read before this call */
};

/*
 * First read: finds the oldest record that is still intact. The pages of a closed window have been
 * freed, and reading them would allocate them again one by one: so the search goes backwards and
 * stops at the first missing record.
 */
static void find_oldest(const struct source *s)
{
	uint64_t head = atomic_load_explicit(s->head, memory_order_acquire), at = head;
	struct ring_record record;

	while (at > 0 && head - at < s->cnt && ring_copy(s->records, s->cnt, at - 1, &record))
		at--;
	s->tail->taken = at;
}

static int take_ring(struct flightlog *log, struct source *s, size_t *left)
{
	struct ring_tail before;
	uint64_t head;
	size_t want;
	int ret;

	s->had = s->to->cnt;
	if (!log->begun)
		find_oldest(s);
	before = *s->tail;
	head = atomic_load_explicit(s->head, memory_order_acquire);
	want = head > before.taken ? (size_t)MIN(head - before.taken, (uint64_t)s->cnt) : 0;
	ret = vec_reserve(s->to, s->to->cnt + want + 1); /* +1: so that data is never NULL */
	if (ret < 0)
		return ret;
	want = ring_take(s->tail, s->records, s->cnt, s->head, s->to->data + s->to->cnt, want);
	s->to->cnt += MIN(want, *left);
	log->drops.limit += want - MIN(want, *left);
	*left -= MIN(want, *left);
	log->drops.overrun += s->tail->overrun - before.overrun;
	log->drops.torn += s->tail->torn - before.torn;
	return 0;
}

/* Drops invalid records among the new ones. Runs after the tables were read. */
static void check_ring(struct flightlog *log, const struct source *s)
{
	size_t kept = s->had;

	for (size_t i = s->had; i < s->to->cnt; i++) {
		if (flightlog_record_ok(log, s->ring, &s->to->data[i]))
			s->to->data[kept++] = s->to->data[i];
		else
			log->drops.invalid++;
	}
	s->to->cnt = kept;
}

#define SOURCE_MAX (2 + 2 * FLIGHT_LANE_CNT)

static size_t list_sources(struct flightlog *log, const struct flight *flight, bool with_window,
			   struct source list[static SOURCE_MAX])
{
	size_t cnt = 0;

	list[cnt++] = (struct source){ FLIGHT_RING_MARKS,   flight->block.ring, MARK_RING_CNT,
				       &flight->block.head, &log->marks_tail,	&log->marks };
	list[cnt++] = (struct source){ FLIGHT_RING_SAMPLES,  flight->samples,	 FLIGHT_SAMPLE_CNT,
				       &flight->sample_head, &log->samples_tail, &log->samples };
	for (size_t i = 0; i < log->lanes.cnt; i++) {
		struct flightlog_lane *lane = &log->lanes.data[i];

		if (lane->tid == 0)
			continue;
		list[cnt++] = (struct source){
			FLIGHT_RING_LANE,	flight->records[i], FLIGHT_LANE_RECORD_CNT,
			&flight->lanes[i].head, &lane->tail,	    &lane->records
		};
		if (with_window)
			list[cnt++] = (struct source){
				FLIGHT_RING_LANE,	  flight->window_records[i],
				FLIGHT_WINDOW_RECORD_CNT, &flight->lanes[i].window_head,
				&lane->window_tail,	  &lane->window
			};
	}
	return cnt;
}

/* --- identity and tables --- */

static void take_sources(struct flightlog *log, const struct flight *flight)
{
	for (size_t i = 0; i < FLIGHT_SOURCE_CNT; i++) {
		const struct flight_source_status *from = &flight->sources[i];
		uint32_t state = atomic_load_explicit(&from->state, memory_order_acquire);

		log->sources[i].state = state <= FLIGHT_ABSENT ? state : FLIGHT_UNTRIED;
		take_field(log->sources[i].why, sizeof(log->sources[i].why), from->why,
			   sizeof(from->why));
	}
}

static void take_identity(struct flightlog *log, const struct flight *flight)
{
	int64_t mono_ns, wall_ns;

	copy_out(&mono_ns, &flight->mono_ns, sizeof(mono_ns));
	copy_out(&wall_ns, &flight->wall_ns, sizeof(wall_ns));
	log->rank = flight->rank;
	log->world_size = flight->world_size;
	log->pid = flight->pid;
	log->training_tid = atomic_load_explicit(&flight->training_tid, memory_order_acquire);
	if (flightlog_time_ok(mono_ns) && flightlog_time_ok(wall_ns)) {
		log->mono_ns = mono_ns;
		log->wall_ns = wall_ns;
	}
	take_sources(log, flight);
#define X(field, what) \
	log->drops.field = atomic_load_explicit(&flight->drops.field, memory_order_relaxed);
	FLIGHT_DROP_LIST(X)
#undef X
}

static int take_lanes(struct flightlog *log, const struct flight *flight)
{
	uint32_t cnt = atomic_load_explicit(&flight->lane_cnt, memory_order_acquire);

	cnt = MIN(cnt, FLIGHT_LANE_CNT);
	while (log->lanes.cnt < cnt) {
		if (vec_push(&log->lanes, (struct flightlog_lane){ 0 }) < 0)
			return -ENOMEM;
	}
	for (size_t i = 0; i < log->lanes.cnt; i++) {
		struct flightlog_lane *lane = &log->lanes.data[i];

		if (lane->tid != 0)
			continue;
		lane->tid = atomic_load_explicit(&flight->lanes[i].tid, memory_order_acquire);
		take_field(lane->name, sizeof(lane->name), flight->lanes[i].name,
			   sizeof(flight->lanes[i].name));
	}
	return 0;
}

/* Reads string id into ret. Returns 0 if it is not written yet or invalid. */
static size_t copy_string(const struct flight *flight, size_t id,
			  char ret[static FLIGHT_STRING_MAX])
{
	size_t len = __atomic_load_n(&flight->strings[id].len, __ATOMIC_ACQUIRE);
	size_t off = __atomic_load_n(&flight->strings[id].off, __ATOMIC_RELAXED);

	if (len > FLIGHT_STRING_MAX || off > FLIGHT_TEXT_BYTES - len)
		return 0;
	copy_out(ret, &flight->text[off], len);
	return len;
}

int flightlog_add_string(struct flightlog *log, const char *text, size_t len)
{
	char valid[TEXT_MAX];
	char *copy;

	len = flightlog_text(valid, sizeof(valid), text, len);
	copy = len == 0 ? NULL : arena_strndup(&log->arena, valid, len);
	if (len > 0 && copy == NULL)
		return -ENOMEM;
	return vec_push(&log->strings, copy != NULL ? copy : "");
}

/* Threads reserve an id first and write the string later: a gap is read again next time. */
static int fill_gaps(struct flightlog *log, const struct flight *flight)
{
	char text[FLIGHT_STRING_MAX], valid[TEXT_MAX];

	for (size_t i = 1; i < log->strings.cnt; i++) {
		size_t len;

		if (log->strings.data[i][0] != '\0')
			continue;
		len = copy_string(flight, i, text);
		if (len == 0)
			continue;
		len = flightlog_text(valid, sizeof(valid), text, len);
		log->strings.data[i] = arena_strndup(&log->arena, valid, len);
		if (log->strings.data[i] == NULL) {
			log->strings.data[i] = "";
			return -ENOMEM;
		}
	}
	return 0;
}

static int take_strings(struct flightlog *log, const struct flight *flight, uint32_t cnt)
{
	char text[FLIGHT_STRING_MAX];
	int ret = fill_gaps(log, flight);

	if (ret == 0 && log->strings.cnt == 0)
		ret = flightlog_add_string(log, "", 0);
	while (ret == 0 && log->strings.cnt < cnt)
		ret = flightlog_add_string(log, text, copy_string(flight, log->strings.cnt, text));
	return ret;
}

static int take_frames(struct flightlog *log, const struct flight *flight, uint32_t cnt)
{
	int ret = log->frames.cnt == 0 ? vec_push(&log->frames, (struct flight_frame){ 0 }) : 0;

	while (ret == 0 && log->frames.cnt < cnt) {
		struct flight_frame frame;

		copy_out(&frame, &flight->frames[log->frames.cnt], sizeof(frame));
		if (frame.file >= log->strings.cnt || frame.name >= log->strings.cnt) {
			frame = (struct flight_frame){ 0 };
			log->drops.invalid++;
		}
		frame.reserved = 0;
		ret = vec_push(&log->frames, frame);
	}
	return ret;
}

static int take_nodes(struct flightlog *log, const struct flight *flight, uint32_t cnt)
{
	int ret = log->nodes.cnt == 0 ? vec_push(&log->nodes, (struct flight_node){ 0 }) : 0;

	while (ret == 0 && log->nodes.cnt < cnt) {
		struct flight_node node;

		copy_out(&node, &flight->nodes[log->nodes.cnt], sizeof(node));
		if (node.parent >= log->nodes.cnt || node.frame >= log->frames.cnt) {
			node = (struct flight_node){ 0 };
			log->drops.invalid++;
		}
		ret = vec_push(&log->nodes, node);
	}
	return ret;
}

/* When the table is full, the worker reuses lanes of earlier windows. */
static int take_gpu_lanes(struct flightlog *log, const struct flight *flight, uint32_t cnt)
{
	int ret = 0;

	if (cnt == FLIGHT_GPU_LANE_CNT)
		log->gpu_lanes.cnt = 0;
	while (ret == 0 && log->gpu_lanes.cnt < cnt) {
		struct flight_gpu_lane lane;

		copy_out(&lane, &flight->gpu_lanes[log->gpu_lanes.cnt], sizeof(lane));
		if (lane.device < FLIGHT_GPU_THREAD) {
			lane = (struct flight_gpu_lane){ 0 };
			log->drops.invalid++;
		}
		ret = vec_push(&log->gpu_lanes, lane);
	}
	return ret;
}

/*
 * Reads the counts of referring tables first: every entry they refer to is already in its table.
 */
static int take_tables(struct flightlog *log, const struct flight *flight)
{
	uint32_t gpu_lane_cnt = atomic_load_explicit(&flight->gpu_lane_cnt, memory_order_acquire);
	uint32_t gpu_name = atomic_load_explicit(&flight->gpu_name, memory_order_acquire);
	uint32_t node_cnt = atomic_load_explicit(&flight->node_cnt, memory_order_acquire);
	uint32_t frame_cnt = atomic_load_explicit(&flight->frame_cnt, memory_order_acquire);
	uint32_t string_cnt = atomic_load_explicit(&flight->string_cnt, memory_order_acquire);
	int ret = take_strings(log, flight, MIN(string_cnt, FLIGHT_STRING_CNT));

	if (ret == 0)
		ret = take_frames(log, flight, MIN(frame_cnt, FLIGHT_FRAME_CNT));
	if (ret == 0)
		ret = take_nodes(log, flight, MIN(node_cnt, FLIGHT_NODE_CNT));
	if (ret == 0)
		ret = take_gpu_lanes(log, flight, MIN(gpu_lane_cnt, FLIGHT_GPU_LANE_CNT));
	log->gpu_name = gpu_name < log->strings.cnt ? gpu_name : 0;
	return ret;
}

int flightlog_take(struct flightlog *log, const struct flight *flight, bool with_window)
{
	size_t have = flightlog_record_cnt(log), left = SIZE_MAX, cnt;
	struct source sources[SOURCE_MAX];
	int ret;

	if (log->record_max > 0)
		left = log->record_max - MIN(have, log->record_max);
	take_identity(log, flight);
	ret = take_lanes(log, flight);
	cnt = list_sources(log, flight, with_window, sources);
	for (size_t i = 0; i < cnt; i++) {
		sources[i].had = sources[i].to->cnt;
		if (ret == 0)
			ret = take_ring(log, &sources[i], &left);
	}
	if (ret == 0)
		ret = take_tables(log, flight);
	for (size_t i = 0; i < cnt; i++)
		check_ring(log, &sources[i]);
	if (ret == 0 && !log->begun) {
		log->before = log->drops;
		log->begun = true;
	}
	return ret;
}
