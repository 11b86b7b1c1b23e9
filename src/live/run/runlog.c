/* SPDX-License-Identifier: Apache-2.0 */
#include "live/run/runlog.h"

/* One event, one line. */
/* clang-format off */
static const struct log_phrase phrases[] = {
	/* the run: supervise.c */
	{ "run", NULL, "watching job {job} ({command}); results in {dir}" },
	{ "finished", NULL, "verdict: {verdict}[: {reason}][. Report: {report}]" },
	{ "own-cost", NULL, "PerfTracker's own cost: {cost}" },
	{ "earlier-results-kept", NULL, "the results of an earlier run are now in {dir}" },
	{ "folder-in-use", NULL, "{why}" },
	{ "not-attached", NULL, "{effect}: {why}" },
	{ "cannot-start", NULL, "cannot start {command}: {why}" },
	{ "nccl-plugin-kept", NULL, "NCCL's profiler plugin {plugin} is kept: {effect}; remedy: {remedy}" },
	{ "no-gpu-samples", NULL, "{dir}: {why}; {effect}" },
	{ "metrics", NULL, "metrics for Prometheus: {url}" },
	{ "page", NULL, "page: {url} (later: {later})" },
	{ "page-off", NULL, "no page: {why}" },
	{ "profile-asked", NULL, "profile {order} was asked for by {by}" },
	{ "metrics-off", NULL, "no metrics for Prometheus: {why}" },

	/* the job: hub.c, jobprofile.c */
	{ "state", "state=waiting", "" },
	{ "state", "state=ended", "" },
	{ "state", "state=profiling", "" }, /* event=profile says more */
	{ "state", "state=learning", "{workers|training process|training processes} connected; learning what an iteration is" },
	{ "state", "state=watching", "watching {workers|training process|training processes} at step {step}[; iterations of {iteration_ms} ms]" },
	{ "state", "state=slow", "" }, /* event=slow says more */
	{ "state", "state=blocked", "blocked at step {step}: no iteration ends any more" },
	{ "slow", NULL, "slow since step {since_step}: iterations of {baseline_ms} -> {now_ms} ms ({factor}x)" },
	{ "slow-over", NULL, "no longer slow at step {step}: iterations of {now_ms} ms" },
	{ "pace-accepted", NULL, "{what} (asked by process {by_pid})" },
	{ "checkup", NULL, "check-up: {verdict}: {reason}" },
	{ "checkup-failed", NULL, "no check-up: {why}" },
	{ "no-iterations", NULL, "no training iteration seen in {seconds} s; {remedy}" },
	{ "profile", "why=slowdown", "slow: iterations of {baseline_ms} -> {now_ms} ms[ ({ratio}x)]; profiling {workers|rank|ranks} at step {first_step}" },
	{ "profile", NULL, "profiling {workers|rank|ranks} at step {first_step}, for {iterations} iterations ({why})" },
	{ "profile-failed", NULL, "the profile failed: {why}" },
	{ "no-iterations", NULL, "no iteration was seen in {seconds} s: {remedy}" },
	{ "report", NULL, "{verdict}: {reason}" },
	{ "report-written", NULL, "report: {file}" },
	{ "report-not-made", NULL, "no report: {why}" },
	{ "report-not-written", NULL, "the report could not be written: {why}" },
	{ "report-not-printed", NULL, "the report could not be printed: {why}" },
	{ "overhead", NULL, "" }, /* in every report and in `perftracker status` */

	/* workers: hub.c, hostd */
	{ "worker-raised", NULL, "rank {rank} (process {pid}) ends at step {step} by an exception: {what}" },
	{ "part-of-job", NULL, "{ranks} of {world_size} ranks are watched by this run: it can find the job slow or stuck, but not healthy" },
	{ "worker-gone", NULL, "rank {rank} (process {pid}) ended at step {step} without saying so" },
	{ "worker-exit", NULL, "rank {rank} (process {pid}) ended {how}" },
	{ "job-restarted", NULL, "the job was restarted (time {restarts}), at step {step}: {why}" },
	{ "worker-missed", NULL, "rank {rank} is not in the profile: {why}" },
	{ "worker-refused", NULL, "process {pid} is not watched: {why}" },
	{ "hook-disabled", NULL, "rank {rank} (process {pid}) is not watched since step {step}: its hook has disabled itself" },
	{ "recorder-not-saved", NULL, "the flight recorder of worker {worker} was not saved: {why}" },
	{ "no-summarizer", NULL, "the window of worker {worker} could not be summarized" },
	{ "hub-silent", NULL, "no decisions for a minute; {effect}" },
	{ "refused", NULL, "{datagrams} invalid messages were refused" },

	/* other hosts: hosts.c, cluster */
	{ "hub", NULL, "the hub of job {job} is here; other hosts connect to {listens}" },
	{ "member", NULL, "a part of job {job}; its hub is at {hub}" },
	{ "joined", NULL, "joined the hub on {hub}; reports: {reports}" },
	{ "report-elsewhere", NULL, "the job's reports: {reports}" },
	{ "host-joined", NULL, "host {host} has joined: {hosts} now" },
	{ "host-ended", NULL, "" },
	{ "host-silent", NULL, "host {host} says nothing for {seconds} s: how its ranks are is not known" },
	{ "host-back", NULL, "host {host} is back" },
	{ "host-refused", NULL, "a host was refused: {why}" },
	{ "hub-lost", NULL, "nothing from the hub on {hub} for {seconds} s: {effect}" },
	{ "hub-not-reached", NULL, "the hub is not reached: {why}; {effect}" },
	{ "no-hub", NULL, "no hub for the hosts of this job: {why}; {effect}" },
	{ "members-missing", NULL, "{came} of {of} members came; missing: {missing}; remedy: {remedy}" },
	{ "member-twice", NULL, "two members have number {node_rank} ({hosts}): {effect}; remedy: {remedy}" },
	{ "other-version", NULL, "host {host} has version {version}, this one {here}" },
	{ "other-protocol", NULL, "host {host} has version {version}, this one {here}: {effect}; remedy: {remedy}" },
	{ "weak-secret", NULL, "no secret: {effect}; remedy: {remedy}" },
	{ "insecure", NULL, "{effect}" },
	{ "daemon-restarted", NULL, "the daemon was started again: {effect}" },
	{ "broker-restarted", NULL, "{why}: it was started again" },
	{ "broker-not-started", NULL, "nats-server was not started: {why}" },

	/* a fleet: fleet/, daemon.c */
	{ "hostd", NULL, "hostd of cluster {cluster} as host {host}: jobs attach at {socket}; bus: {bus}" },
	{ "hostd-not-started", NULL, "{why}" },
	{ "hostd-ends", NULL, "hostd ends with {jobs|job|jobs}: {effect}" },
	{ "hostd-ended", NULL, "hostd has ended; processes attached: {attached}, refused: {refused}; messages dropped: {messages_dropped}" },
	{ "hub-starts", NULL, "hub of cluster {cluster} on host {host}; bus: {bus}" },
	{ "hub-serves", NULL, "the hub serves cluster {cluster}; reports: {folder}" },
	{ "hub-not-started", NULL, "{why}" },
	{ "hub-refused", NULL, "{why}; remedy: {remedy}" },
	{ "hub-ends", NULL, "the hub ends with {jobs|job|jobs}: {effect}" },
	{ "hub-ended", NULL, "the hub has ended; messages that were not read: {unreadable}, of other clusters: {other_cluster}, dropped: {messages_dropped}; jobs that found no room: {jobs_dropped}" },
	{ "bus-connected", NULL, "the bus is reached" },
	{ "bus-not-reached", NULL, "the bus is not reached: {why}; {effect}" },
	{ "job-started", NULL, "job {job} is watched (process {pid})[; folder: {folder}][; reports: {reports}]" },
	{ "job-not-started", NULL, "job {job} is not watched: {why}" },
	{ "job-ended", NULL, "job {job} is over[; folder: {folder}][; reports: {reports}]" },
	{ "job-messages-lost", NULL, "job {job}: {refused} messages were refused, {dropped} dropped" },
	{ "job-found", NULL, "job {job} is watched: {why}" },
	{ "jobs-not-noted", NULL, "{why}: {effect}" },
	{ "hostd-back", NULL, "hostd was started again" },
	{ "job-alone", NULL, "job {job} is watched on this host alone: {why}" },
	{ "job-twice", NULL, "job {job}: two processes have rank {rank} ({pids}): {effect}; remedy: {remedy}" },
	{ "rank-twice", NULL, "two processes have rank {rank}: {processes}; remedy: {remedy}" },
	{ "jobs-refused", NULL, "{why}: {effect}" },
	{ "leader-ended", NULL, "the leader of job {job} ended with status {status}: {effect}" },
	{ "supervisor-ended", NULL, "the process that started this one has ended: {effect}" },

	/* GPUs: gpuwatch, hostgpus.c */
	{ "gpu-fault", NULL, "GPU {gpu} reports fault {number}" },
	{ "gpu-shared", NULL, "ranks {ranks} share GPU {gpu}: {effect}; remedy: {remedy}" },
	{ "gpu-sampler-ended", NULL, "the sampler of GPU counters ended ({crashed} crashed, {killed} killed): {effect}" },
	{ "counters-given-back", NULL, "{tool} has the GPU counters again: {why}" },
	{ "counters-not-given-back", NULL, "{tool} is still paused: {effect}" },
};
/* clang-format on */

struct log_setup runlog_setup(enum runlog_format format, bool terminal, bool color)
{
	struct log_setup ret = { .format = LOG_LOGFMT,
				 .color = color,
				 .phrases = phrases,
				 .phrase_cnt = ARRAY_SIZE(phrases) };

	if (format == RUNLOG_JSON)
		ret.format = LOG_JSON;
	else if (format == RUNLOG_PEOPLE || (format == RUNLOG_AUTO && terminal))
		ret.format = LOG_PEOPLE;
	return ret;
}

void runlog_open(enum runlog_format format, bool terminal, bool color)
{
	const struct log_setup setup = runlog_setup(format, terminal, color);

	log_open(&setup);
}
