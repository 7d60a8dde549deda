// flame_graph.mjs FILE NAME...: the picture opens without an error, fits the window, and has a
// frame of each NAME, which a search finds and a click zooms to.

import assert from "node:assert/strict";
import { pathToFileURL } from "node:url";
import { withPage } from "./page.mjs";

const [file, ...names] = process.argv.slice(2);

/** What a person sees of the frames: title, place, whether marked by a search; hidden ones left out. */
const visibleFrames = (page) =>
  page.evaluate(() =>
    [...document.querySelectorAll("#frames > g, #frames > svg > g, #frames a")].flatMap((group) => {
      const rect = group.querySelector("rect");
      const box = rect?.getBoundingClientRect();
      if (!box || box.width === 0 || getComputedStyle(group).display === "none") return [];
      return {
        title: group.querySelector("title").textContent,
        fill: getComputedStyle(rect).fill,
        opacity: Number(getComputedStyle(group).opacity),
        left: box.left,
        right: box.right,
        x: box.left + box.width / 2,
        y: box.top + box.height / 2,
      };
    }),
  );

const frameOf = (frames, name) => {
  const frame = frames.find(({ title }) => title.startsWith(`${name} (`));
  assert(frame, `${name} is not among ${JSON.stringify(frames.map(({ title }) => title))}`);
  return frame;
};

/** Types `term` into the search that Ctrl-F opens, and gives what the picture then says. */
const search = async (page, term) => {
  const asked = page.waitForEvent("dialog").then((dialog) => dialog.accept(term));
  await page.keyboard.press("Control+f");
  await asked;
  return (await page.locator("#matched").textContent()).trim();
};

const literal = (name) => name.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");

for (const viewport of [{ width: 1300, height: 900 }, { width: 700, height: 600 }]) {
  await withPage(pathToFileURL(file).href, viewport, async (page, errors) => {
    const frames = await visibleFrames(page);
    assert(frames.length > names.length, "there are frames");
    const edges = frames.flatMap(({ left, right }) => [left, right]);
    assert(Math.min(...edges) >= 0 && Math.max(...edges) <= viewport.width, "frames fit the window");
    assert(Math.max(...edges) > 0.9 * viewport.width, "frames fill the window");
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    assert(width <= viewport.width, `${width} is too wide for ${viewport.width}`);

    for (const name of names) {
      const before = frameOf(await visibleFrames(page), name);
      const said = await search(page, literal(name));
      assert.match(said, /^Matched: [\d.]+%$/, name);
      assert.notEqual(frameOf(await visibleFrames(page), name).fill, before.fill, `${name} is marked`);

      await page.mouse.click(before.x, before.y);
      const zoomed = frameOf(await visibleFrames(page), name);
      assert(zoomed.right - zoomed.left > 0.9 * viewport.width, `${name} is as wide as the window`);
      await page.locator("#unzoom").click();
      const after = frameOf(await visibleFrames(page), name);
      assert(Math.abs(after.right - before.right) < 1, `${name} is as wide as before`);
      // Ctrl-F once more takes the marks away.
      await page.keyboard.press("Control+f");
      assert.equal(frameOf(await visibleFrames(page), name).fill, before.fill, `${name} is not marked`);
    }
    assert.deepEqual(errors, []);
  });
}
