// Releases of an app on the real node, while a pod asks for it by its name a hundred times a second.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { after, before, test } from "node:test";
import type { Pod } from "kubernetes-types/core/v1.js";
import { eventually } from "../support/eventually.ts";
import { whoamiImages } from "../support/node/images.ts";
import { type InstalledKrane, installedKrane } from "../support/node/installed-krane.ts";
import { askFromPod, patience, startProbe } from "../support/node/tenants.ts";

const [oldImage, newImage] = whoamiImages;
const id = "app_rolled";
const namespace = "rolled";
const stopFile = "/tmp/asked-enough";
const owner = { workspace: "ws_rolled", project: "proj_rolled" };
const environment = { apiVersion: "krane/v1", kind: "Environment", id: "env_rolled", ...owner };
const app = {
  apiVersion: "krane/v1",
  kind: "App",
  id,
  name: "rolled",
  namespace,
  ...owner,
  environment: environment.id,
  image: oldImage,
  replicas: 2,
  cpu: "500m",
  healthcheck: { method: "GET", path: "/", intervalSeconds: 1, timeoutSeconds: 5, failureThreshold: 60 },
  expose: "cluster",
  release: { readyFor: "3s", deadline: "30s", drainFor: "10s" },
};
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

after(() => krane.type(`krane delete app ${id} --yes --wait --timeout 180s`));

/** Fails if the release does. */
function apply(document: Readonly<Record<string, unknown>>): Promise<string> {
  const documents = [environment, document].map((each) => JSON.stringify(each)).join("\n---\n");
  return krane.type(`krane apply --wait --timeout 180s -f - <<'END'\n${documents}\nEND`);
}

interface Asked {
  readonly asked: number;
  /** By deployment; times are from the first request. */
  readonly answers: Readonly<Record<string, { count: number; firstMs: number; lastMs: number }>>;
  readonly failures: readonly unknown[];
}

/** Asks until `stop`, which resolves with what was seen. */
async function askOften(url: string): Promise<() => Promise<Asked>> {
  const program = await readFile(new URL("../support/node/ask-often.mjs", import.meta.url), "utf8");
  const run = (...args: readonly string[]) =>
    krane.cluster.kubectl(["-n", "probe", "exec", "probe", "--", "/nodejs/bin/node", ...args]);
  const asking = run("--input-type=module", "--eval", program, "--", url, stopFile);
  return async () => {
    await run("--eval", `require("node:fs").writeFileSync("${stopFile}", "")`);
    return JSON.parse(await asking) as Asked;
  };
}

/** By release, oldest first; what is ending included. */
async function podsByRelease(): Promise<Readonly<Record<string, number>>> {
  const printed = await krane.cluster.kubectl(["-n", namespace, "get", "pods", "-o", "json"]);
  const { items } = JSON.parse(printed) as { readonly items: readonly Pod[] };
  const counts: Record<string, number> = {};
  for (const { metadata } of items) {
    const release = metadata?.labels?.["unkey.com/deployment.id"] ?? "";
    counts[release] = (counts[release] ?? 0) + 1;
  }
  return counts;
}

const untilOnly = (release: number) =>
  eventually(
    `the pods of all releases but ${release} are gone`,
    async () => assert.deepEqual(await podsByRelease(), { [`${id}-${release}`]: 2 }),
    patience,
  );

const releaseOf = (asked: Asked, number: number) => asked.answers[`${id}-${number}`];

test("no request fails while releases start, fail, are undone and end", { timeout: 600_000 }, async (t) => {
  await apply(app);
  // The proxy of the node follows the Service a moment later.
  await eventually("the app answers at its name", async () =>
    assert.equal(await askFromPod(krane, `http://rolled.${namespace}/`), "hello"),
  );
  const stop = await askOften(`http://rolled.${namespace}/env`);
  t.after(stop);

  await apply({ ...app, image: newImage });
  await untilOnly(2);

  await assert.rejects(apply(deaf), /release 3 .*not ready/i);
  assert.match(await krane.type(`krane why ${id}`), /Release 3 failed; the app stays on release 2\./);
  await untilOnly(2);

  await krane.type(`krane rollout undo ${id} --to-release 1 --wait --timeout 180s`);
  await untilOnly(4);

  const asked = await stop();
  for (const [deployment, seen] of Object.entries(asked.answers))
    t.diagnostic(`${deployment}: ${seen.count} answers, asked from ${seen.firstMs} to ${seen.lastMs} ms`);
  assert.deepEqual(asked.failures, []);
  assert.deepEqual(Object.keys(asked.answers).sort(), [`${id}-1`, `${id}-2`, `${id}-4`]);
  const total = [1, 2, 4].map((number) => releaseOf(asked, number)?.count ?? 0).reduce((a, b) => a + b);
  assert.equal(total, asked.asked);
});
