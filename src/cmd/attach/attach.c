#include "cmd/attach/attachsample.h"
#include "cmd/cmd.h"
#include <stdio.h>
#include <string.h>
static volatile sig_atomic_t interrupted;
static int attach_main(const struct command *command, int argc, char **argv)
{
	jobproc_vec procs = {0}; struct jobranks ranks = {0}; struct err err = {""}; struct attachsample sample;
	uint32_t pids[16]; size_t n = 0; (void)command;
	for (int i = 1; i < argc && n < 16; i++) pids[n++] = (uint32_t)atoi(argv[i]);
	if (jobprocs_list("/proc", &procs) < 0) return 1;
	if (jobprocs_ranks(&procs, pids, n, &ranks, &err) < 0) { fprintf(stderr, "%s\n", err.text); return 1; }
	vec_foreach(r, &ranks.ranks) printf("rank %d pid %u\n", r->rank, r->pid);
	if (attachsample_take(&sample, &ranks, 50 * NSEC_PER_MSEC, 100, &interrupted, &err) < 0) { fprintf(stderr, "%s\n", err.text); return 1; }
	for (size_t i = 0; i < sample.job.cnt; i++) {
		const struct sampled_rank *r = &sample.job.ranks[i];
		printf("RANK %d moments %zu stacks %zu late %zu reader %.2f ms setup %.2f ms err %s\n", r->rank, r->moment_cnt, r->stack_cnt, r->late_cnt, r->reader_ns/1e6, r->setup_ns/1e6, r->error);
		for (size_t k = 0; k < r->moment_cnt; k++) {
			const struct sampled_moment *m = &r->moments[k];
			printf("%u %c %lld %lld ", m->round, m->state, (long long)m->ran_ns/1000000, (long long)m->queued_ns/1000000);
			if (m->stack != SAMPLED_NONE) for (size_t f = 0; f < r->stacks[m->stack].frame_cnt && f < 400; f++) { const struct stacks_frame *x = &r->stacks[m->stack].frames[f]; if (!x->interpreter) printf("%s%s:%u < ", x->kind == STACKS_PYTHON ? "py " : "", x->function ? x->function : "?", x->line); }
			if (m->child_stack != SAMPLED_NONE) { printf(" CHILD "); for (size_t f = 0; f < r->stacks[m->child_stack].frame_cnt; f++) printf("%s < ", r->stacks[m->child_stack].frames[f].function); }
			printf("\n");
		}
	}
	attachsample_done(&sample);
	return 0;
}
const struct command cmd_attach = { .name = "attach", .summary = "diagnose a job that runs already", .usage = "PID", .about = "x\n", .run = attach_main };
