// Who the client is to the server, on real sockets, with real files and a real program.
import assert from "node:assert/strict";
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type TestContext, test } from "node:test";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createCommandRunner } from "../../../src/kube/command-runner.ts";
import { loadKubeEndpoint } from "../../../src/kube/endpoint.ts";
import type { KubeApiError } from "../../../src/kube/errors.ts";
import { pods } from "../../../src/kube/resources.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { answerJson, connectTo, startStubApiServer, status } from "../../support/stub-api-server.ts";

const signal = new AbortController().signal;
const ref = { namespace: "default", name: "a" };

/** A server that takes only this token. */
async function startGuardedServer(t: TestContext, token: string) {
  const guard = { token };
  const server = await startStubApiServer(t, (request, response) => {
    if (request.headers.authorization === `Bearer ${guard.token}`) {
      answerJson(response, 200, { metadata: { name: "a", resourceVersion: "1" } });
    } else answerJson(response, 401, status(401, "Unauthorized"));
  });
  return { guard, server };
}

async function emptyFolder(t: TestContext): Promise<string> {
  const dir = await mkdtemp(join(tmpdir(), "krane-credentials-"));
  t.after(() => rm(dir, { recursive: true }));
  return dir;
}

function kubeconfig(server: string, user: unknown): string {
  return JSON.stringify({
    "current-context": "test",
    contexts: [{ name: "test", context: { cluster: "test", user: "test" } }],
    clusters: [{ name: "test", cluster: { server } }],
    users: [{ name: "test", user }],
  });
}

async function connectWith(
  t: TestContext,
  server: Awaited<ReturnType<typeof startStubApiServer>>,
  dir: string,
  user: unknown,
  clock = createSystemClock() as FakeClock | ReturnType<typeof createSystemClock>,
) {
  const path = join(dir, "config");
  await writeFile(path, kubeconfig(server.url, user));
  const endpoint = await loadKubeEndpoint(
    { kubeconfig: path, env: {} },
    {
      clock,
      readTextFile: (file) => readFile(file, "utf8"),
      runCommand: createCommandRunner({ PATH: process.env["PATH"] }),
    },
    signal,
  );
  return connectTo(t, server, { endpoint });
}

test("a token file that was rotated is read again, with one 401 at most and no request lost", async (t) => {
  const { guard, server } = await startGuardedServer(t, "old");
  const dir = await emptyFolder(t);
  await writeFile(join(dir, "token"), "old\n");
  const clock = new FakeClock();
  const { api } = await connectWith(t, server, dir, { tokenFile: "token" }, clock);
  await api.get(pods, ref, {}, signal);
  await clock.advance(10_000);

  guard.token = "new";
  await writeFile(join(dir, "token"), "new\n");
  for (let count = 0; count < 5; count++) await api.get(pods, ref, {}, signal);
  assert.deepEqual(
    server.requests.map((request) => request.authorization),
    ["old", "old", "new", "new", "new", "new", "new"].map((token) => `Bearer ${token}`),
  );

  await writeFile(join(dir, "token"), "newer\n");
  guard.token = "newer";
  await clock.advance(61_000);
  await api.get(pods, ref, {}, signal);
  assert.equal(server.requests.at(-2)?.authorization, "Bearer new");
  assert.equal(server.requests.length, 8, "the file was read in time, so there was no second 401");
});

test("a write and a watch that met a 401 are sent again with the new token", async (t) => {
  const { guard, server } = await startGuardedServer(t, "new");
  const dir = await emptyFolder(t);
  await writeFile(join(dir, "token"), "old");
  const clock = new FakeClock();
  const { api } = await connectWith(t, server, dir, { tokenFile: "token" }, clock);
  await assert.rejects(api.get(pods, ref, {}, signal), (error: KubeApiError) => error.status === 401);
  await clock.advance(2_000);
  await writeFile(join(dir, "token"), "new");
  await api.apply(pods, { metadata: ref }, { fieldManager: "krane", force: false }, signal);
  guard.token = "third";
  await clock.advance(2_000);
  await writeFile(join(dir, "token"), "third");
  const events = api.watch(pods, {}, signal)[Symbol.asyncIterator]();
  // The guarded server answers a watch with an object, which is no event; that it answered is the point.
  await assert.rejects(events.next(), (error: KubeApiError) => error.code !== "refused");
});

test("with a 401 for everything, no request is sent twice and the files are left alone", async (t) => {
  const { server } = await startGuardedServer(t, "never");
  const dir = await emptyFolder(t);
  const { api } = await connectWith(t, server, dir, { token: "wrong" });
  for (let count = 0; count < 5; count++) {
    await assert.rejects(api.get(pods, ref, {}, signal), (error: KubeApiError) => error.status === 401);
  }
  assert.equal(server.requests.length, 5);
});

test("an exec plugin is run once, and again when the server refuses what it gave", async (t) => {
  const { guard, server } = await startGuardedServer(t, "run-1");
  const dir = await emptyFolder(t);
  const plugin = join(dir, "plugin.sh");
  await writeFile(
    plugin,
    [
      "#!/bin/sh",
      'echo run >> "$RUNS"',
      'n=$(wc -l < "$RUNS" | tr -d " ")',
      'case "$KUBERNETES_EXEC_INFO" in *ExecCredential*) ;; *) exit 3 ;; esac',
      'echo "{\\"apiVersion\\":\\"client.authentication.k8s.io/v1\\",\\"kind\\":\\"ExecCredential\\",\\"status\\":{\\"token\\":\\"$1-$n\\"}}"',
    ].join("\n"),
  );
  await chmod(plugin, 0o755);
  const exec = {
    apiVersion: "client.authentication.k8s.io/v1",
    command: "./plugin.sh",
    args: ["run"],
    env: [{ name: "RUNS", value: join(dir, "runs") }],
    interactiveMode: "Never",
  };
  const clock = new FakeClock();
  const { api } = await connectWith(t, server, dir, { exec }, clock);
  await Promise.all([1, 2, 3].map(() => api.get(pods, ref, {}, signal)));
  assert.equal(await readFile(join(dir, "runs"), "utf8"), "run\n");

  guard.token = "run-2";
  await clock.advance(10_000);
  await Promise.all([1, 2, 3].map(() => api.get(pods, ref, {}, signal)));
  assert.equal(await readFile(join(dir, "runs"), "utf8"), "run\nrun\n");
});

test("an exec plugin that fails is a credentials error, and nothing is sent", async (t) => {
  const { server } = await startGuardedServer(t, "never");
  const dir = await emptyFolder(t);
  for (const [command, args] of [
    ["false", []],
    ["no-such-program-anywhere", []],
    ["echo", ["a-secret"]],
  ] as const) {
    const exec = { apiVersion: "client.authentication.k8s.io/v1", command, args };
    const { api } = await connectWith(t, server, dir, { exec });
    await assert.rejects(api.get(pods, ref, {}, signal), (error: KubeApiError) => {
      assert.equal(error.code, "credentials");
      assert.doesNotMatch(`${error.stack} ${String(error.cause)}`, /a-secret/);
      return true;
    });
  }
  assert.equal(server.requests.length, 0);
});
