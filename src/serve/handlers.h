/* SPDX-License-Identifier: Apache-2.0 */
/* The handlers of the table of paths (routes.h): each fills an answer, or fails with a line that says what to do. */
#pragma once

struct answer;
struct call;

/* Of the API ... */
int api_jobs(struct call *call, struct answer *ret);
int api_job(struct call *call, struct answer *ret);
int api_live(struct call *call, struct answer *ret);
int api_profile(struct call *call, struct answer *ret);
int api_history(struct call *call, struct answer *ret);
int api_reports(struct call *call, struct answer *ret);
int api_report(struct call *call, struct answer *ret);
int api_timeline(struct call *call, struct answer *ret);
int api_compare(struct call *call, struct answer *ret);
int api_hosts(struct call *call, struct answer *ret);
int api_exclude(struct call *call, struct answer *ret);
int api_doctor(struct call *call, struct answer *ret);
int api_metrics(struct call *call, struct answer *ret);
int api_events(struct call *call, struct answer *ret);
int api_openapi(struct call *call, struct answer *ret);

/* ... of pages, and of files. */
int page_jobs(struct call *call, struct answer *ret);
int page_profile(struct call *call, struct answer *ret);
int page_job(struct call *call, struct answer *ret);
int page_report(struct call *call, struct answer *ret);
int page_flame(struct call *call, struct answer *ret);
int page_timeline(struct call *call, struct answer *ret);
int page_hosts(struct call *call, struct answer *ret);
int page_compare(struct call *call, struct answer *ret);
int page_doctor(struct call *call, struct answer *ret);
int file_trace(struct call *call, struct answer *ret);
int file_style(struct call *call, struct answer *ret);
int file_icon(struct call *call, struct answer *ret);
int file_script(struct call *call, struct answer *ret);
int file_flame(struct call *call, struct answer *ret);
int file_timeline(struct call *call, struct answer *ret);
