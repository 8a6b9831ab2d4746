// `krane dev` as a person or a pipe meets it, through main(), in the process of the test.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { join } from "node:path";
import { describe, type TestContext, test } from "node:test";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import { main } from "../../../src/cli/main.ts";
import { readTextFile } from "../../../src/cli/process/text-file.ts";
import type { Terminal } from "../../../src/cli/terminal/terminal.ts";
import { namespaces, replicaSets } from "../../../src/kube/resources.ts";

import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { FakeTerminal } from "../../support/fake-terminal.ts";
import { serveCluster } from "../../support/served-cluster.ts";
import { never, temporaryFolder } from "./dev-world.ts";

const freePorts = ["rpc", "metrics", "control", "kube"].flatMap((name) => [`--${name}-port`, "0"]);

interface Started {
  readonly io: FakeIo;
  readonly kubeconfig: string;
  readonly exitCode: Promise<number>;
}

async function start(t: TestContext, args: readonly string[], terminal?: Terminal): Promise<Started> {
  const kubeconfig = join(await temporaryFolder(t), "state", "kubeconfig");
  const io = Object.assign(new FakeIo(), { readTextFile }, terminal && { terminal: () => terminal });
  const exitCode = main(["dev", "--write-kubeconfig", kubeconfig, ...args], {}, io);
  t.after(async () => {
    if (io.signalListeners > 0) io.send("SIGTERM");
    await exitCode;
  });
  return { io, kubeconfig, exitCode };
}

