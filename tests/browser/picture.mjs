// picture.mjs SVG PNG: draws a flame graph as a picture of 1,200 pixels width. The pictures in
// docs/ are made with it from `cargo scope run --release --example heat`.

import { pathToFileURL } from "node:url";
import { withPage } from "./page.mjs";

const [svg, png] = process.argv.slice(2);

await withPage(pathToFileURL(svg).href, { width: 1200, height: 800 }, async (page) => {
  const height = await page.evaluate(() => document.documentElement.getBoundingClientRect().height);
  await page.setViewportSize({ width: 1200, height: Math.ceil(height) });
  await page.screenshot({ path: png });
});
