/* SPDX-License-Identifier: Apache-2.0 */
#include "live/site/site_parts.h"

#include <string.h>

#define KEY(field) .off = offsetof(struct site_values, field)

const struct site_key site_keys[] = {
	{ "cluster", SITE_TEXT, KEY(cluster), .preset = "default" },
	{ "host", SITE_TEXT, KEY(host), .preset = "" },
	{ "bus.url", SITE_LIST, KEY(bus_url), .preset = "" },
	{ "bus.ca", SITE_PATH, KEY(bus_ca), .preset = "" },
	{ "bus.certificate", SITE_PATH, KEY(bus_certificate), .preset = "" },
	{ "bus.key", SITE_PATH, KEY(bus_key), .preset = "" },
	{ "bus.user", SITE_TEXT, KEY(bus_user), .preset = "" },
	{ "bus.password_file", SITE_PATH, KEY(bus_password_file), .preset = "" },
	{ "bus.credentials", SITE_PATH, KEY(bus_credentials), .preset = "" },
	{ "bus.nkey_file", SITE_PATH, KEY(bus_nkey_file), .preset = "" },
	{ "bus.nkey_seed_file", SITE_PATH, KEY(bus_nkey_seed_file), .preset = "" },
	{ "bus.insecure", SITE_BOOL, KEY(bus_insecure), .preset = "no" },
	{ "hostd.socket", SITE_PATH, KEY(hostd_socket), .preset = SITE_DEFAULT_SOCKET },
	{ "hostd.folder", SITE_PATH, KEY(hostd_folder), .preset = "/var/lib/perftracker/hostd" },
	{ "hostd.max_jobs", SITE_NUMBER, KEY(hostd_max_jobs), 1, 1024, .preset = "64" },
	{ "hostd.max_jobs_per_user", SITE_NUMBER, KEY(hostd_max_jobs_per_user), 1, 1024,
	  .preset = "32" },
	{ "hostd.keep_jobs", SITE_NUMBER, KEY(hostd_keep_jobs), 0, 10000, .preset = "16" },
	{ "hostd.cpu_percent", SITE_NUMBER, KEY(hostd_cpu_percent), 1, 100, .preset = "25" },
	{ "hostd.spool_dir", SITE_PATH, KEY(hostd_spool_dir), .preset = "" },
	{ "hostd.spool_bytes", SITE_NUMBER, KEY(hostd_spool_bytes), 1u << 20, 999999999,
	  .preset = "134217728" },
	{ "hostd.max_window_seconds", SITE_NUMBER, KEY(hostd_max_window_seconds), 1, 3600,
	  .preset = "120" },
	{ "hostd.max_windows_per_hour", SITE_NUMBER, KEY(hostd_max_windows_per_hour), 1, 3600,
	  .preset = "120" },
	{ "hub.folder", SITE_PATH, KEY(hub_folder), .preset = "/var/lib/perftracker/jobs" },
	{ "hub.run", SITE_PATH, KEY(hub_run), .preset = SITE_DEFAULT_RUN },
	{ "hub.store", SITE_TEXT, KEY(hub_store), .preset = "/var/lib/perftracker/store.db" },
	{ "hub.ui", SITE_TEXT, KEY(hub_ui), .preset = "" },
	{ "hub.ui_token_file", SITE_PATH, KEY(hub_ui_token_file), .preset = "" },
	{ "hub.ui_host", SITE_TEXT, KEY(hub_ui_host), .preset = "" },
	{ "hub.keep_jobs", SITE_NUMBER, KEY(hub_keep_jobs), 0, 100000, .preset = "500" },
	{ "hub.max_jobs", SITE_NUMBER, KEY(hub_max_jobs), 1, 10000, .preset = "256" },
	{ "orders.key", SITE_TEXT, KEY(orders_key), .preset = "" },
	{ "orders.seed_file", SITE_PATH, KEY(orders_seed_file), .preset = "" },
	{ "jobs.enable", SITE_WORD, KEY(jobs_enable), .words = "environment|all",
	  .preset = "environment" },
	{ "jobs.linger_seconds", SITE_NUMBER, KEY(jobs_linger_seconds), 1, 86400, .preset = "60" },
	{ "jobs.slowdown_percent", SITE_NUMBER, KEY(jobs_slowdown_percent), 1, 1000,
	  .preset = "5" },
	{ "jobs.min_gap_seconds", SITE_NUMBER, KEY(jobs_min_gap_seconds), 0, 1000000,
	  .preset = "15" },
	{ "jobs.audit", SITE_BOOL, KEY(jobs_audit), .preset = "yes" },
};

const size_t site_key_cnt = ARRAY_SIZE(site_keys);
_Static_assert(ARRAY_SIZE(site_keys) <= SITE_KEYS_MAX, "raise SITE_KEYS_MAX");

const struct site_key *sitekeys_find(const char *name)
{
	for (size_t i = 0; i < site_key_cnt; i++) {
		if (strcmp(site_keys[i].name, name) == 0)
			return &site_keys[i];
	}
	return NULL;
}
