/* SPDX-License-Identifier: Apache-2.0 */
#include "format/sidecar/sidecar.h"

#include "base/file.h"
#include "model/gpumetric.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define GPM_HZ_MAX 30u /* above this rate the samples are counters at kHz */

/* A section without its record type. */
struct section_view {
	void **data;
	size_t *cnt, *cap;
	size_t record_bytes;
};

static struct section_view section_view(struct sidecar *sidecar, enum sidecar_section section)
{
	switch (section) {
#define X(id, field, type)                                                                        \
	case SIDECAR_##id:                                                                        \
		return (struct section_view){ (void **)&sidecar->field.data, &sidecar->field.cnt, \
					      &sidecar->field.cap, sizeof(type) };
		SIDECAR_SECTION_LIST(X)
#undef X
	case SIDECAR_SECTION_CNT:
		break;
	}
	return (struct section_view){ NULL };
}

void sidecar_done(struct sidecar *sidecar)
{
#define X(id, field, type) vec_done(&sidecar->field);
	SIDECAR_SECTION_LIST(X)
#undef X
}

static int write_sections(struct sidecar *sidecar, int fd)
{
	struct sidecar_header header = sidecar->header;
	uint64_t off = sizeof(header);
	int ret;

	header.magic = SIDECAR_MAGIC;
	header.version = SIDECAR_VERSION;
	header.section_cnt = SIDECAR_SECTION_CNT;
	for (int i = 0; i < SIDECAR_SECTION_CNT; i++) {
		struct section_view view = section_view(sidecar, (enum sidecar_section)i);

		header.sections[i].off = off;
		header.sections[i].cnt = *view.cnt;
		off += *view.cnt * view.record_bytes;
	}
	ret = file_write_all(fd, &header, sizeof(header));
	for (int i = 0; i < SIDECAR_SECTION_CNT && ret == 0; i++) {
		struct section_view view = section_view(sidecar, (enum sidecar_section)i);

		ret = file_write_all(fd, *view.data, *view.cnt * view.record_bytes);
	}
	return ret;
}

int sidecar_write(const struct sidecar *sidecar, const char *path, struct err *err)
{
	struct sidecar view = *sidecar;
	struct file_draft draft;
	int ret = file_begin(&draft, path, 0600, err);

	return ret < 0 ? ret : file_commit(&draft, write_sections(&view, draft.fd), err);
}

/* The caller may pass texts without NUL; they are written as they are and terminated when read. */
int sidecar_write_fd(const struct sidecar *sidecar, int fd)
{
	struct sidecar view = *sidecar;

	return lseek(fd, 0, SEEK_SET) < 0 ? -errno : write_sections(&view, fd);
}

static void terminate_texts(struct sidecar *sidecar)
{
	sidecar->header.host[sizeof(sidecar->header.host) - 1] = '\0';
	vec_foreach(thread, &sidecar->threads)
		thread->name[sizeof(thread->name) - 1] = '\0';
	vec_foreach(thief, &sidecar->thieves) {
		thief->comm[sizeof(thief->comm) - 1] = '\0';
		thief->command[sizeof(thief->command) - 1] = '\0';
		thief->cpus[sizeof(thief->cpus) - 1] = '\0';
	}
	vec_foreach(network, &sidecar->networks)
		network->why[sizeof(network->why) - 1] = '\0';
	vec_foreach(nic, &sidecar->nics)
		nic->name[sizeof(nic->name) - 1] = '\0';
	vec_foreach(gpu, &sidecar->gpus) {
		gpu->name[sizeof(gpu->name) - 1] = '\0';
		gpu->why[sizeof(gpu->why) - 1] = '\0';
	}
	vec_foreach(awaited, &sidecar->awaited)
		awaited->place[sizeof(awaited->place) - 1] = '\0';
	vec_foreach(id, &sidecar->gpu_ids)
		id->uuid[sizeof(id->uuid) - 1] = '\0';
}

static size_t header_bytes(size_t section_cnt)
{
	return offsetof(struct sidecar_header, sections) +
	       section_cnt * sizeof(((struct sidecar_header *)NULL)->sections[0]);
}

/*
 * Parses the header of a file with any number of sections: missing sections are empty, additional
 * ones ignored.
 */
static int parse_header(const char *path, const unsigned char *data, size_t len,
			struct sidecar_header *ret, struct err *err)
{
	struct sidecar_header header = { 0 };

