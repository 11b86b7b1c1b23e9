/* SPDX-License-Identifier: Apache-2.0 */
/* The file functions of flightlog.h. */
#include "format/flightlog/flightlog_file.h"

#include "base/file.h"
#include "format/flightlog/flightlog_parts.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define X(field, what) +1
_Static_assert(0 FLIGHTLOG_DROP_LIST(X) <= FLIGHTLOG_DROP_MAX, "room in the header");
#undef X

/* --- writing --- */

static void drops_store(const struct flightlog_drops *drops, uint64_t *ret)
{
	size_t i = 0;

#define X(field, what) ret[i++] = drops->field;
	FLIGHTLOG_DROP_LIST(X)
#undef X
}

static void drops_load(const uint64_t *from, struct flightlog_drops *ret)
{
	size_t i = 0;

#define X(field, what) ret->field = from[i++];
	FLIGHTLOG_DROP_LIST(X)
#undef X
}

static uint64_t text_bytes(const struct flightlog *log)
{
	uint64_t bytes = 0;

	vec_foreach(text, &log->strings)
		bytes += strlen(*text);
	return bytes;
}

static void header_fill(const struct flightlog *log, struct flightlog_file_header *ret)
{
	*ret = (struct flightlog_file_header){
		.magic = FLIGHTLOG_MAGIC,
		.version = FLIGHTLOG_VERSION,
		.rank = log->rank,
		.world_size = log->world_size,
		.pid = log->pid,
		.training_tid = log->training_tid,
		.mono_ns = log->mono_ns,
		.wall_ns = log->wall_ns,
		.mark_cnt = log->marks.cnt,
		.sample_cnt = log->samples.cnt,
		.string_cnt = log->strings.cnt,
		.frame_cnt = log->frames.cnt,
		.node_cnt = log->nodes.cnt,
		.lane_cnt = log->lanes.cnt,
		.gpu_lane_cnt = log->gpu_lanes.cnt,
		.gpu_name = log->gpu_name,
		.record_cnt = flightlog_record_cnt(log),
		.text_bytes = text_bytes(log),
	};
	memcpy(ret->host, log->host, sizeof(ret->host));
	memcpy(ret->sources, log->sources, sizeof(ret->sources));
	drops_store(&log->drops, ret->drops);
	drops_store(&log->before, ret->before);
}

/* Buffers small writes. */
struct writer {
	int fd, error;
	size_t len;
	char buffer[1 << 16];
};

static void writer_flush(struct writer *w)
{
	if (w->error == 0)
		w->error = file_write_all(w->fd, w->buffer, w->len);
	w->len = 0;
}

static void put(struct writer *w, const void *data, size_t len)
{
	if (len > sizeof(w->buffer) - w->len)
		writer_flush(w);
	if (len > sizeof(w->buffer)) {
		if (w->error == 0)
			w->error = file_write_all(w->fd, data, len);
	} else if (len > 0) {
		memcpy(w->buffer + w->len, data, len);
		w->len += len;
	}
}

static void put_tables(struct writer *w, const struct flightlog *log)
{
	uint32_t off = 0;

	vec_foreach(text, &log->strings) {
		struct flight_string entry = { off, (uint32_t)strlen(*text) };

		put(w, &entry, sizeof(entry));
		off += entry.len;
	}
	put(w, log->frames.data, log->frames.cnt * sizeof(*log->frames.data));
	put(w, log->nodes.data, log->nodes.cnt * sizeof(*log->nodes.data));
	vec_foreach(lane, &log->lanes) {
		struct flightlog_file_lane entry = { .tid = lane->tid,
						     .record_cnt = lane->records.cnt,
						     .window_cnt = lane->window.cnt };

		memcpy(entry.name, lane->name, sizeof(entry.name));
		put(w, &entry, sizeof(entry));
	}
	put(w, log->gpu_lanes.data, log->gpu_lanes.cnt * sizeof(*log->gpu_lanes.data));
}

static void put_records(struct writer *w, const record_vec *records)
{
	put(w, records->data, records->cnt * sizeof(*records->data));
}

static int write_fd(const struct flightlog *log, int fd)
{
	_cleanup_free_ struct writer *w = malloc(sizeof(*w));
	struct flightlog_file_header header;

	if (w == NULL)
		return -ENOMEM;
	*w = (struct writer){ .fd = fd };
	header_fill(log, &header);
	put(w, &header, sizeof(header));
	put_tables(w, log);
	put_records(w, &log->marks);
	put_records(w, &log->samples);
	vec_foreach(lane, &log->lanes) {
		put_records(w, &lane->records);
		put_records(w, &lane->window);
	}
	vec_foreach(text, &log->strings)
		put(w, *text, strlen(*text));
	writer_flush(w);
	return w->error;
}

