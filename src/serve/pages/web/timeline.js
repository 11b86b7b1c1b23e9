// SPDX-License-Identifier: Apache-2.0
// The timeline by keyboard and mouse: it asks the server for another part of the same report and takes
// over the picture. "Open in Perfetto" gives the file to a window that the reader opens by a click.
"use strict";

const PERFETTO = "https://ui.perfetto.dev";
const AGAIN_MS = 400; // the server draws: ask again
const SETTLE_MS = 120; // after the last key or turn of the wheel
const LEFT = 200 / 1040; // of the picture's width are names
const RIGHT = 8 / 1040;
let shownNumber = 0;
let wanted = null; // the part that the reader is at, before it is drawn
let waiting = 0;

const view = () => document.getElementById("view");
const part = () => {
  const data = view().dataset;
  return wanted || { from: Number(data.from), to: Number(data.to) };
};

/** The part, inside what is kept and no smaller than the least. */
function fit(from, to) {
  const data = view().dataset;
  const length = Number(data.length);
  const width = Math.min(Math.max(to - from, Number(data.least)), length);
  const begin = Math.min(Math.max(from, 0), length - width);
  return { from: Math.round(begin), to: Math.round(begin + width) };
}

function go(from, to) {
  wanted = fit(from, to);
  clearTimeout(waiting);
  waiting = setTimeout(() => {
    const address = new URL(location.href);
    address.searchParams.set("from", wanted.from);
    address.searchParams.set("to", wanted.to);
    history.pushState(null, "", address);
    draw(address);
  }, SETTLE_MS);
}

/** Takes over the part of this address once the server has drawn it. */
function draw(address) {
  const number = ++shownNumber;
  const request = new XMLHttpRequest();
  const said = document.getElementById("drawing");
  said.textContent = "Drawing.";
  request.open("GET", address);
  request.responseType = "document"; // parsed without running anything
  request.onload = () => {
    const fresh = request.response && request.response.getElementById("view");
    if (number !== shownNumber) return;
    if (request.status === 202 || request.status === 409) {
      setTimeout(() => number === shownNumber && draw(address), AGAIN_MS);
    } else if (request.status !== 200 || !fresh) {
      said.textContent = "This part could not be drawn: reload the page to see why.";
    } else {
      replace(document.adoptNode(fresh));
    }
  };
  request.onerror = () => (said.textContent = "The server does not answer.");
  request.send();
}

function replace(fresh) {
  const old = view();
  const focused = old.querySelector(".picture") === document.activeElement;
  const box = old.querySelector(".picture");
  const scrolled = box ? [box.scrollLeft, box.scrollTop] : [0, 0];
  old.replaceWith(fresh);
  wanted = null;
  begin();
  const now = fresh.querySelector(".picture");
  [now.scrollLeft, now.scrollTop] = scrolled;
  if (focused) now.focus({ preventScroll: true });
}

function zoom(factor, at) {
  const { from, to } = part();
  const middle = at === undefined ? (from + to) / 2 : at;
  go(middle - (middle - from) * factor, middle + (to - middle) * factor);
}

function move(share) {
  const { from, to } = part();
  go(from + (to - from) * share, to + (to - from) * share);
}

/** The moment under the pointer. */
function momentAt(event) {
  const box = view().querySelector("svg").getBoundingClientRect();
  const share = (event.clientX - box.left) / box.width;
  const inside = Math.min(Math.max((share - LEFT) / (1 - LEFT - RIGHT), 0), 1);
  const data = view().dataset;
  return Number(data.from) + inside * (Number(data.to) - Number(data.from));
}

const keys = {
  w: () => zoom(0.5),
  "+": () => zoom(0.5),
  s: () => zoom(2),
  "-": () => zoom(2),
  a: () => move(-0.25),
  d: () => move(0.25),
  Home: () => go(...view().dataset.home.split(" ").map(Number)),
  0: () => go(0, Number(view().dataset.length)),
};

