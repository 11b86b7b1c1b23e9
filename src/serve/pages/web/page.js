// SPDX-License-Identifier: Apache-2.0
// What a page gains by a script: it filters as one types, and follows the jobs that run. The server
// makes all pages; this asks it for the same address again and takes over its <main>.
"use strict";

const QUIET_MS = 250; // after the last letter, before the server is asked
const REFRESH_MS = 2000; // at least, between two refreshes
let asked = 0; // requests so far: an answer that was overtaken is dropped

/** Shows the page of an address; the focus and the text in the filter stay as they are. */
function show(address) {
  const request = new XMLHttpRequest();
  const number = ++asked;
  request.open("GET", address);
  request.responseType = "document"; // parsed without running anything
  request.onload = () => {
    const fresh = request.response && request.response.querySelector("main");
    if (number !== asked || request.status !== 200 || !fresh) return;
    replaceMain(document.adoptNode(fresh));
  };
  request.send();
}

function replaceMain(fresh) {
  const old = document.querySelector("main");
  const filter = document.activeElement && document.activeElement.id === "filter" && old.querySelector("#filter");
  const scrolled = [...old.querySelectorAll(".scroll")].map((box) => box.scrollLeft);
  const form = fresh.querySelector("form.filter");
  if (filter && form) form.replaceWith(old.querySelector("form.filter"));
  old.replaceWith(fresh);
  fresh.querySelectorAll(".scroll").forEach((box, i) => {
    box.scrollLeft = scrolled[i] || 0;
  });
  if (filter) filter.focus();
}

/** Whether replacing the page would take something away from the reader. */
function isBusy() {
  const active = document.activeElement;
  const selected = document.getSelection();
  if (selected && !selected.isCollapsed) return true;
  const inside = active && document.querySelector("main").contains(active);
  const reason = document.getElementById("reason");
  if (reason && reason.value) return true; // a form that is being filled
  return Boolean(inside && (active.tagName === "A" || active.id === "reason"));
}

let timer = 0;
document.addEventListener("input", (event) => {
  if (event.target.id !== "filter") return;
  clearTimeout(timer);
  timer = setTimeout(() => {
    const address = new URL(location.href);
    address.searchParams.delete("cursor");
    if (event.target.value) address.searchParams.set("filter", event.target.value);
    else address.searchParams.delete("filter");
    history.replaceState(null, "", address);
    show(address);
  }, QUIET_MS);
});

document.addEventListener("keydown", (event) => {
  const filter = document.getElementById("filter");
  if (event.key !== "/" || !filter || event.target === filter) return;
  event.preventDefault();
  filter.focus();
});

function follow() {
  const shown = document.querySelector("[data-job]");
  const key = shown && shown.dataset.job;
  const events = new EventSource("/api/v1/events");
  const live = document.getElementById("live");
  let due = 0;
  let last = 0;

  function refresh() {
    due = 0;
    if (document.hidden || isBusy()) {
      live.textContent = "There is news: reload to see it.";
      return;
    }
    last = Date.now();
    live.textContent = "";
    show(location.href);
  }
  function note(event) {
    const about = event.type === "gap" ? null : JSON.parse(event.data);
    if (key && about && !(about.job === key || String(about.report || "").startsWith(key))) return;
    if (!due) due = setTimeout(refresh, Math.max(0, REFRESH_MS - (Date.now() - last)));
  }
  for (const name of ["job", "event", "report", "gap"]) events.addEventListener(name, note);
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden && live.textContent) refresh();
  });
}

// A report or the list of hosts does not change by itself.
if (location.pathname === "/" || location.pathname.startsWith("/jobs/")) follow();