int flightlog_write(const struct flightlog *log, const char *path, struct err *err)
{
	struct file_draft draft;
	int ret = file_begin(&draft, path, 0600, err);

	return ret < 0 ? ret : file_commit(&draft, write_fd(log, draft.fd), err);
}

/* --- reading --- */

struct reader {
	const char *path;
	const char *data;
	size_t len, at;
	struct err *err;
};

static size_t section_off(const struct reader *r, const char *from)
{
	return (size_t)(from - r->data);
}

/* The next section: cnt records. NULL when the file has no room for them. */
static const char *section(struct reader *r, const char *what, uint64_t cnt, size_t record_bytes)
{
	const char *begin = r->data + r->at;
	size_t room = (r->len - r->at) / record_bytes;

	if (cnt > room) {
		(void)err_set(r->err, EINVAL, "%s: byte %zu: expected %llu %s, room for %zu",
			      r->path, r->at, (unsigned long long)cnt, what, room);
		return NULL;
	}
	r->at += (size_t)cnt * record_bytes;
	return begin;
}

static int read_strings(struct reader *r, const struct flightlog_file_header *header,
			const char *entries, const char *text, struct flightlog *log)
{
	for (uint64_t i = 0; i < header->string_cnt; i++) {
		const char *at = entries + i * sizeof(struct flight_string);
		struct flight_string entry;

		memcpy(&entry, at, sizeof(entry));
		if (entry.len > FLIGHT_STRING_MAX * 3 || entry.off > header->text_bytes ||
		    entry.len > header->text_bytes - entry.off || (i == 0 && entry.len > 0))
			return err_set(
				r->err, EINVAL,
				"%s: byte %zu: string %llu: expected it within %llu bytes of "
				"text, found %u+%u",
				r->path, section_off(r, at), (unsigned long long)i,
				(unsigned long long)header->text_bytes, entry.off, entry.len);
		if (flightlog_add_string(log, text + entry.off, entry.len) < 0)
			return err_set(r->err, ENOMEM, "%s: out of memory", r->path);
	}
	return 0;
}

static int read_frames(struct reader *r, uint64_t cnt, const char *entries, struct flightlog *log)
{
	for (uint64_t i = 0; i < cnt; i++) {
		const char *at = entries + i * sizeof(struct flight_frame);
		struct flight_frame frame;

		memcpy(&frame, at, sizeof(frame));
		if (frame.file >= log->strings.cnt || frame.name >= log->strings.cnt)
			return err_set(
				r->err, EINVAL,
				"%s: byte %zu: frame %llu: expected strings below %zu, found %u "
				"and %u",
				r->path, section_off(r, at), (unsigned long long)i,
				log->strings.cnt, frame.file, frame.name);
		if (vec_push(&log->frames, frame) < 0)
			return err_set(r->err, ENOMEM, "%s: out of memory", r->path);
	}
	return 0;
}

static int read_nodes(struct reader *r, uint64_t cnt, const char *entries, struct flightlog *log)
{
	for (uint64_t i = 0; i < cnt; i++) {
		const char *at = entries + i * sizeof(struct flight_node);
		struct flight_node node;

		memcpy(&node, at, sizeof(node));
		if ((node.parent >= i && i > 0) || (i == 0 && node.parent != 0) ||
		    node.frame >= log->frames.cnt)
			return err_set(
				r->err, EINVAL,
				"%s: byte %zu: node %llu: expected a parent before it and a frame "
				"below %zu, found %u and %u",
				r->path, section_off(r, at), (unsigned long long)i, log->frames.cnt,
				node.parent, node.frame);
		if (vec_push(&log->nodes, node) < 0)
			return err_set(r->err, ENOMEM, "%s: out of memory", r->path);
	}
	return 0;
}

static int read_gpu_lanes(struct reader *r, uint64_t cnt, const char *entries,
			  struct flightlog *log)
{
	for (uint64_t i = 0; i < cnt; i++) {
		const char *at = entries + i * sizeof(struct flight_gpu_lane);
		struct flight_gpu_lane lane;

		memcpy(&lane, at, sizeof(lane));
		if (lane.device < FLIGHT_GPU_THREAD)
			return err_set(
				r->err, EINVAL,
				"%s: byte %zu: queue %llu: expected a device or %d, found %d",
				r->path, section_off(r, at), (unsigned long long)i,
				FLIGHT_GPU_THREAD, lane.device);
		if (vec_push(&log->gpu_lanes, lane) < 0)
			return err_set(r->err, ENOMEM, "%s: out of memory", r->path);
	}
	return 0;
}

