// `krane logs` on a real API server with RBAC: what the agent's service account may read, with the chart's option and
// without it, and a log that is written faster than people read. The nodes are kwok's.
import assert from "node:assert/strict";
import { appendFile } from "node:fs/promises";
import { join } from "node:path";
import { after, type TestContext, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { readTextFile } from "../../src/cli/process/text-file.ts";
import { createSystemClock, sleep } from "../../src/concurrency/clock.ts";
import { parse, startedAgent } from "../integration/agent/agent-world.ts";
import { type AdminServer, startAdminServer } from "../support/admin-server.ts";
import { printedLog } from "../support/cluster/stages.ts";
import { clusterUnderTest } from "../support/cluster-under-test.ts";
import { installRights } from "../support/deployed-rights.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { FakeIo } from "../support/fake-io.ts";
import { startFaultProxy } from "../support/fault-proxy.ts";
import { freePort } from "../support/krane-process.ts";

const never = new AbortController().signal;
const clock = createSystemClock();
const cluster = clusterUnderTest();
after(() => cluster.empty());

/** An agent that serves logs, with these rights, and a deployment of one pod. */
async function startRegion(t: TestContext, rights: readonly ("agent" | "logs")[], namespace: string) {
  await cluster.empty();
  const installed = await installRights(cluster, rights);
  t.after(() => installed.remove());
  const server = await startAdminServer();
  t.after(() => server.stop());
  const config = parse(`region = "local.dev"
rpc_port = ${await freePort()}
[control]
url = "${server.url}"
token = "${server.tokens.agent}"
[kubernetes]
kubeconfig = "kubeconfig"
[logs]
enabled = true`);
  await startedAgent(t, config, { kubeconfig: await readTextFile(installed.kubeconfigPath, never) });
  const spec = { deploymentId: "d_web", k8sNamespace: namespace, replicas: 1 };
  await server.admin.setDeployment("local.dev", applyDeployment(spec));
  await eventually("its pod is reported", async () =>
    assert.equal((await server.admin.instances("local.dev", "d_web")).length, 1),
  );
  return server;
}

/** Starts `krane logs`. */
function startLogs({ tokens, url }: Pick<AdminServer, "tokens" | "url">, ...argv: readonly string[]) {
  const io = new FakeIo();
  const env = { KRANE_SERVER: url, KRANE_TOKEN: tokens.logs, KRANE_REGION: "local.dev" };
  const ended = main(["logs", ...argv, "web"], env, io);
  return { io, ended, lines: () => io.stdout.text.split("\n").slice(0, -1) };
}

test("the agent reads logs only with the chart's option, and says so", async (t) => {
  const server = await startRegion(t, ["agent"], "acme");
  const refused = startLogs(server);
  assert.equal(await refused.ended, 77, refused.io.stderr.text);
  assert.match(
    refused.io.stderr.text,
    /may not get pods\/log in this cluster; set agent\.logs\.enabled=true/,
  );

  const granted = await installRights(cluster, ["agent", "logs"]);
  t.after(() => granted.remove());
  const allowed = startLogs(server);
  // Pods of this namespace have no log: the right is there, and the log is not.
  assert.equal(await allowed.ended, 1);
  const said = /pod web-\w+: the log cannot be read: logs of pod acme\/web-\w+: [45]\d\d/;
  assert.match(allowed.io.stderr.text, said);
});

const perSecond = 1_000;
const seconds = process.env["KRANE_TEST_LONG"] === "1" ? 120 : 6;
const count = perSecond * seconds;

/** Writes a line per millisecond, as a program and containerd would. */
async function print(): Promise<void> {
  const begunMs = clock.nowMs();
  for (let written = 0; written < count; ) {
    const due = Math.min(count, Math.floor(clock.nowMs() - begunMs));
    let text = "";
    for (; written < due; written++) {
      const time = new Date(begunMs + written).toISOString().replace("Z", "000000Z");
      text += `${time} stdout F line ${written} ${"x".repeat(80)}\n`;
    }
    await appendFile(join(cluster.dir, printedLog.path), text);
    await sleep(clock, 20, never);
  }
}

test(`a log of ${perSecond} lines a second is followed in order by fast, slow and cut-off readers`, async (t) => {
  const server = await startRegion(t, ["agent", "logs"], printedLog.namespace);
  await appendFile(join(cluster.dir, printedLog.path), "");
  const front = await startFaultProxy(t, Number(new URL(server.url).port));
  const quick = startLogs(server, "-f");
  const slow = startLogs(server, "-f");
  const cut = startLogs({ ...server, url: front.url }, "-f");
  const readers = { quick, slow, cut };
  t.after(() => {
    for (const { io } of Object.values(readers)) io.send("SIGINT");
  });
  // A full pipe, which its reader does not empty.
  slow.io.stdout.backlogBytes = 2 ** 21;
  const printing = print();
  const reached = (share: number) =>
    eventually(`line ${share * count} is read`, async () => assert.ok(quick.lines().length > share * count));
  await reached(0.3);
  front.cut();
  await reached(0.6);
  slow.io.stdout.backlogBytes = 0;
  await printing;
  for (const [name, { io, lines }] of Object.entries(readers)) {
    await eventually(
      `${name} has read the last line`,
      async () => assert.equal(lines().at(-1)?.split(" ")[1], String(count - 1), io.stderr.text),
      { deadlineMs: 60_000 },
    );
    const numbers = lines().map((line) => Number(line.split(" ")[1]));
    const dropped = [...io.stderr.text.matchAll(/(\d+) lines? dropped here/g)].map(([, each]) =>
      Number(each),
    );
    t.diagnostic(`${name}: ${numbers.length} lines, ${dropped.reduce((a, b) => a + b, 0)} dropped`);
    assert.deepEqual(
      numbers,
      [...new Set(numbers)].sort((a, b) => a - b),
      `${name}: in order, none twice`,
    );
    assert.equal(numbers.length + dropped.reduce((a, b) => a + b, 0), count, name);
  }
  assert.equal(quick.lines().length, count, "who reads fast enough misses nothing");
  assert.match(cut.io.stderr.text, /the stream was cut: .*; reconnecting/);
});
