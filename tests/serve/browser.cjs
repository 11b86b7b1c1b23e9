// SPDX-License-Identifier: Apache-2.0
// A real Chromium on pages of the server: browser.cjs URL PATH... prints one JSON object. The folder
// of node_modules is PERFTRACKER_PLAYWRIGHT.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const modules = process.env.PERFTRACKER_PLAYWRIGHT;
const { chromium } = require(path.join(modules, "playwright-core"));
const axePath = path.join(modules, "axe-core", "axe.min.js");
const axe = fs.existsSync(axePath) ? fs.readFileSync(axePath, "utf8") : "";
const [base, ...paths] = process.argv.slice(2);
const looks = [
  { name: "light", colorScheme: "light", viewport: { width: 1200, height: 900 } },
  { name: "dark", colorScheme: "dark", viewport: { width: 1200, height: 900 } },
  { name: "phone", colorScheme: "light", viewport: { width: 390, height: 844 } },
];
const found = { wrong: [], axe: [], read: {} };

async function open(browser, options) {
  const context = await browser.newContext(options);
  const page = await context.newPage();
  page.setDefaultTimeout(120000);
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && found.wrong.push(m.text()));
  page.on("pageerror", (e) => found.wrong.push(String(e)));
  page.on("dialog", (d) => (found.wrong.push("a dialog"), d.dismiss()));
  page.on("request", (r) => {
    if (!r.url().startsWith(base) && !r.url().startsWith("data:")) found.wrong.push(r.url());
  });
  return page;
}

async function looksRight(browser, look) {
  const page = await open(browser, look);
  const free = await open(browser, { ...look, bypassCSP: true }); // the checker may run there
  for (const one of paths) {
    await page.goto(base + one);
    const over = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
    if (over > 0) found.wrong.push(`${look.name} ${one}: ${over} px too wide`);
    if (process.env.PERFTRACKER_SHOTS)
      await page.screenshot({ path: `${process.env.PERFTRACKER_SHOTS}/${look.name}${one.replace(/\W+/g, "_")}.png`, fullPage: true });
    if (!axe) continue;
    await free.goto(base + one);
    await free.evaluate(axe);
    const result = await free.evaluate(() => axe.run());
    for (const v of result.violations) found.axe.push(`${look.name} ${one}: ${v.id}`);
  }
}

async function worksByKeyboard(browser) {
  const page = await open(browser, looks[0]);
  await page.goto(base + "/");
  await page.keyboard.press("Tab");
  found.read.first = await page.evaluate(() => document.activeElement.className);
  await page.keyboard.press("/");
  found.read.slash = await page.evaluate(() => document.activeElement.id);
  await page.keyboard.type("resnet");
  await page.waitForFunction(() => document.querySelectorAll(".jobs tbody tr").length === 1);
  found.read.address = new URL(page.url()).search;
  found.read.typed = await page.evaluate(() => document.activeElement.value);
  await page.keyboard.press("Enter");
  await page.waitForLoadState();
  await page.locator(".jobs tbody a").first().focus();
  await page.keyboard.press("Enter");
  await page.waitForURL(/\/jobs\//);
  found.read.job = await page.title();
}

async function searchesStacks(browser) {
  const page = await open(browser, looks[0]);
  await page.goto(base + paths[paths.length - 1]);
  const boxes = () => page.evaluate(() => [...document.querySelectorAll("g.box rect")].map((r) => r.getAttribute("width")).join());
  const whole = await boxes();
  await page.keyboard.press("/");
  found.read.search = await page.evaluate(() => document.activeElement.tagName);
  await page.keyboard.type(await page.evaluate(() => [...document.querySelectorAll("g.box")].at(-1).dataset.l.slice(0, 6)));
  found.read.hits = await page.evaluate(() => document.querySelectorAll("g.box.hit").length > 0 && document.querySelector("output").textContent.includes("boxes"));
  await page.locator("g.box").first().focus();
  await page.keyboard.press("ArrowDown");
  await page.keyboard.press("ArrowRight");
  await page.keyboard.press("Enter");
  found.read.zoomed = whole !== (await boxes());
  await page.keyboard.press("Escape");
  found.read.back = whole === (await boxes());
}

// Zoom by keyboard and by dragging: the address is the part; then the file for Perfetto, which a stub takes.
async function zoomsTimeline(browser) {
  const page = await open(browser, looks[0]);
  const shown = () => page.evaluate(() => ["from", "to"].map((name) => Number(document.getElementById("view").dataset[name])));
  const changes = async (before) => {
    await page.waitForFunction((was) => document.getElementById("view").dataset.from + " " + document.getElementById("view").dataset.to !== was, before.join(" "));
    return shown();
  };
  await page.goto(base + paths.find((one) => one.endsWith("/timeline")));
  const whole = await shown();
  await page.locator(".picture").focus();
  await page.keyboard.press("w");
  const near = await changes(whole);
  found.read.nearer = (near[1] - near[0]) / (whole[1] - whole[0]);
  found.read.part = new URL(page.url()).searchParams.get("from") === String(near[0]);
  found.read.kept = await page.evaluate(() => document.activeElement.classList.contains("picture"));
  await page.keyboard.press("d");
  const moved = await changes(near);
  found.read.moved = moved[0] > near[0];
  const box = await page.locator(".picture svg").boundingBox();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 40);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.6, box.y + 40, { steps: 4 });
  await page.mouse.up();
  const dragged = await changes(moved);
  found.read.dragged = (dragged[1] - dragged[0]) / (moved[1] - moved[0]);
  await page.goBack();
  found.read.returned = (await changes(dragged)).join() === moved.join();
  found.read.foreign = found.wrong.length;
  await page.context().route("https://ui.perfetto.dev/**", (route) =>
    route.fulfill({
      contentType: "text/html",
      body: "<script>onmessage = (e) => { if (e.data === 'PING') e.source.postMessage('PONG', e.origin); else document.title = 'got ' + new Uint8Array(e.data.perfetto.buffer).slice(0, 2).join(); };</script>",
    }),
  );
  page.context().on("request", (r) => r.url().startsWith("https://ui.perfetto.dev") && (found.read.asked = true));
  const other = page.context().waitForEvent("page");
  await page.locator("#perfetto").focus();
  await page.keyboard.press("Enter");
  const perfetto = await other;
  await perfetto.waitForFunction(() => document.title.startsWith("got"), null, { timeout: 120000 });
  found.read.given = await perfetto.title();
}

async function followsNews(browser) {
  const page = await open(browser, looks[0]);
  await page.goto(base + "/");
  console.log("ready");
  await page.waitForFunction(() => document.querySelector("main").innerText.includes("arrived"));
}

async function worksWithoutScript(browser) {
  const page = await open(browser, { ...looks[0], javaScriptEnabled: false });
  await page.goto(base + paths[1]);
  found.read.plain = await page.locator("h1").innerText();
  await page.goto(base + paths.find((one) => one.endsWith("/timeline")));
  await page.getByRole("link", { name: "Zoom in" }).click();
  found.read.link = new URL(page.url()).searchParams.has("from");
}

(async () => {
  const browser = await chromium.launch({
    executablePath: process.env.PERFTRACKER_CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"],
  });
  for (const look of looks) await looksRight(browser, look);
  await worksByKeyboard(browser);
  await worksWithoutScript(browser);
  await searchesStacks(browser);
  await zoomsTimeline(browser);
  await followsNews(browser);
  await browser.close();
  console.log(JSON.stringify(found));
})().catch((error) => {
  console.log(JSON.stringify({ ...found, failed: String(error) }));
  process.exit(1);
});