document.addEventListener("keydown", (event) => {
  const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
  const name = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  if (typing || event.ctrlKey || event.altKey || event.metaKey || !view() || !Object.hasOwn(keys, name)) return;
  event.preventDefault();
  keys[name]();
});

/** What the fresh picture needs: the wheel, and dragging over a part. */
function begin() {
  const picture = view() && view().querySelector(".picture");
  const keysNote = view() && view().querySelector(".keys");
  if (!picture || !picture.querySelector("svg")) return;
  keysNote.hidden = false;
  picture.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(event.deltaY < 0 ? 0.7 : 1 / 0.7, momentAt(event));
    },
    { passive: false },
  );
  let start = null;
  let mark = null;
  picture.addEventListener("pointerdown", (event) => {
    if (event.button !== 0 || event.pointerType !== "mouse" || !event.target.closest("svg")) return;
    start = { moment: momentAt(event), x: event.clientX };
    picture.setPointerCapture(event.pointerId);
  });
  picture.addEventListener("pointermove", (event) => {
    const svg = picture.querySelector("svg");
    if (!start || Math.abs(event.clientX - start.x) < 4) return;
    if (!mark) {
      mark = document.createElementNS("http://www.w3.org/2000/svg", "rect");
      mark.setAttribute("class", "t-mark");
      mark.setAttribute("y", 0);
      mark.setAttribute("height", svg.viewBox.baseVal.height);
      svg.appendChild(mark);
    }
    const box = svg.getBoundingClientRect();
    const scale = svg.viewBox.baseVal.width / box.width;
    mark.setAttribute("x", (Math.min(start.x, event.clientX) - box.left) * scale);
    mark.setAttribute("width", Math.abs(event.clientX - start.x) * scale);
  });
  picture.addEventListener("pointerup", (event) => {
    const from = start;
    start = null;
    if (mark) mark.remove();
    if (!from || !mark) return;
    mark = null;
    const to = momentAt(event);
    go(Math.min(from.moment, to), Math.max(from.moment, to));
  });
}

addEventListener("popstate", () => {
  wanted = null;
  if (view()) draw(new URL(location.href));
});

/** The file of the timeline; asks again while the server writes it. */
function fetchTrace(href, done, said) {
  const request = new XMLHttpRequest();
  request.open("GET", href);
  request.responseType = "arraybuffer";
  request.onload = () => {
    if (request.status === 200) done(request.response);
    else if (request.status === 202 || request.status === 409) setTimeout(() => fetchTrace(href, done, said), AGAIN_MS);
    else said("The timeline could not be written: download it to see why.");
  };
  request.onerror = () => said("The server does not answer.");
  request.send();
}

/** Says PING until the window answers PONG, then gives it the file. */
function handOver(other, buffer, said) {
  const timer = setInterval(() => {
    if (other.closed) clearInterval(timer);
    else other.postMessage("PING", PERFETTO);
  }, 200);
  addEventListener("message", function answered(event) {
    if (event.source !== other || event.origin !== PERFETTO || event.data !== "PONG") return;
    clearInterval(timer);
    removeEventListener("message", answered);
    other.postMessage({ perfetto: { buffer, title: document.title, keepApiOpen: false } }, PERFETTO);
    said("Given to Perfetto.");
  });
}

const button = document.getElementById("perfetto");
if (button) {
  const output = document.getElementById("handing");
  const said = (text) => (output.textContent = text);
  button.hidden = false;
  button.addEventListener("click", () => {
    const other = open(PERFETTO);
    if (!other) return said("The browser opened no window: allow it, or download the file.");
    said("Writing the timeline.");
    fetchTrace(
      `${location.pathname}/trace`,
      (buffer) => {
        said("Waiting for Perfetto.");
        handOver(other, buffer, said);
      },
      said,
    );
  });
}
begin();