	if (len < header_bytes(SIDECAR_FIRST_SECTIONS))
		return err_set(err, EINVAL, "%s: expected a header of %zu bytes, found %zu", path,
			       header_bytes(SIDECAR_FIRST_SECTIONS), len);
	memcpy(&header, data, offsetof(struct sidecar_header, sections));
	if (header.magic != SIDECAR_MAGIC || header.version != SIDECAR_VERSION)
		return err_set(err, EINVAL, "%s:0: expected a sidecar of version %u, found %08x/%u",
			       path, SIDECAR_VERSION, header.magic, header.version);
	if (header.section_cnt == 0)
		header.section_cnt = SIDECAR_FIRST_SECTIONS;
	if (header.section_cnt < SIDECAR_FIRST_SECTIONS ||
	    header.section_cnt > SIDECAR_SECTIONS_MAX || len < header_bytes(header.section_cnt))
		return err_set(err, EINVAL,
			       "%s: expected %u to %u sections and their places, found %u", path,
			       SIDECAR_FIRST_SECTIONS, SIDECAR_SECTIONS_MAX, header.section_cnt);
	memcpy(header.sections, data + offsetof(struct sidecar_header, sections),
	       MIN(header.section_cnt, (uint32_t)SIDECAR_SECTION_CNT) * sizeof(header.sections[0]));
	*ret = header;
	return 0;
}

static int parse_section(const char *path, const unsigned char *data, size_t len, size_t idx,
			 struct sidecar *sidecar, struct err *err)
{
	struct section_view view = section_view(sidecar, (enum sidecar_section)idx);
	uint64_t off = sidecar->header.sections[idx].off, cnt = sidecar->header.sections[idx].cnt;
	size_t room;
	int ret;

	if (off < header_bytes(sidecar->header.section_cnt) || off > len)
		return err_set(err, EINVAL, "%s: section %zu at byte %llu, file has %zu", path, idx,
			       (unsigned long long)off, len);
	room = (len - (size_t)off) / view.record_bytes;
	if (cnt > room)
		return err_set(err, EINVAL,
			       "%s: byte %llu: section %zu: expected %llu records, room for %zu",
			       path, (unsigned long long)off, idx, (unsigned long long)cnt, room);
	if (cnt == 0)
		return 0;
	ret = vec_reserve_bytes(view.data, view.cap, (size_t)cnt, view.record_bytes);
	if (ret < 0)
		return err_set(err, -ret, "%s: out of memory", path);
	memcpy(*view.data, data + off, (size_t)cnt * view.record_bytes);
	*view.cnt = (size_t)cnt;
	return 0;
}

int sidecar_parse(const char *path, const void *data, size_t len, struct sidecar *ret,
		  struct err *err)
{
	struct sidecar sidecar = { 0 };
	int r;

	if (len > SIDECAR_MAX_BYTES)
		return err_set(err, EINVAL, "%s: %zu bytes, the limit is %u", path, len,
			       SIDECAR_MAX_BYTES);
	r = parse_header(path, data, len, &sidecar.header, err);
	for (size_t i = 0;
	     i < MIN(sidecar.header.section_cnt, (uint32_t)SIDECAR_SECTION_CNT) && r == 0; i++)
		r = parse_section(path, data, len, i, &sidecar, err);
	if (r < 0) {
		sidecar_done(&sidecar);
		return r;
	}
	terminate_texts(&sidecar);
	*ret = sidecar;
	return 0;
}

int sidecar_read_fd(const char *path, int fd, struct sidecar *ret, struct err *err)
{
	_cleanup_free_ char *data = NULL;
	size_t len;
	int r = file_read_whole(path, fd, SIDECAR_MAX_BYTES, &data, &len, err);

	return r < 0 ? r : sidecar_parse(path, data, len, ret, err);
}

int sidecar_read(const char *path, struct sidecar *ret, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK), r;

	if (fd < 0)
		return err_set(err, errno, "%s: cannot open: %s", path, strerror(errno));
	r = sidecar_read_fd(path, fd, ret, err);
	(void)close(fd);
	return r;
}

/* The totals of the training thread: last sample minus first. */
static void summarize_thread(const struct sidecar *sidecar, struct sidecar_info *info)
{
	const struct sidecar_sample *first = NULL, *last = NULL;
	double wall_ns;

	vec_foreach(sample, &sidecar->samples) {
		if (sample->tid != sidecar->header.tid)
			continue;
		if (first == NULL)
			first = sample;
		last = sample;
	}
	if (first == NULL || last->time_ns <= first->time_ns || last->cpu_ns < first->cpu_ns ||
	    last->run_delay_ns < first->run_delay_ns)
		return;
	wall_ns = (double)last->time_ns - (double)first->time_ns;
	info->has_thread = true;
	info->cpu_frac = (double)(last->cpu_ns - first->cpu_ns) / wall_ns;
	info->run_delay_frac = (double)(last->run_delay_ns - first->run_delay_ns) / wall_ns;
}

