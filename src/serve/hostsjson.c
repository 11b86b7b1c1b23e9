/* SPDX-License-Identifier: Apache-2.0 */
#include "serve/hostsjson.h"

#include "memory/excludelist.h"

#include <errno.h>
#include <string.h>

static json_t *of_accusation(struct json_writer *w, const struct hostledger_accusation *accusation)
{
	json_t *object = json_object();

	jsonwriter_put_text(w, object, "job", accusation->job);
	jsonwriter_put_text(w, object, "report", accusation->report);
	jsonwriter_put_text(w, object, "made",
			    accusation->made[0] != '\0' ? accusation->made : NULL);
	jsonwriter_put_text(w, object, "cause", accusation->cause);
	jsonwriter_put_text(w, object, "title", accusation->title);
	jsonwriter_put(w, object, "gain_ms_per_iteration",
		       accusation->gain_ms > 0.0 ? jsonwriter_number(accusation->gain_ms)
						 : json_null());
	return object;
}

static json_t *kinds_of(struct json_writer *w, const struct hostledger_host *host)
{
	json_t *ret = json_array();

	for (size_t i = 0; i < host->kind_cnt; i++) {
		json_t *kind = json_object();

		jsonwriter_put_text(w, kind, "cause", host->kinds[i].cause);
		jsonwriter_put(w, kind, "findings", json_integer((json_int_t)host->kinds[i].cnt));
		jsonwriter_push(w, ret, kind);
	}
	return ret;
}

static json_t *of_host(struct json_writer *w, const struct hostledger_host *host)
{
	json_t *object = json_object(), *accusations = json_array();
	const char *last = host->accusations.cnt > 0 ? host->accusations.data[0].made : "";

	jsonwriter_put_text(w, object, "host", host->name);
	jsonwriter_put(w, object, "jobs", json_integer((json_int_t)host->job_cnt));
	jsonwriter_put(w, object, "machine_jobs", json_integer((json_int_t)host->machine_jobs.cnt));
	jsonwriter_put(w, object, "findings", json_integer((json_int_t)host->finding_cnt));
	jsonwriter_put(w, object, "kinds", kinds_of(w, host));
	jsonwriter_put_text(w, object, "last", last[0] != '\0' ? last : NULL);
	vec_foreach(accusation, &host->accusations)
		jsonwriter_push(w, accusations, of_accusation(w, accusation));
	jsonwriter_put(w, object, "accusations", accusations);
	return object;
}

int hostsjson_print(const struct hostledger *ledger, struct str *out)
{
	json_t *root = json_object(), *hosts = json_array();
	struct json_writer w = { 0 };

	jsonwriter_put_text(&w, root, "schema", "perftracker.hosts.v1");
	jsonwriter_put(&w, root, "hosts", hosts);
	vec_foreach(host, &ledger->hosts)
		jsonwriter_push(&w, hosts, of_host(&w, host));
	jsonwriter_put(&w, root, "left_out", json_integer((json_int_t)ledger->left_out));
	return jsonwriter_print(&w, root, out);
}

typedef VEC(const char *) name_list;

static int list_names(const struct hostledger *ledger, uint64_t jobs_min, name_list *ret)
{
	vec_foreach(host, &ledger->hosts) {
		if (host->machine_jobs.cnt > 0 && host->machine_jobs.cnt >= jobs_min &&
		    vec_push(ret, host->name) < 0)
			return -ENOMEM;
	}
	return 0;
}

static int print_names(const name_list *names, const char *form, struct str *out)
{
	return strcmp(form, "kubernetes") == 0
		       ? excludelist_kubernetes(names->data, names->cnt, out)
		       : excludelist_slurm(names->data, names->cnt, out);
}

int hostsjson_exclude(const struct hostledger *ledger, const char *form, uint64_t jobs_min,
		      struct str *out)
{
	name_list names = { 0 };
	int ret = list_names(ledger, jobs_min, &names);

	if (ret == 0)
		ret = print_names(&names, form, out);
	vec_done(&names);
	return ret;
}

int hostsjson_print_exclude(const struct hostledger *ledger, const char *form, uint64_t jobs_min,
			    struct str *out)
{
	json_t *root = json_object(), *hosts = json_array();
	struct json_writer w = { 0 };
	struct str text = { 0 };
	name_list names = { 0 };
	int ret = list_names(ledger, jobs_min, &names);

	if (ret == 0)
		ret = print_names(&names, form, &text);
	jsonwriter_put_text(&w, root, "schema", "perftracker.exclude.v1");
	jsonwriter_put_text(&w, root, "form", form);
	jsonwriter_put(&w, root, "jobs", json_integer((json_int_t)jobs_min));
	vec_foreach(name, &names)
		jsonwriter_push(&w, hosts, json_string(*name));
	jsonwriter_put(&w, root, "hosts", hosts);
	jsonwriter_put_text(&w, root, "text", str_borrow(&text));
	if (jsonwriter_print(&w, root, out) < 0)
		ret = -ENOMEM;
	str_done(&text);
	vec_done(&names);
	return ret;
}
