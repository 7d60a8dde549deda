// snakeviz.mjs URL ROOT LABEL...: the icicle has one frame at its top, labelled with ROOT, and
// further down frames labelled with each LABEL. Frames too narrow for their label have none.

import assert from "node:assert/strict";
import { withPage } from "./page.mjs";

const [url, root, ...labels] = process.argv.slice(2);

await withPage(url, { width: 1900, height: 1000 }, async (page) => {
  const texts = () => [...document.querySelectorAll("#chart text")].map((text) => text.textContent);
  // A worker computes what is drawn; a first picture may be replaced once more.
  await page.waitForFunction((label) => {
    const texts = [...document.querySelectorAll("#chart text")];
    return texts.some((text) => text.textContent.includes(label));
  }, root);
  const drawn = await page.evaluate(texts);
  for (const label of labels) {
    assert(drawn.some((text) => text.includes(label)), `${label} is not among ${JSON.stringify(drawn)}`);
  }
  const top = await page.evaluate(() => {
    const frames = [...document.querySelectorAll("#chart rect")];
    const y = (frame) => Number(frame.getAttribute("y"));
    const highest = Math.min(...frames.map(y));
    return frames.filter((frame) => y(frame) === highest).map((frame) => frame.__data__.name);
  });
  assert.equal(top.length, 1, `at the top are ${JSON.stringify(top)}`);
  assert(top[0].includes(root), `at the top is ${top[0]}`);
});