/* 0.1: a process never sampled on the worker's CPU may still have displaced the worker. */
static double thief_weight(const struct sidecar_thief *thief)
{
	return thief->cpu_frac * (thief->overlap_frac + 0.1);
}

static void insert_thief(struct sidecar_info *info, const struct sidecar_thief *thief)
{
	size_t at = info->thief_cnt;

	while (at > 0 && thief_weight(&info->thieves[at - 1]) < thief_weight(thief))
		at--;
	if (at == ARRAY_SIZE(info->thieves))
		return;
	if (info->thief_cnt < ARRAY_SIZE(info->thieves))
		info->thief_cnt++;
	memmove(&info->thieves[at + 1], &info->thieves[at],
		(info->thief_cnt - 1 - at) * sizeof(*thief));
	info->thieves[at] = *thief;
}

/* Share of the time between the first and last sample in which some task stalled. */
static double pressure_frac(const struct sidecar *sidecar, size_t which)
{
	const struct sidecar_pressure *first, *last;
	double frac;

	if (sidecar->pressures.cnt < 2)
		return -1;
	first = &sidecar->pressures.data[0];
	last = &sidecar->pressures.data[sidecar->pressures.cnt - 1];
	if (last->time_ns <= first->time_ns || last->some_us[which] < first->some_us[which] ||
	    last->some_us[which] == SIDECAR_PRESSURE_UNKNOWN)
		return -1;
	frac = (double)(last->some_us[which] - first->some_us[which]) * 1e3 /
	       ((double)last->time_ns - (double)first->time_ns);
	return frac < 1 ? frac : 1;
}

static void summarize_network(const struct sidecar *sidecar, struct sidecar_info *info)
{
	const struct sidecar_socket *sockets = sidecar->socket_samples.data;
	size_t cnt = sidecar->socket_samples.cnt;

	if (cnt >= 2 && sockets[cnt - 1].tx_bytes >= sockets[0].tx_bytes &&
	    sockets[cnt - 1].rx_bytes >= sockets[0].rx_bytes) {
		info->has_sockets = true;
		info->tx_bytes = sockets[cnt - 1].tx_bytes - sockets[0].tx_bytes;
		info->rx_bytes = sockets[cnt - 1].rx_bytes - sockets[0].rx_bytes;
	}
}

/* The growth of one counter of a GPU per second; -1: unknown. */
static double gpu_rate(const struct sidecar *sidecar, uint32_t gpu, enum gpu_metric metric)
{
	const struct sidecar_gpu_sample *first = NULL, *last = NULL;
	double seconds;

	vec_foreach(sample, &sidecar->gpu_samples) {
		if (sample->gpu != gpu || sample->metric != metric)
			continue;
		if (first == NULL)
			first = sample;
		last = sample;
	}
	if (first == NULL)
		return -1;
	seconds = ((double)last->time_ns - (double)first->time_ns) / (double)NSEC_PER_SEC;
	return seconds > 0 && last->value >= first->value ? (last->value - first->value) / seconds
							  : -1;
}

/* Limits may overlap: returns the largest share. */
static double gpu_throttled(const struct sidecar *sidecar, uint32_t gpu)
{
	double power = gpu_rate(sidecar, gpu, GPU_METRIC_THROTTLED_POWER);
	double heat = gpu_rate(sidecar, gpu, GPU_METRIC_THROTTLED_THERMAL);
	double brake = gpu_rate(sidecar, gpu, GPU_METRIC_THROTTLED_BRAKE);
	double most = power > heat ? power : heat;

	most = most > brake ? most : brake;
	return most < 1 ? most : 1;
}

static void summarize_gpus(const struct sidecar *sidecar, struct sidecar_info *info)
{
	info->gpu_throttled_frac = info->gpu_clock_frac = -1;
	for (uint32_t i = 0; i < MIN(sidecar->gpus.cnt, (size_t)SIDECAR_GPUS_MAX); i++) {
		double throttled = gpu_throttled(sidecar, i), clock;
		struct sidecar_gpu_sum sum;

		if (throttled > info->gpu_throttled_frac)
			info->gpu_throttled_frac = throttled;
		sidecar_sum_gpu(sidecar, i, GPU_METRIC_CORE_CLOCK, &sum);
		clock = sum.cnt > 0 && sidecar->gpus.data[i].core_hz > 0
				? sum.mean / sidecar->gpus.data[i].core_hz
				: -1;
		if (clock >= 0 && (info->gpu_clock_frac < 0 || clock < info->gpu_clock_frac))
			info->gpu_clock_frac = clock < 1 ? clock : 1;
	}
}

