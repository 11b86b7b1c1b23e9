/* SPDX-License-Identifier: Apache-2.0 */
#include "summarize/pass.h"

#include <errno.h>
#include <string.h>

#define AWAITED_SAMPLES 5u /* fewer say nothing of where those spent their time */

static double track_mean(const struct trace *trace, enum resource resource, int64_t tid,
			 const struct window *window)
{
	const struct track *t = utilize_find_track(trace, resource, -1, tid);
	double sum = 0;
	size_t cnt = 0;

	for (size_t i = 0; t != NULL && i < t->cnt; i++) {
		if (t->samples[i].time_ns > window->start_ns &&
		    t->samples[i].time_ns <= window->end_ns) {
			sum += t->samples[i].value;
			cnt++;
		}
	}
	return cnt > 0 ? sum / (double)cnt : -1;
}

/* The innermost Python function in which a thread spent most of the window. */
static int main_function_of(struct pass *p, uint32_t lane, struct fingerprint *fp, const char **ret)
{
	struct hostpath path = pass_hostpath(p);
	struct hostwalk *walk = hostwalk_new(&path, lane);
	struct host_segment s;
	struct idmap time_of = { 0 };
	uint32_t best = FRAME_NONE, best_us = 0;
	int error = walk != NULL ? 0 : -ENOMEM, found;

	while (error == 0 && (found = hostwalk_next(walk, &s)) != 0) {
		uint32_t us;

		if (found < 0 || s.class == CLASS_IDLE ||
		    p->cct.nodes.data[s.node].kind != KIND_PYTHON) {
			error = MIN(found, 0);
			continue;
		}
		us = idmap_get(&time_of, s.node);
		us = (us == IDMAP_NONE ? 0 : us) + (uint32_t)((s.end_ns - s.start_ns) / 1000);
		error = idmap_set(&time_of, s.node, us);
		if (us > best_us) {
			best = s.node;
			best_us = us;
		}
	}
	if (error == 0 && best != FRAME_NONE) {
		*ret = arena_strdup(&fp->arena,
				    strtab_text(&p->cct.names, p->cct.nodes.data[best].name));
		error = *ret != NULL ? 0 : -ENOMEM;
	}
	(void)hostwalk_free(walk);
	idmap_done(&time_of);
	return error;
}

/* Finds the thread with most CPU time besides the training and autograd threads. */
static int find_other_thread(struct pass *p, struct fingerprint *fp)
{
	const struct trace *t = p->trace;
	uint32_t best = LANE_NONE;

	for (size_t i = 0; i < t->track_cnt; i++) {
		double frac;

		if (t->tracks[i].resource != RESOURCE_CPU_THREAD)
			continue;
		for (uint32_t lane = 0; lane < t->lane_cnt; lane++) {
			if (t->lanes[lane].type != LANE_THREAD ||
			    t->lanes[lane].tid != t->tracks[i].tid ||
			    lane == p->window.training_lane || lane == p->window.backward_lane)
				continue;
			frac = track_mean(t, RESOURCE_CPU_THREAD, t->tracks[i].tid, &p->window);
			if (frac > fp->host_stats.other_cpu_frac) {
				fp->host_stats.other_cpu_frac = frac;
				best = lane;
			}
		}
	}
	if (best == LANE_NONE)
		return 0;
	return main_function_of(p, best, fp, &fp->host_stats.other_name);
}

/* Copies the list of GPUs with absent samples. */
static int copy_absences(const struct sidecar_info *info, struct fingerprint *fp)
{
	fp->absences = arena_calloc(&fp->arena, info->absence_cnt + 1, sizeof(*fp->absences));
	if (fp->absences == NULL)
		return -ENOMEM;
	for (size_t i = 0; i < info->absence_cnt; i++) {
		const struct sidecar_absence *absence = &info->absences[i];
		struct fp_absence *copy = &fp->absences[fp->absence_cnt++];

		copy->gpu = absence->gpu <= INT32_MAX ? (int32_t)absence->gpu : -1;
		copy->why = arena_strdup(&fp->arena, absence->why);
		if (copy->why == NULL)
			return -ENOMEM;
	}
	return 0;
}

/* What those did that the training thread waited for. Returns 0 or -ENOMEM. */
static int copy_awaited(const struct sidecar_info *info, struct fingerprint *fp)
{
	char text[SIDECAR_AWAITED_TEXT];

	if (info->awaited.sample_cnt < AWAITED_SAMPLES)
		return 0;
	sidecar_awaited_text(&info->awaited, text, sizeof(text));
	fp->host_stats.awaited = arena_strdup(&fp->arena, text);
	return fp->host_stats.awaited != NULL ? 0 : -ENOMEM;
}

int hoststats_add(struct pass *p, struct fingerprint *fp)
{
	const struct trace *t = p->trace;
	int64_t tid =
		p->window.training_lane != LANE_NONE ? t->lanes[p->window.training_lane].tid : -1;
	char thief[512];
	const struct sidecar_info *info = p->options->sidecar;

	fp->host_stats.cpu_frac = track_mean(t, RESOURCE_CPU_THREAD, tid, &p->window);
	fp->host_stats.run_delay_frac = track_mean(t, RESOURCE_RUN_DELAY, tid, &p->window);
	for (size_t i = 0; i < t->event_cnt; i++) {
		const struct event *e = &t->events[i];

		if (e->kind == KIND_GC && e->start_ns >= p->window.start_ns &&
		    e->start_ns < p->window.end_ns) {
			fp->host_stats.gc_ns = add_saturated(fp->host_stats.gc_ns, e->dur_ns);
			fp->host_stats.gc_cnt++;
		}
	}
	for (size_t i = 0; i < t->track_cnt; i++)
		fp->resources |= 1u << t->tracks[i].resource;
	if (info != NULL) {
		fp->host_stats.psi_cpu_frac = info->psi_cpu_frac;
		fp->host_stats.psi_io_frac = info->psi_io_frac;
		fp->host_stats.psi_memory_frac = info->psi_memory_frac;
		fp->host_stats.gpu_throttled_frac =
			t->meta.has_device ? info->gpu_throttled_frac : -1;
		fp->host_stats.gpu_clock_frac = t->meta.has_device ? info->gpu_clock_frac : -1;
	}
	if (info != NULL && (copy_awaited(info, fp) < 0 || hostflows_add(info, fp) < 0))
		return -ENOMEM;
	if (info != NULL && info->absence_cnt > 0 && copy_absences(info, fp) < 0)
		return -ENOMEM;
	if (info != NULL && info->thief_cnt > 0) {
		fp->host_stats.thief_frac = info->thieves[0].cpu_frac;
		sidecar_thief_text(&info->thieves[0], thief, sizeof(thief));
		fp->host_stats.thief = arena_strdup(&fp->arena, thief);
		if (fp->host_stats.thief == NULL)
			return -ENOMEM;
	}
	return find_other_thread(p, fp);
}
