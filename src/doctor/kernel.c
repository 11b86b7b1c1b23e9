/* SPDX-License-Identifier: Apache-2.0 */
/* Facilities of the kernel: accounting, clocks, other processes. */
#include "doctor/check.h"
#include "host/network/sockdiag.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/uio.h>
#include <unistd.h>

#define OLDEST_MAJOR 4
#define OLDEST_MINOR 18 /* of the oldest tested distribution, with glibc 2.28 */

void check_kernel(const struct doctor *doctor, struct doctor_result *ret)
{
	char release[256];
	int major, minor;

	if (look_line(doctor, "/proc/sys/kernel/osrelease", release, sizeof(release)) < 0 ||
	    sscanf(release, "%d.%d", &major, &minor) != 2) {
		check_set(ret, DOCTOR_NOT_TRIED, "/proc/sys/kernel/osrelease cannot be read");
	} else if (strstr(release, "icrosoft") != NULL) {
		check_set(ret, DOCTOR_LIMITED, "Linux %s: Windows Subsystem for Linux", release);
		check_advise(ret, "GPU hardware counters are not supported there",
			     "use a machine that runs Linux itself");
	} else if (major < OLDEST_MAJOR || (major == OLDEST_MAJOR && minor < OLDEST_MINOR)) {
		check_set(ret, DOCTOR_LIMITED, "Linux %s", release);
	} else {
		check_set(ret, DOCTOR_OK, "Linux %s", release);
	}
}

/* Clock sources that are read without a system call. */
static bool is_fast_clock(const char *name)
{
	static const char *const fast[] = { "tsc",
					    "kvm-clock",
					    "hyperv_clocksource_tsc_page",
					    "arch_sys_counter",
					    "riscv_clocksource",
					    "timebase" };

	for (size_t i = 0; i < ARRAY_SIZE(fast); i++) {
		if (strcmp(name, fast[i]) == 0)
			return true;
	}
	return false;
}

void check_clock(const struct doctor *doctor, struct doctor_result *ret)
{
	char name[64];

	if (look_line(doctor, "/sys/devices/system/clocksource/clocksource0/current_clocksource",
		      name, sizeof(name)) < 0)
		check_set(ret, DOCTOR_NOT_TRIED, "the clock source cannot be read");
	else
		check_set(ret, is_fast_clock(name) ? DOCTOR_OK : DOCTOR_LIMITED, "%s", name);
}

void check_schedstats(const struct doctor *doctor, struct doctor_result *ret)
{
	unsigned long long cpu_ns, delay_ns, slices;
	char text[128];

	if (look_line(doctor, "/proc/self/schedstat", text, sizeof(text)) < 0)
		check_set(ret, DOCTOR_ABSENT, "/proc/self/schedstat cannot be read");
	else if (sscanf(text, "%llu %llu %llu", &cpu_ns, &delay_ns, &slices) != 3 || slices == 0)
		check_set(ret, DOCTOR_LIMITED, "/proc/self/schedstat contains \"%s\"", text);
	else
		check_set(ret, DOCTOR_OK, "CPU time and waiting time of each thread");
}

void check_pressure(const struct doctor *doctor, struct doctor_result *ret)
{
	char text[256];

	if (!look_exists(doctor, "/proc/pressure/cpu"))
		check_set(ret, DOCTOR_ABSENT, "there is no /proc/pressure");
	else if (look_line(doctor, "/proc/pressure/cpu", text, sizeof(text)) < 0)
		check_set(ret, DOCTOR_LIMITED, "/proc/pressure/cpu cannot be read");
	else
		check_set(ret, DOCTOR_OK, "of CPU%s%s",
			  look_exists(doctor, "/proc/pressure/memory") ? ", memory" : "",
			  look_exists(doctor, "/proc/pressure/io") ? ", I/O" : "");
}

void check_sockets(const struct doctor *doctor, struct doctor_result *ret)
{
	sockdiag_sockets sockets = { 0 };
	struct sockdiag diag;
	int error;

	if (!doctor->here) {
		check_set(ret, DOCTOR_NOT_TRIED, "another root was given");
		return;
	}
	error = sockdiag_open(&diag);
	if (error == 0) {
		error = sockdiag_list(&diag, &sockets);
		sockdiag_close(&diag);
	}
	if (error < 0)
		check_set(ret, DOCTOR_ABSENT, "inet_diag: %s", strerror(-error));
	else
		check_set(ret, DOCTOR_OK, "inet_diag lists TCP sockets with their bytes");
	vec_done(&sockets);
}

void check_self_memory(const struct doctor *doctor, struct doctor_result *ret)
{
	int value = 7, copy = 0;
	struct iovec local = { &copy, sizeof(copy) }, remote = { &value, sizeof(value) };

	if (!doctor->here)
		check_set(ret, DOCTOR_NOT_TRIED, "another root was given");
	else if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) == sizeof(copy))
		check_set(ret, DOCTOR_OK, "process_vm_readv works");
	else
		check_set(ret, DOCTOR_LIMITED, "process_vm_readv: %s", strerror(errno));
}

void check_ptrace(const struct doctor *doctor, struct doctor_result *ret)
{
	int64_t scope;

	if (look_number(doctor, "/proc/sys/kernel/yama/ptrace_scope", &scope) < 0)
		check_set(ret, DOCTOR_OK, "no Yama: processes of one user may trace each other");
	else if (scope == 0 || look_privileged(doctor))
		check_set(ret, DOCTOR_OK, "ptrace_scope %d%s", (int)scope,
			  scope == 0 ? "" : ", and this process is privileged");
	else
		check_set(ret, scope < 3 ? DOCTOR_OK : DOCTOR_LIMITED, "ptrace_scope %d%s",
			  (int)scope,
			  scope == 1 ? ": parents and privileged processes only"
				     : ": privileged processes only");
}

void check_perf_events(const struct doctor *doctor, struct doctor_result *ret)
{
	int64_t paranoid;

	if (look_number(doctor, "/proc/sys/kernel/perf_event_paranoid", &paranoid) < 0)
		check_set(ret, DOCTOR_ABSENT, "this kernel has no perf events");
	else if (paranoid <= 1 || look_privileged(doctor))
		check_set(ret, DOCTOR_OK, "perf_event_paranoid %d%s", (int)paranoid,
			  paranoid <= 1 ? "" : ", and this process is privileged");
	else
		check_set(ret, DOCTOR_LIMITED, "perf_event_paranoid %d", (int)paranoid);
}

void check_runtime_dir(const struct doctor *doctor, struct doctor_result *ret)
{
	if (!doctor->here)
		check_set(ret, DOCTOR_NOT_TRIED, "another root was given");
	else if (doctor->setup.socket_why != NULL)
		check_set(ret, DOCTOR_FAILED, "%s", doctor->setup.socket_why);
	else
		check_set(ret, DOCTOR_OK, "a private directory for job sockets");
}
