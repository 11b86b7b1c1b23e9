/* SPDX-License-Identifier: Apache-2.0 */
/* The truth about a simulated job, as JSON. */
#include "model/rankset.h"
#include "simulate/hang/hangjob.h"
#include "simulate/simulation.h"

#include <math.h>
#include <string.h>

#define MIN_GAIN_PCT 1 /* smaller gains are not listed in reports by default */

struct gain {
	double repair_ms; /* per iteration: the gain if only this fault is repaired */
	double alone_ms;  /* per iteration: its cost if it is the only fault */
};

/* The job's iteration with the faults whose bits are set. */
static int play_with(struct simulation *sim, uint32_t mask, double *ret_ns)
{
	int error;

	for (size_t i = 0; i < sim->fault_cnt; i++)
		sim->faults[i].off = !(mask & 1u << i);
	error = simulation_meet(sim, ret_ns);
	for (size_t i = 0; i < sim->fault_cnt; i++)
		sim->faults[i].off = false;
	return error;
}

/*
 * If one fault hides another, repairing either one gains little, and only the cost of each alone
 * shows their size.
 */
static int measure_gains(struct simulation *sim, struct gain *ret)
{
	uint32_t all = (1u << sim->fault_cnt) - 1;
	double ns;
	int error = 0;

	if (sim->fault_cnt == 1)
		ret[0].repair_ms = ret[0].alone_ms =
			fmax(0, sim->iteration_ns - sim->healthy_ns) / 1e6;
	for (size_t i = 0; i < sim->fault_cnt && sim->fault_cnt > 1; i++) {
		error = play_with(sim, all & ~(1u << i), &ns);
		if (error < 0)
			return error;
		ret[i].repair_ms = fmax(0, sim->iteration_ns - ns) / 1e6;
		error = play_with(sim, 1u << i, &ns);
		if (error < 0)
			return error;
		ret[i].alone_ms = fmax(0, ns - sim->healthy_ns) / 1e6;
	}
	/* Restores the ends of the full job. */
	return sim->fault_cnt > 1 ? play_with(sim, all, &ns) : 0;
}

static double pct_of(const struct simulation *sim, double ms)
{
	return 100 * ms * 1e6 / sim->iteration_ns;
}

/* "a,b" as ["a", "b"]. */
static void put_words(struct str *out, const char *words)
{
	const char *comma;

	for (bool first = true; *words != '\0'; first = false) {
		comma = strchrnul(words, ',');
		str_append(out, first ? "\"" : ", \"");
		str_append_len(out, words, (size_t)(comma - words));
		str_append(out, "\"");
		words = *comma == ',' ? comma + 1 : comma;
	}
}

static void put_size(const struct simulation *sim, const struct fault *f, struct gain gain,
		     struct str *out)
{
	str_printf(out,
		   "\",\n     \"when\": \"%s\", \"onset_iteration\": %u, \"size\": %.4g,\n"
		   "     \"gain_ms_per_iteration\": %.3f, \"gain_pct\": %.2f, "
		   "\"alone_ms_per_iteration\": %.3f, \"alone_pct\": %.2f}",
		   fault_when_name(f->plan.when), f->onset, f->size, gain.repair_ms,
		   pct_of(sim, gain.repair_ms), gain.alone_ms, pct_of(sim, gain.alone_ms));
}

static int put_fault(const struct simulation *sim, const struct fault *f, struct gain gain,
		     struct str *out)
{
	const struct fault_text *text = fault_text(f->plan.kind);
	rankset_vec hit = { 0 };
	int error = fault_ranks_hit(f, &sim->layout, sim->options.seed, sim->iteration_cnt, &hit);
	bool all = hit.cnt == (size_t)sim->layout.worker_cnt;

	str_printf(out, "    {\"fault\": \"%s\", \"cause\": \"%s\", \"causes_accepted\": [\"%s\"%s",
		   text->name, text->cause, text->cause, text->also[0] != '\0' ? ", " : "");
	put_words(out, text->also);
	str_append(out, "],\n     \"functions_accepted\": [");
	put_words(out, text->functions);
	str_printf(out, "], \"scope\": \"%s\",\n     \"ranks\": \"", all ? "all" : "some");
	if (hit.cnt > 0)
		rankset_format(out, hit.data, hit.cnt);
	str_append(out, "\", \"ranks_possible\": \"");
	rankset_format(out, f->ranks, f->rank_cnt);
	put_size(sim, f, gain, out);
	vec_done(&hit);
	return error;
}

