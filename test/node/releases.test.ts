// Releases of an app on the real node, while a pod asks for it by its name a hundred times a second.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { eventually } from "../support/eventually.ts";
import {
  app,
  appId,
  applyLine,
  askApp,
  checkAsked,
  newImage,
  untilOnly,
  watchReleases,
} from "../support/node/asked-app.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { askFromPod, startProbe } from "../support/node/tenants.ts";

/** It runs, but listens nowhere. */
const deaf = { ...app, command: ["/nodejs/bin/node", "-e", "setInterval(() => {}, 1000)"] };
let krane: InstalledKrane;

before(
  async () => {
    krane = await installedKrane();
    await startProbe(krane);
  },
  { timeout: 600_000 },
);

after(() => krane.type(`krane delete app ${appId} --yes --wait --timeout 180s`));

const isOn = (release: number) => untilOnly(krane, `${appId}-${release}`);

test("no request fails while releases start, fail, are undone at once and later, and end", {
  timeout: 600_000,
}, async (t) => {
  await krane.type(applyLine(app));
  // The proxy of the node follows the Service a moment later.
  await eventually("the app answers at its name", async () =>
    assert.equal(await askFromPod(krane, "http://rolled.rolled/"), "hello"),
  );
  const watching = new AbortController();
  t.after(() => watching.abort());
  const seen = await watchReleases(krane, watching.signal);
  const stop = await askApp(krane);
  t.after(stop);

  await krane.type(applyLine({ ...app, image: newImage }));
  for (const back of [1, 2]) {
    const printed = await krane.type(`krane rollout undo ${appId} --wait --timeout 180s`);
    assert.match(printed, new RegExp(`is back on release ${back}, whose pods still run`));
  }
  await isOn(2);

  await assert.rejects(krane.type(applyLine(deaf)), /release 3 .*not ready/i);
  assert.match(await krane.type(`krane why ${appId}`), /Release 3 failed; the app stays on release 2\./);
  await isOn(2);

  await krane.type(`krane rollout undo ${appId} --to-release 1 --wait --timeout 180s`);
  await isOn(4);

  const asked = await stop();
  for (const [deployment, { count }] of Object.entries(asked.answers))
    t.diagnostic(`${deployment}: ${count} answers`);
  checkAsked(asked, seen);
  assert.deepEqual(
    Object.keys(asked.answers).sort(),
    [1, 2, 4].map((release) => `${appId}-${release}`),
  );
  assert.deepEqual(
    [...seen.left.keys()],
    [1, 2].map((release) => `${appId}-${release}`),
  );
});