/** What the admin API lists for whoever has the file. */
async function phasesInContext(path: string): Promise<readonly string[]> {
  const text = readFileSync(path, "utf8");
  const [server, region, token] = ["server", "region", "token"].map(
    (key) => new RegExp(`^${key} = "(.*)"$`, "m").exec(text)?.[1],
  );
  const response = await fetch(`${server}/krane.admin.v1.AdminService/ListObjects`, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${token}` },
    body: JSON.stringify({ region, kind: "OBJECT_KIND_DEPLOYMENT" }),
  });
  const { objects } = (await response.json()) as { objects: { name: string; phase: string }[] };
  return objects.map(({ name, phase }) => `${name} ${phase}`);
}

describe("krane dev --headless", () => {
  test("a log file that cannot be written is an error at the start", async (t) => {
    const { io, exitCode } = await start(t, [...freePorts, "--log-file", "/no/such/folder/agent.log"]);
    assert.equal(await exitCode, 1);
    const reason = "cannot write /no/such/folder/agent.log: no such file or directory";
    assert.equal(io.stderr.text, `krane: --log-file: ${reason}\n`);
  });

  test("prints where to look and one line per change, and leaves nothing behind", async (t) => {
    const { io, kubeconfig, exitCode } = await start(t, freePorts);
    await eventually("everything is ready", () =>
      assert.match(io.stdout.text, /all 3 deployments are ready\n/),
    );
    assert.match(io.stdout.text, /^kubernetes: http:\/\/127\.0\.0\.1:\d+\n/);
    assert.ok(io.stdout.text.includes(`export KUBECONFIG=${kubeconfig}\n`));
    assert.match(io.stdout.text, /^deployment krane-dev\/web-1: desired v1, applied v1, ready 2\/2, \w+$/m);
    assert.match(io.stdout.text, /^sentinel sentinel\/gateway: desired v4, /m);
    await eventually("the policy is there", () =>
      assert.match(io.stdout.text, /^policy krane-dev\/to-web-1: desired v5, applied v5, \w+$/m),
    );
    assert.match(readFileSync(kubeconfig, "utf8"), /http:\/\/127\.0\.0\.1/);
    const context = `${kubeconfig}.cli.toml`;
    assert.ok(io.stdout.text.includes(`export KRANE_CONFIG=${context}\n`));
    await eventually("the admin API knows that all is well", async () =>
      assert.deepEqual(await phasesInContext(context), [
        "api-1 PHASE_READY",
        "preview-1 PHASE_READY",
        "web-1 PHASE_READY",
      ]),
    );
    io.send("SIGINT");
    assert.equal(await exitCode, 0);
    assert.match(io.stdout.text, /stopped\n$/);
    assert.equal(io.stderr.text, "");
    assert.equal(existsSync(kubeconfig), false);
    assert.equal(existsSync(context), false);
    assert.equal(io.signalListeners, 0);
  });

  test("stops when nobody reads it any more", async (t) => {
    const { io, exitCode } = await start(t, freePorts);
    io.stdout.backlogBytes = Number.POSITIVE_INFINITY;
    assert.equal(await exitCode, 0);
  });

  test("stops while it is still starting", async (t) => {
    const { io, kubeconfig, exitCode } = await start(t, freePorts);
    await eventually("it listens to signals", () => assert.equal(io.signalListeners, 1));
    io.send("SIGTERM");
    assert.equal(await exitCode, 0);
    assert.equal(existsSync(kubeconfig), false);
  });
});

describe("krane dev with a terminal", () => {
  test("shows the table, does what keys say, and gives the terminal back", async (t) => {
    const terminal = new FakeTerminal();
    const { io, exitCode } = await start(t, freePorts, terminal);
    await terminal.shows(/web-1 .*2\/2/);
    await terminal.shows(/^> deployment +krane-dev\/api-1 .*3\/3/m);
    terminal.press("down");
    await terminal.shows(/^> deployment +krane-dev\/preview-1/m);
    terminal.press("up");
    terminal.press("+");
    terminal.press("+");
    await terminal.shows(/api-1 .*5\/5/);
    await terminal.shows(/scaled api-1 to 5/);
    terminal.press("?");
    await terminal.shows(/Any key closes this page/);
    terminal.press("x");
    await terminal.shows(/LAST OUTCOME/);
    terminal.press("q");
    assert.equal(await exitCode, 0);
    assert.equal(terminal.isHeld, false);
    assert.equal(io.stdout.text, "stopped\n");
  });

  test("has colours unless NO_COLOR is set", async (t) => {
    for (const [env, expected] of [
      [{}, true],
      [{ NO_COLOR: "1" }, false],
    ] as const) {
      const terminal = new FakeTerminal();
      const io = Object.assign(new FakeIo(), { readTextFile, terminal: () => terminal });
      const kubeconfig = join(await temporaryFolder(t), "kubeconfig");
      const exitCode = main(["dev", "--write-kubeconfig", kubeconfig, ...freePorts], env, io);
      await terminal.shows(/web-1/);
      assert.equal(terminal.lines.join("").includes("\u001b["), expected);
      terminal.press("ctrl-c");
      assert.equal(await exitCode, 0);
    }
  });
});

describe("krane dev says what is wrong", () => {
  for (const flag of ["--rpc-port", "--metrics-port", "--control-port", "--kube-port"]) {
    test(`when the port of ${flag} is taken`, async (t) => {
      const taken = createServer();
      const host = flag === "--kube-port" ? "127.0.0.1" : undefined;
      await new Promise<void>((resolve) => taken.listen({ port: 0, host }, resolve));
      t.after(() => taken.close());
      const address = taken.address();
      const port = String(typeof address === "object" && address ? address.port : 0);
      const { io, exitCode, kubeconfig } = await start(t, [...freePorts, flag, port]);
      assert.equal(await exitCode, 1);
      assert.equal(
        io.stderr.text,
        `krane: ${flag}: port ${port} is already in use; choose another port or stop the process that uses it\n`,
      );
      assert.equal(existsSync(kubeconfig), false);
    });
  }

  // Also where an earlier run has left its namespace: what is in it need not be of that run.
  for (const namespace of ["default", "krane-dev"])
    test(`when the cluster is one that another krane manages, by an object in ${namespace}`, async (t) => {
      const cluster = await serveCluster();
      t.after(() => cluster.stop());
      if (namespace !== "default")
        await cluster.api.create(namespaces, { metadata: { name: namespace } }, {}, never);
      await cluster.api.create(replicaSets, replicaSetOfOthers(namespace), {}, never);
      const { io, exitCode } = await startOn(t, cluster.kubeconfig);
      assert.equal(await exitCode, 1);
      assert.match(io.stderr.text, /managed by another krane/);
      assert.ok(io.stderr.text.includes(`(it created ReplicaSet ${namespace}/theirs)`));
      assert.equal((await cluster.api.list(replicaSets, {}, never)).items.length, 1);
    });

  test("when there is no such kubeconfig", async (t) => {
    const { io, exitCode } = await start(t, [...freePorts, "--kubeconfig", "/does/not/exist"]);
    assert.equal(await exitCode, 1);
    assert.match(io.stderr.text, /^krane: --kubeconfig: .*\/does\/not\/exist.*no such file\n$/);
  });

  test("when a port is none, and when there is no place for the kubeconfig", async () => {
    const io = new FakeIo();
    assert.equal(await main(["dev", "--rpc-port", "70000"], {}, io), 64);
    assert.match(io.stderr.text, /port from 0 to 65535/);
    const homeless = new FakeIo();
    assert.equal(await main(["dev", ...freePorts], {}, homeless), 64);
    assert.match(homeless.stderr.text, /--write-kubeconfig/);
  });
});

test("krane dev --kubeconfig takes a cluster without krane, also a busy one, and one that it has used before", async (t) => {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  let refusals = 0;
  cluster.server.faults.intercept(({ path }) => {
    if (!path.endsWith("/ciliumnetworkpolicies") || refusals > 0) return undefined;
    refusals++;
    return { kind: "whole", status: 429, retryAfterSeconds: 0, body: "storage is (re)initializing" };
  });
  for (let round = 0; round < 2; round++) {
    const { io, exitCode, kubeconfig } = await startOn(t, cluster.kubeconfig);
    await eventually("all are ready", () => assert.match(io.stdout.text, /all 3 deployments are ready/));
    await eventually("so is the policy", () => assert.match(io.stdout.text, /the policy is in place/));
    io.send("SIGINT");
    assert.equal(await exitCode, 0);
    assert.match(io.stdout.text, /delete namespace krane-dev\n$/);
    assert.equal(existsSync(kubeconfig), true);
    const names = (await cluster.api.list(replicaSets, {}, never)).items.map(
      ({ metadata }) => metadata?.name,
    );
    assert.deepEqual(names.sort(), ["api-1", "preview-1", "web-1"]);
  }
});

/** With the given text as the kubeconfig of a cluster of one's own. */
async function startOn(t: TestContext, kubeconfigText: string): Promise<Started> {
  const path = join(await temporaryFolder(t), "theirs");
  await writeFile(path, kubeconfigText);
  return { ...(await start(t, [...freePorts, "--kubeconfig", path])), kubeconfig: path };
}

test("krane dev --help shows examples", async () => {
  const io = new FakeIo();
  assert.equal(await main(["dev", "--help"], {}, io), 0);
  assert.match(io.stdout.text, /krane dev --headless \| tee/);
});

function replicaSetOfOthers(namespace: string): ReplicaSet {
  const labels = { "app.kubernetes.io/managed-by": "krane", "unkey.com/workspace.id": "ws_theirs" };
  const spec = { containers: [{ name: "c", image: "registry.example/c:1" }] };
  return {
    metadata: { name: "theirs", namespace, labels },
    spec: {
      replicas: 0,
      selector: { matchLabels: { a: "b" } },
      template: { metadata: { labels: { a: "b" } }, spec },
    },
  };
}
