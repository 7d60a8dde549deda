// A page in the browser that SCOPE_TEST_BROWSER names, with all that went wrong on it.

import { chromium } from "playwright-core";

// The address of a test server is 127.0.0.1; nothing else is to be reached, so that a test shows
// what somebody without a network sees.
const OPTIONS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
  "--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1",
];

/** Opens `url` in a window of this size, hands the page and its list of errors to `look`, and closes all. */
export async function withPage(url, viewport, look) {
  const browser = await chromium.launch({
    executablePath: process.env.SCOPE_TEST_BROWSER,
    args: OPTIONS,
  });
  try {
    const page = await browser.newPage({ viewport });
    const errors = [];
    page.on("console", (message) => message.type() === "error" && errors.push(message.text()));
    page.on("pageerror", (error) => errors.push(String(error)));
    await page.goto(url);
    await look(page, errors);
  } finally {
    await browser.close();
  }
}
