// Releases of an app on the real node while agents and servers are killed, and a pod asks for the app by its name a hundred
// times a second.
//
// There are 10 releases; with KRANE_TEST_LONG=1, 100. KRANE_TEST_RELEASES is another number. KRANE_TEST_SEED repeats who is
// killed, and when.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { createSystemClock, sleep } from "../../src/concurrency/clock.ts";
import { createSeededRandom, uniform } from "../../src/concurrency/random.ts";
import { eventually } from "../support/eventually.ts";
import {
  app,
  appId,
  applyLine,
  askApp,
  checkAsked,
  newImage,
  oldImage,
  untilOnly,
  watchReleases,
} from "../support/node/asked-app.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { killOne } from "../support/node/node-kills.ts";
import { askFromPod, patience, startProbe } from "../support/node/tenants.ts";

const isLong = process.env["KRANE_TEST_LONG"] === "1";
const releaseCount = Number(process.env["KRANE_TEST_RELEASES"] ?? (isLong ? 100 : 10));
const seed = Number(process.env["KRANE_TEST_SEED"] ?? Math.floor(Date.now() / 1_000));
const random = createSeededRandom(seed);
const clock = createSystemClock();
const killWithinMs = 8_000;

let krane: InstalledKrane;

before(
  async () => {
    krane = await installedKrane();
    await startProbe(krane);
    console.error(`releases: ${releaseCount}, seed ${seed}`);
  },
  { timeout: 600_000 },
);

after(() => {
  const isGone = `! krane get app ${appId} > /dev/null 2>&1 && krane get apps > /dev/null`;
  return typeUntilDone(`krane delete app ${appId} --yes --wait --timeout 180s || { ${isGone}; }`);
});

/** Types it until it succeeds: the server that it talks to may be dead at the moment. */
function typeUntilDone(line: string): Promise<string> {
  return eventually(`done: ${line.slice(0, 60)}`, () => krane.type(line), patience);
}

/** At some time during a release. Of two kills in a row, Kubernetes would let the second one wait for up to five minutes. */
async function killSomebody(part: "agent" | "server", signal: AbortSignal): Promise<number> {
  await sleep(clock, uniform(random, 0, killWithinMs), signal);
  const pod = await killOne(part, random);
  if (pod === undefined) return 0;
  await krane.cluster.kubectl(["-n", "krane", "delete", "pod", pod, "--wait=false", "--ignore-not-found"]);
  return 1;
}

/** Resolves with the number of the current release. */
async function currentRelease(): Promise<number> {
  const { app: view } = JSON.parse(await typeUntilDone(`krane get app ${appId} -o json`)) as {
    readonly app: { readonly releases: readonly { readonly number: number; readonly phase: string }[] };
  };
  return (
    view.releases.find(({ phase }) => phase === "PHASE_CURRENT")?.number ?? assert.fail("none is current")
  );
}

test(`no request fails in ${releaseCount} releases while agents and servers are killed`, {
  timeout: (releaseCount + 10) * 60_000,
}, async (t) => {
  const images = [oldImage, newImage];
  const release = { readyFor: "2s", deadline: "5m", drainFor: "5s" };
  await krane.type(applyLine({ ...app, release }));
  await eventually("the app answers at its name", async () =>
    assert.equal(await askFromPod(krane, "http://rolled.rolled/"), "hello"),
  );
  const watching = new AbortController();
  t.after(() => watching.abort());
  const seen = await watchReleases(krane, watching.signal);
  const stop = await askApp(krane);
  t.after(stop);
  const kills = { agent: 0, server: 0 };
  for (let n = 1; n <= releaseCount; n++) {
    const part = n % 2 === 0 ? "agent" : "server";
    const killing = killSomebody(part, watching.signal);
    await typeUntilDone(applyLine({ ...app, release, image: images[n % 2] }));
    kills[part] += await killing;
  }
  const current = await currentRelease();
  await untilOnly(krane, `${appId}-${current}`);
  const asked = await stop();
  console.error(
    `releases: ${asked.asked} requests, ${asked.failures.length} failed; release ${current} is current; ` +
      `the Service left ${seen.left.size}; killed ${kills.agent} agents and ${kills.server} servers`,
  );
  checkAsked(asked, seen);
  assert.ok(asked.answers[`${appId}-${current}`], "it was asked to the end");
  assert.ok(current > releaseCount && seen.left.size >= releaseCount);
});

test("a release whose program crashes after it was ready fails, and the app stays where it was", {
  timeout: 600_000,
}, async () => {
  const before = await currentRelease();
  const command = ["/nodejs/bin/node", "-e", `setTimeout(() => process.exit(1), 10000); import("/app.mjs")`];
  const crashing = { ...app, command, release: { ...app.release, readyFor: "1m", deadline: "9m" } };
  const failed = /release \d+ failed: .*; the app stays on release \d+/;
  await assert.rejects(krane.type(applyLine(crashing).replace("180s", "500s")), failed);
  assert.equal(await currentRelease(), before);
  await untilOnly(krane, `${appId}-${before}`);
  assert.equal(await askFromPod(krane, "http://rolled.rolled/"), "hello");
});