/*
 * Describes the samples that replace absent ones. Uses the window's last second: faster samples may
 * have ended before.
 */
static const char *in_their_place(const struct sidecar *sidecar, uint32_t gpu)
{
	int64_t end_ns = sidecar->header.end_ns;
	int64_t since_ns = end_ns > NSEC_PER_SEC ? end_ns - NSEC_PER_SEC : 0;
	uint64_t fast = 0, all = 0;

	vec_foreach(sample, &sidecar->gpu_samples) {
		if (sample->gpu != gpu)
			continue;
		all++;
		fast += sample->metric == GPU_METRIC_CORES_ACTIVE && sample->time_ns > since_ns;
	}
	if (fast > GPM_HZ_MAX)
		return "";
	if (fast > 0)
		return "; ten samples a second in their place";
	return all > 0 ? "; one sample a second in their place" : "";
}

static void summarize_absences(const struct sidecar *sidecar, struct sidecar_info *info)
{
	for (uint32_t i = 0; i < MIN(sidecar->gpus.cnt, (size_t)SIDECAR_GPUS_MAX); i++) {
		const struct sidecar_gpu *gpu = &sidecar->gpus.data[i];
		struct sidecar_absence *absence = &info->absences[info->absence_cnt];

		if (gpu->why[0] == '\0')
			continue;
		absence->gpu = gpu->index;
		(void)snprintf(absence->why, sizeof(absence->why), "%.*s%s", (int)sizeof(gpu->why),
			       gpu->why, in_their_place(sidecar, i));
		info->absence_cnt++;
	}
}

void sidecar_summarize(const struct sidecar *sidecar, struct sidecar_info *ret)
{
	struct sidecar_info info = { .rank = sidecar->header.rank,
				     .pid = sidecar->header.pid,
				     .tid = sidecar->header.tid,
				     .psi_cpu_frac = pressure_frac(sidecar, 0),
				     .psi_io_frac = pressure_frac(sidecar, 1),
				     .psi_memory_frac = pressure_frac(sidecar, 2),
				     .flows = sidecar->flows.data,
				     .flow_cnt = sidecar->flows.cnt };

	if (__builtin_sub_overflow(sidecar->header.end_ns, sidecar->header.start_ns,
				   &info.window_ns))
		info.window_ns = 0;
	summarize_thread(sidecar, &info);
	summarize_network(sidecar, &info);
	summarize_gpus(sidecar, &info);
	summarize_absences(sidecar, &info);
	info.gc_cnt = sidecar->collections.cnt;
	vec_foreach(gc, &sidecar->collections) {
		if (gc->dur_ns < 0 || __builtin_add_overflow(info.gc_ns, gc->dur_ns, &info.gc_ns))
			break;
	}
	vec_foreach(thief, &sidecar->thieves)
		insert_thief(&info, thief);
	if (sidecar->awaited.cnt > 0 && sidecar->awaited.data[0].frac >= 0 &&
	    sidecar->awaited.data[0].frac <= 1 && sidecar->awaited.data[0].by < AWAITED_BY_CNT)
		info.awaited = sidecar->awaited.data[0];
	*ret = info;
}

void sidecar_thief_text(const struct sidecar_thief *thief, char *text, size_t size)
{
	char many[64] = "";

	if (thief->process_cnt > 1)
		(void)snprintf(many, sizeof(many), "%u processes like ", thief->process_cnt);
	(void)snprintf(text, size, "%spid %u (%s) used %.2f CPU%s%s", many, thief->pid,
		       thief->command[0] != '\0' ? thief->command : thief->comm, thief->cpu_frac,
		       thief->cpus[0] != '\0' ? " on CPUs " : "", thief->cpus);
}

void sidecar_awaited_text(const struct sidecar_awaited *awaited, char *text, size_t size)
{
	const struct awaited of = { (enum awaited_by)awaited->by, awaited->frac, awaited->place };

	awaited_write(&of, text, size);
}

void sidecar_sum_gpu(const struct sidecar *sidecar, uint32_t gpu, uint32_t metric,
		     struct sidecar_gpu_sum *ret)
{
	struct sidecar_gpu_sum sum = { 0 };

	vec_foreach(sample, &sidecar->gpu_samples) {
		if (sample->gpu != gpu || sample->metric != metric)
			continue;
		if (sum.cnt++ == 0)
			sum.first = sample->value;
		sum.last = sample->value;
		sum.mean += (sample->value - sum.mean) / (double)sum.cnt;
	}
	*ret = sum;
}
