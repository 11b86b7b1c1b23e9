/* SPDX-License-Identifier: Apache-2.0 */
/*
 * The configuration of a site: one YAML file for `perftracker hostd` and `perftracker hub`, with a
 * name for the cluster, the bus, and what each of the two may use. A table (sitekeys.c) lists the
 * keys; nothing else is accepted. Of several places the first one counts: the command line
 * (--set KEY=VALUE), the environment (PERFTRACKER_BUS_URL for bus.url), the file, the default.
 * Source: docs/fleet.md.
 */
#pragma once

#include "base/err.h"
#include "base/str.h"
#include "live/link/bus.h"
#include "live/link/seal.h"

#define SITE_FILE_MAX 65536u
#define SITE_KEYS_MAX 40u
#define SITE_PROBLEMS_MAX 20u /* that are shown; all are counted */
#define SITE_HOST_MAX 24u /* characters of a host's name, as deploy/nats/make-users takes them */
#define SITE_DEFAULT_FILE "/etc/perftracker/site.yaml"
#define SITE_DEFAULT_SOCKET "/run/perftracker/hostd.sock"
#define SITE_DEFAULT_RUN "/run/perftracker-hub"

/* jobs.enable, in the order of its words. */
enum site_enable { SITE_ENABLE_ENVIRONMENT, SITE_ENABLE_ALL };

/* Texts are "" where nothing is set. */
struct site_values {
	char *cluster, *host;
	char *bus_url; /* several with commas between them */
	char *bus_ca, *bus_certificate, *bus_key, *bus_user, *bus_password_file, *bus_credentials;
	char *bus_nkey_file, *bus_nkey_seed_file;
	bool bus_insecure;
	char *hostd_socket, *hostd_folder;
	char *hostd_spool_dir;	    /* "": hostd_folder/spool */
	uint32_t hostd_spool_bytes; /* of each job */
	uint32_t hostd_max_jobs, hostd_max_jobs_per_user, hostd_keep_jobs, hostd_cpu_percent;
	char *hub_folder, *hub_run, *hub_store;
	char *hub_ui, *hub_ui_token_file, *hub_ui_host; /* of its page */
	uint32_t hub_max_jobs, hub_keep_jobs;		/* keep: of each user */
	uint32_t jobs_enable;				/* enum site_enable */
	uint32_t jobs_linger_seconds; /* a job without workers is over after so long */
	uint32_t jobs_slowdown_percent, jobs_min_gap_seconds;
	bool jobs_audit;
	char *orders_key, *orders_seed_file;
	uint32_t hostd_max_window_seconds, hostd_max_windows_per_hour;
};

enum site_source { SITE_DEFAULT, SITE_FILE, SITE_ENVIRONMENT, SITE_OPTION };

struct site {
	struct site_values values;
	char path[1024]; /* of the file; "": none was read */
	struct site_origin {
		enum site_source source;
		unsigned line, column; /* SITE_FILE: from 1 */
	} origins[SITE_KEYS_MAX];
	/* what site_login() read */
	char password[256], nkey[80];
};

/* Lines for people, one for each problem. */
struct site_problems {
	struct str lines;
	unsigned cnt;
};

/* Sets the defaults. Returns 0 or -ENOMEM. In either case site_done() frees it. */
_must_check_ int site_init(struct site *site);
void site_done(struct site *site);

/*
 * Takes text[len] of a file named path. What is wrong is added to problems, with line, column, what
 * was expected and what was found; the rest is taken.
 */
void site_take_text(struct site *site, const char *path, const char *text, size_t len,
		    struct site_problems *problems);
void site_take_file(struct site *site, const char *path, struct site_problems *problems);

/* find: the value of a variable, NULL: not set. */
void site_take_environment(struct site *site, const char *(*find)(const char *name),
			   struct site_problems *problems);

/* "KEY=VALUE" of the command line. */
void site_take_option(struct site *site, const char *pair, struct site_problems *problems);

/* What belongs together: users and their passwords, certificates and their keys, ... */
void site_check(const struct site *site, struct site_problems *problems);
void site_problems_done(struct site_problems *problems);

/* A table: each key, its value, and where that comes from. */
void site_describe(const struct site *site, struct str *out);

/*
 * How to reach the bus, with the password read from its file; texts are borrowed from site. Returns
 * 0, or -errno with a line in err.
 */
_must_check_ int site_login(struct site *site, struct bus_login *ret, struct err *err);

/*
 * The keys of orders (link/seal.h); signs: for the hub. *ret is NULL where the site has none; seal_close() it.
 * Returns 0, or -errno with a line in err.
 */
_must_check_ int site_seal(const struct site *site, bool signs, struct seal **ret, struct err *err);
