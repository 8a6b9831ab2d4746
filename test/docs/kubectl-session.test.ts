// Replays the kubectl session of the README against `krane dev`, with the real kubectl.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { delimiter, join } from "node:path";
import { type TestContext, test } from "node:test";
import { main } from "../../src/cli/main.ts";
import { readTextFile } from "../../src/cli/process/text-file.ts";
import { ObjectKind } from "../../src/gen/krane/admin/v1/admin_pb.ts";
import { type Cause, causes } from "../../src/why/explanation.ts";
import { remedyOf } from "../../src/why/remedies.ts";
import { resolveKubeBinaries } from "../../tools/kube-binaries.ts";
import { eventually } from "../support/eventually.ts";
import { FakeIo } from "../support/fake-io.ts";
import { readProjectFile } from "../support/project-files.ts";
import { type Exchange, normalised, sessionOf } from "../support/shown-session.ts";

interface Shell {
  run(command: string): Promise<string>;
}

/** The folder of the pinned kubectl: what another version prints is worded differently, so no other will do. */
async function findKubectl(): Promise<string | undefined> {
  const report = (line: string) => console.error(line);
  const { signal } = new AbortController();
  const binaries = await resolveKubeBinaries(process.env, { report }, signal);
  return binaries.kind === "ready" ? binaries.dir : undefined;
}

async function startedDev(t: TestContext): Promise<{ kubeconfig: string; folder: string }> {
  const folder = await mkdtemp(join(tmpdir(), "krane-session-"));
  t.after(() => rm(folder, { recursive: true, force: true }));
  const kubeconfig = join(folder, "kubeconfig");
  const io = Object.assign(new FakeIo(), { readTextFile });
  const ports = ["rpc", "metrics", "control", "kube"].flatMap((name) => [`--${name}-port`, "0"]);
  const ended = main(["dev", "--headless", "--write-kubeconfig", kubeconfig, ...ports], {}, io);
  t.after(async () => {
    io.send("SIGTERM");
    assert.equal(await ended, 0, io.stderr.text);
  });
  await eventually("krane dev is ready", () => assert.match(io.stdout.text, /all 3 deployments are ready/));
  return { kubeconfig, folder };
}

function createShell(
  binaries: string,
  { kubeconfig, folder }: { kubeconfig: string; folder: string },
): Shell {
  const env = {
    PATH: `${binaries}${delimiter}${process.env["PATH"]}`,
    HOME: folder,
    KUBECONFIG: kubeconfig,
    KUBECACHEDIR: join(folder, "cache"),
  };
  return {
    run: (command) =>
      new Promise((resolve, reject) => {
        execFile("/bin/sh", ["-c", command], { env, timeout: 60_000 }, (error, stdout, stderr) => {
          if (error === null) resolve(stdout);
          else reject(new Error(`${command}: ${stderr || error.message}`));
        });
      }),
  };
}

// What only looks is asked again until the cluster has come to rest, as a person would.
async function replay(shell: Shell, { command, output }: Exchange): Promise<void> {
  const look = async () => assert.equal(normalised(await shell.run(command)), normalised(output), command);
  if (/^kubectl (get|describe) /.test(command)) await eventually(command, look);
  else await look();
}

test("the kubectl session in the README gives the output shown there", async (t) => {
  const session = sessionOf(readProjectFile("README.md"), "kubectl-session");
  const commands = session.filter(({ command }) => !command.startsWith("export "));
  assert.ok(commands.length >= 5);
  const binaries = await findKubectl();
  if (binaries === undefined) {
    console.error(
      "SKIPPED: the kubectl session of the README: the pinned kubectl is not there, and no Go to build it with",
    );
    t.skip("no kubectl");
    return;
  }
  const shell = createShell(binaries, await startedDev(t));
  for (const exchange of commands) await replay(shell, exchange);
});

/**
 * Their commands look at kinds that only other programs create, so an embedded cluster has neither them nor the cause. That of
 * `not-at-gateway` is for clusters with the Gateway API, which the remedy names first.
 */
const impossible: ReadonlySet<Cause> = new Set([
  "isolation-lowered",
  "quota",
  "changed-by-cluster",
  "not-at-gateway",
]);

test("krane dev answers every kubectl command that krane why recommends", async (t) => {
  const binaries = await findKubectl();
  if (binaries === undefined) {
    t.skip("no kubectl");
    return;
  }
  const shell = createShell(binaries, await startedDev(t));
  const facts = {
    ...{ region: "local.dev", name: "d_web-1", namespace: "krane-dev", objectName: "web-1" },
    ...{ kind: ObjectKind.DEPLOYMENT, controller: "deployments", key: "krane-dev/web-1" },
  };
  const remedies = causes.filter((cause) => !impossible.has(cause)).map((cause) => remedyOf(cause, facts));
  const commands = new Set(remedies.flatMap((remedy) => remedy.match(/kubectl .+?(?=[.;] |$)/g) ?? []));
  assert.ok(commands.size >= 7, [...commands].join("\n"));
  // The last, because the pods are then new ones.
  const isLast = (command: string) => Number(command.includes(" delete "));
  for (const command of [...commands].sort((a, b) => isLast(a) - isLast(b))) await shell.run(command);
});

test("what is compared of an output is what stays the same", () => {
  assert.equal(
    normalised("api-1-2sggv   1/1     Running   0          3s\n"),
    normalised("api-1-zzzzz  1/1  Running 0 2m17s"),
  );
  assert.equal(normalised("gateway-slm9mrrv8q-kt4gk 1/1"), normalised("gateway-7c5d8f9b6-x2x9k 1/1"));
  assert.notEqual(normalised("web-1   2   2"), normalised("web-1   2   1"));
  assert.notEqual(normalised("web-1   5   3s"), normalised("web-2   5   3s"));
});
