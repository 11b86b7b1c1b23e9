// SPDX-License-Identifier: Apache-2.0
// A real Chromium on the page of a job that runs, with and without scripts: page.cjs URL KEY sends the
// form "Profile now" in both and prints one JSON object. PERFTRACKER_PLAYWRIGHT names node_modules.
"use strict";
const fs = require("node:fs");
const path = require("node:path");
const modules = process.env.PERFTRACKER_PLAYWRIGHT;
const { chromium } = require(path.join(modules, "playwright-core"));
const axePath = path.join(modules, "axe-core", "axe.min.js");
const [url, key] = process.argv.slice(2);
const found = { wrong: [], axe: [], sent: [], kept: "" };

async function ask(browser, javaScriptEnabled) {
  const page = await (await browser.newContext({ javaScriptEnabled })).newPage();
  page.setDefaultTimeout(120000);
  page.on("console", (m) => ["error", "warning"].includes(m.type()) && found.wrong.push(m.text()));
  await page.goto(`${url}/jobs/${key}`);
  await page.fill("#reason", `<b>script: ${javaScriptEnabled}</b>`);
  if (javaScriptEnabled) {
    // The page refreshes itself while jobs run, but not below a reader who writes.
    await page.evaluate(() => new Promise((done) => new EventSource("/api/v1/events").addEventListener("job", done)));
    await page.waitForTimeout(2500);
    found.kept = await page.inputValue("#reason");
  }
  await Promise.all([page.waitForNavigation(), page.press("#reason", "Enter")]);
  found.sent.push(page.url());
}

async function check(browser) {
  if (!fs.existsSync(axePath)) return;
  const page = await (await browser.newContext({ bypassCSP: true })).newPage();
  await page.goto(`${url}/jobs/${key}`);
  await page.evaluate(fs.readFileSync(axePath, "utf8"));
  for (const v of (await page.evaluate(() => axe.run())).violations) found.axe.push(v.id);
}

(async () => {
  const executablePath = process.env.PERFTRACKER_CHROMIUM;
  const browser = await chromium.launch({ executablePath, args: ["--no-sandbox"] });
  await ask(browser, true);
  await ask(browser, false);
  await check(browser);
  await browser.close();
  console.log(JSON.stringify(found));
})();