static void put_ranks(struct str *out, const char *key, const int *ranks, size_t cnt)
{
	str_printf(out, "  \"%s\": \"", key);
	rankset_format(out, ranks, cnt);
	str_append(out, "\",\n");
}

static void put_job(const struct simulation *sim, struct str *out)
{
	const struct layout *l = &sim->layout;

	str_printf(out,
		   "  \"workers\": %d, \"seed\": %llu, \"strength\": %g, \"iterations\": %u,\n"
		   "  \"layout\": {\"tensor\": %d, \"pipeline\": %d, \"data\": %d, \"shard\": %d, "
		   "\"expert\": %d, \"host_workers\": %d, \"rack_hosts\": %d},\n"
		   "  \"iteration_ms\": %.3f, \"healthy_iteration_ms\": %.3f,\n",
		   l->worker_cnt, (unsigned long long)sim->options.seed, sim->options.strength,
		   sim->iteration_cnt, l->tp, l->pp, l->dp, l->shard, l->ep, l->host_gpus,
		   l->rack_hosts, sim->iteration_ns / 1e6, sim->healthy_ns / 1e6);
}

int simulate_truth(struct simulation *sim, struct str *out)
{
	struct gain gains[SCENARIO_FAULTS] = { 0 };
	int error = measure_gains(sim, gains);
	bool abnormal = false;

	if (error < 0)
		return error;
	for (size_t i = 0; i < sim->fault_cnt; i++)
		abnormal |= pct_of(sim, gains[i].alone_ms) >= MIN_GAIN_PCT;
	str_printf(out,
		   "{\n  \"schema\": \"perftracker.truth.v1\",\n  \"scenario\": \"%s\",\n"
		   "  \"source\": \"%s\",\n  \"verdict\": \"%s\",\n",
		   sim->name, sim->scenario.source, abnormal ? "abnormal" : "healthy");
	put_job(sim, out);
	put_ranks(out, "missing", sim->missing, sim->missing_cnt);
	put_ranks(out, "late", sim->late, sim->late_cnt);
	str_append(out, "  \"faults\": [");
	for (size_t i = 0; i < sim->fault_cnt && error == 0; i++) {
		str_append(out, i > 0 ? ",\n" : "\n");
		error = put_fault(sim, &sim->faults[i], gains[i], out);
	}
	str_append(out, sim->fault_cnt > 0 ? "\n  ]\n}\n" : "]\n}\n");
	return error < 0 ? error : str_error(out);
}

static void put_scenario(const struct scenario *s, bool json, bool last, struct str *out)
{
	size_t cnt = scenario_fault_cnt(s);

	if (!json) {
		str_printf(out, "  %-20s  %6d  %s (%s)\n", s->name, s->layout.worker_cnt, s->help,
			   s->source);
		return;
	}
	str_printf(out,
		   "  {\"name\": \"%s\", \"workers\": %d, \"help\": \"%s\", \"source\": \"%s\", "
		   "\"faults\": [",
		   s->name, s->layout.worker_cnt, s->help, s->source);
	for (size_t i = 0; i < cnt; i++)
		str_printf(out, "%s{\"fault\": \"%s\", \"size\": %g, \"means\": \"%s\"}",
			   i > 0 ? ", " : "", fault_text(s->faults[i].kind)->name,
			   s->faults[i].size, fault_text(s->faults[i].kind)->help);
	str_printf(out, "]}%s\n", last ? "" : ",");
}

/* Jobs that leave dumps instead of traces. */
static void put_hangs(bool json, struct str *out)
{
	const char *help, *name = hangjob_name(0, &help);

	str_append(out, json ? "" : "\n  jobs that hang       what happens\n");
	for (size_t i = 0; name != NULL; name = hangjob_name(++i, &help)) {
		const char *more;
		const bool last = hangjob_name(i + 1, &more) == NULL;

		if (json)
			str_printf(out,
				   "  {\"name\": \"%s\", \"workers\": %d, \"help\": \"%s\", "
				   "\"source\": \"requirements\", \"faults\": [], "
				   "\"dumps\": true}%s\n",
				   name, HANGJOB_WORKERS, help, last ? "" : ",");
		else
			str_printf(out, "  %-20s %s\n", name, help);
	}
}

void simulate_list(struct str *out, bool json)
{
	size_t cnt;
	const struct scenario *list = scenario_list(&cnt);

	str_append(out, json ? "[\n" : "  scenario             workers  what happens (source)\n");
	for (size_t i = 0; i < cnt; i++)
		put_scenario(&list[i], json, false, out);
	put_hangs(json, out);
	str_append(out, json ? "]\n" : "");
}
