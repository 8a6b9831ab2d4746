// The server ended by SIGKILL while desired state changes: what was acknowledged is there
// afterwards, under the version that was told, and a client that followed has all of it.
import assert from "node:assert/strict";
import { type TestContext, test } from "node:test";
import { createSeededRandom, uniform } from "../../../src/concurrency/random.ts";
import { DesiredFollower } from "../../support/desired-follower.ts";
import { eventually } from "../../support/eventually.ts";
import { freePort } from "../../support/krane-process.ts";
import {
  type Change,
  createDataDir,
  postmasterPid,
  startServerProcess,
} from "../../support/server-process.ts";

const kills = process.env["KRANE_TEST_LONG"] === "1" ? 100 : 4;
const region = "local.dev";
const token = "token-of-the-test";

test("no acknowledged change is lost, and no version means two things, however often a server is killed", async (t) => {
  const dataDir = await createDataDir(t);
  const port = await freePort();
  const flags = { "data-dir": dataDir, listen: `127.0.0.1:${port}`, "agent-tokens": `${region} ${token}` };
  const stopped = new AbortController();
  const follower = new DesiredFollower({ url: () => `http://127.0.0.1:${port}`, region, token });
  const following = follower.run(stopped.signal);
  t.after(() => stopped.abort());

  const acknowledged: Change[] = [];
  const random = createSeededRandom(7);
  const start = (run: string, changes: number) =>
    startServerProcess(t, { flags, region, run, deployments: 7, changes });
  for (let kill = 0; kill < kills; kill++) {
    const server = await start(`r${kill}`, Number.MAX_SAFE_INTEGER);
    await server.changed(Math.floor(uniform(random, 1, 40)));
    // Now and then the database goes with it, as when a machine loses power.
    if (kill % 4 === 3) process.kill(await postmasterPid(dataDir), "SIGKILL");
    await server.end("SIGKILL");
    acknowledged.push(...server.changes);
  }
  const last = await start("last", 7);
  await last.changed(7);
  acknowledged.push(...last.changes);

  const newest = BigInt(acknowledged.at(-1)?.version ?? "0");
  await eventually("the follower has caught up", () =>
    assert.ok(
      follower.cursor >= newest,
      `at ${follower.cursor} of ${newest} on connection ${follower.connections}, after ${follower.lastError?.message}; the server: ${last.log()}`,
    ),
  );
  assertKept(acknowledged, follower);
  await assertReplay(t, port, follower);
  stopped.abort();
  await following;
  assert.equal(await last.end("SIGTERM"), 0);
  await assert.rejects(postmasterPid(dataDir), "the database is stopped with the server");
});

function assertKept(acknowledged: readonly Change[], follower: DesiredFollower): void {
  const versions = acknowledged.map(({ version }) => BigInt(version));
  assert.equal(new Set(versions).size, versions.length, "no version was given twice");
  for (const [index, version] of versions.entries()) {
    assert.ok(index === 0 || version > (versions[index - 1] ?? 0n), "versions grow");
  }
  for (const { id, version, image } of acknowledged) {
    const seen = follower.imagesByVersion.get(BigInt(version));
    assert.ok(
      seen === undefined || seen === image,
      `version ${version} was told as ${image} and seen as ${seen}`,
    );
    const now = follower.images.get(id);
    assert.ok(now !== undefined && now.version >= BigInt(version), `${id} has lost version ${version}`);
  }
}

/** A client that starts from 0 sees the same as one that was connected all the time. */
async function assertReplay(t: TestContext, port: number, follower: DesiredFollower): Promise<void> {
  const stopped = new AbortController();
  t.after(() => stopped.abort());
  const fresh = new DesiredFollower({ url: () => `http://127.0.0.1:${port}`, region, token });
  void fresh.run(stopped.signal);
  await eventually("a fresh follower has caught up", () => assert.equal(fresh.cursor, follower.cursor));
  assert.deepEqual([...fresh.images].sort(), [...follower.images].sort());
  stopped.abort();
}

test("a second server on the same folder is refused, and the first one goes on", async (t) => {
  const dataDir = await createDataDir(t);
  const flags = { "data-dir": dataDir, listen: "127.0.0.1:0", "agent-tokens": `${region} ${token}` };
  const plan = { flags, region, run: "first", deployments: 3, changes: Number.MAX_SAFE_INTEGER };
  const first = await startServerProcess(t, plan);
  await first.changed(1);
  await assert.rejects(startServerProcess(t, { ...plan, run: "second" }), /another krane server is using/);
  await first.changed(first.changes.length + 5);
  assert.equal(await first.end("SIGTERM"), 0);
});