static int read_records(struct reader *r, enum flight_ring ring, uint64_t cnt,
			struct flightlog *log, record_vec *to)
{
	const char *entries = section(r, "records", cnt, sizeof(struct ring_record));

	if (entries == NULL)
		return -EINVAL;
	if (vec_reserve(to, (size_t)cnt) < 0)
		return err_set(r->err, ENOMEM, "%s: out of memory", r->path);
	for (uint64_t i = 0; i < cnt; i++) {
		const char *at = entries + i * sizeof(struct ring_record);
		struct ring_record *record = &to->data[to->cnt];

		memcpy(record, at, sizeof(*record));
		if (!flightlog_record_ok(log, ring, record))
			return err_set(
				r->err, EINVAL,
				"%s: byte %zu: record %llu: expected one of this ring, found kind "
				"%u at %lld ns",
				r->path, section_off(r, at), (unsigned long long)i, record->kind,
				(long long)record->time_ns);
		to->cnt++;
	}
	return 0;
}

static int read_lane(struct reader *r, const char *at, struct flightlog *log)
{
	struct flightlog_file_lane entry;
	struct flightlog_lane *lane;
	int ret;

	memcpy(&entry, at, sizeof(entry));
	if (vec_push(&log->lanes, (struct flightlog_lane){ .tid = entry.tid }) < 0)
		return err_set(r->err, ENOMEM, "%s: out of memory", r->path);
	lane = &log->lanes.data[log->lanes.cnt - 1];
	(void)flightlog_text(lane->name, sizeof(lane->name), entry.name,
			     strnlen(entry.name, sizeof(entry.name)));
	ret = read_records(r, FLIGHT_RING_LANE, entry.record_cnt, log, &lane->records);
	if (ret == 0)
		ret = read_records(r, FLIGHT_RING_LANE, entry.window_cnt, log, &lane->window);
	return ret;
}

/*
 * Reads everything after the header. The tables refer to the text at the end of the file,
 * so the text is located before the records are read.
 */
static int read_sections(struct reader *r, const struct flightlog_file_header *header,
			 struct flightlog *log)
{
	const char *strings =
		section(r, "strings", header->string_cnt, sizeof(struct flight_string));
	const char *frames = strings == NULL ? NULL
					     : section(r, "frames", header->frame_cnt,
						       sizeof(struct flight_frame));
	const char *nodes =
		frames == NULL ? NULL
			       : section(r, "nodes", header->node_cnt, sizeof(struct flight_node));
	const char *lanes = nodes == NULL ? NULL
					  : section(r, "lanes", header->lane_cnt,
						    sizeof(struct flightlog_file_lane));
	const char *gpu_lanes = lanes == NULL ? NULL
					      : section(r, "queues", header->gpu_lane_cnt,
							sizeof(struct flight_gpu_lane));
	struct reader text = *r;
	int ret;

	if (gpu_lanes == NULL ||
	    section(&text, "records", header->record_cnt, sizeof(struct ring_record)) == NULL)
		return -EINVAL;
	if (header->text_bytes != text.len - text.at)
		return err_set(r->err, EINVAL,
			       "%s: byte %zu: expected %llu bytes of text to the end, found %zu",
			       r->path, text.at, (unsigned long long)header->text_bytes,
			       text.len - text.at);
	ret = read_strings(r, header, strings, r->data + text.at, log);
	if (ret == 0)
		ret = read_frames(r, header->frame_cnt, frames, log);
	if (ret == 0)
		ret = read_nodes(r, header->node_cnt, nodes, log);
	if (ret == 0)
		ret = read_gpu_lanes(r, header->gpu_lane_cnt, gpu_lanes, log);
	r->len = text.at;
	if (ret == 0)
		ret = read_records(r, FLIGHT_RING_MARKS, header->mark_cnt, log, &log->marks);
	if (ret == 0)
		ret = read_records(r, FLIGHT_RING_SAMPLES, header->sample_cnt, log, &log->samples);
	for (uint64_t i = 0; i < header->lane_cnt && ret == 0; i++)
		ret = read_lane(r, lanes + i * sizeof(struct flightlog_file_lane), log);
	if (ret == 0 && r->at != r->len)
		ret = err_set(r->err, EINVAL,
			      "%s: byte %zu: expected the end of the records, found %zu", r->path,
			      r->at, (r->len - r->at) / sizeof(struct ring_record));
	return ret;
}

/* Entry 0 of each table is "none". */
static bool tables_fit(const struct flightlog_file_header *header)
{
	return header->string_cnt > 0 && header->string_cnt <= FLIGHT_STRING_CNT &&
	       header->frame_cnt > 0 && header->frame_cnt <= FLIGHT_FRAME_CNT &&
	       header->node_cnt > 0 && header->node_cnt <= FLIGHT_NODE_CNT &&
	       header->lane_cnt <= FLIGHT_LANE_CNT && header->gpu_lane_cnt <= FLIGHT_GPU_LANE_CNT &&
	       header->gpu_name < header->string_cnt;
}

static int read_header(struct reader *r, struct flightlog_file_header *ret)
{
	if (r->len < sizeof(*ret))
		return err_set(r->err, EINVAL, "%s: expected a header of %zu bytes, found %zu",
			       r->path, sizeof(*ret), r->len);
	if (r->len > FLIGHTLOG_MAX_BYTES)
		return err_set(r->err, EINVAL, "%s: %zu bytes, the limit is %u", r->path, r->len,
			       FLIGHTLOG_MAX_BYTES);
	memcpy(ret, r->data, sizeof(*ret));
	if (ret->magic != FLIGHTLOG_MAGIC || ret->version != FLIGHTLOG_VERSION)
		return err_set(r->err, EINVAL,
			       "%s:0: expected a flight log of version %u, found %08x/%u", r->path,
			       FLIGHTLOG_VERSION, ret->magic, ret->version);
	if (!tables_fit(ret))
		return err_set(r->err, EINVAL,
			       "%s:0: expected tables of a recorder's size, found %llu strings, "
			       "%llu frames, %llu nodes, %llu lanes",
			       r->path, (unsigned long long)ret->string_cnt,
			       (unsigned long long)ret->frame_cnt,
			       (unsigned long long)ret->node_cnt,
			       (unsigned long long)ret->lane_cnt);
	if (!flightlog_time_ok(ret->mono_ns) || !flightlog_time_ok(ret->wall_ns))
		return err_set(r->err, EINVAL, "%s:0: expected clocks in range, found %lld, %lld",
			       r->path, (long long)ret->mono_ns, (long long)ret->wall_ns);
	r->at = sizeof(*ret);
	return 0;
}

static void take_header(const struct flightlog_file_header *header, struct flightlog *log)
{
	log->rank = header->rank;
	log->world_size = header->world_size;
	log->pid = header->pid;
	log->training_tid = header->training_tid;
	log->mono_ns = header->mono_ns;
	log->wall_ns = header->wall_ns;
	log->gpu_name = (uint32_t)header->gpu_name;
	(void)flightlog_text(log->host, sizeof(log->host), header->host,
			     strnlen(header->host, sizeof(header->host)));
	for (size_t i = 0; i < FLIGHT_SOURCE_CNT; i++) {
		uint32_t state = header->sources[i].state;

		log->sources[i].state = state <= FLIGHT_ABSENT ? state : FLIGHT_UNTRIED;
		(void)flightlog_text(log->sources[i].why, sizeof(log->sources[i].why),
				     header->sources[i].why,
				     strnlen(header->sources[i].why, sizeof(log->sources[i].why)));
	}
	drops_load(header->drops, &log->drops);
	drops_load(header->before, &log->before);
	log->begun = true;
}

int flightlog_parse(const char *path, const void *data, size_t len, struct flightlog *ret,
		    struct err *err)
{
	struct reader r = { .path = path, .data = data, .len = len, .err = err };
	struct flightlog_file_header header;
	struct flightlog log;
	int error = read_header(&r, &header);

	if (error < 0)
		return error;
	flightlog_init(&log);
	take_header(&header, &log);
	error = read_sections(&r, &header, &log);
	if (error < 0)
		flightlog_done(&log);
	else
		*ret = log;
	return error;
}

static int read_fd(const char *path, int fd, struct flightlog *ret, struct err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t len;
	int error = file_read_whole(path, fd, FLIGHTLOG_MAX_BYTES, &data, &len, err);

	return error < 0 ? error : flightlog_parse(path, data, len, ret, err);
}

int flightlog_read(const char *path, struct flightlog *ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), error;

	if (fd < 0)
		return err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	error = read_fd(path, fd, ret, err);
	(void)close(fd);
	return error;
}
