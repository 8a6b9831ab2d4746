// `krane server` as it is run: the bundle, with TLS, by a user who is not root, on every
// Node that there is. An agent and a person reach it over https.
import assert from "node:assert/strict";
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { chmod, chown, copyFile, mkdtemp, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { fileURLToPath } from "node:url";
import { Code, createClient } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { parse } from "smol-toml";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { Secret } from "../../../src/config/secret.ts";
import { createControlPlane } from "../../../src/control-plane/connection.ts";
import { AdminService } from "../../../src/gen/krane/admin/v1/admin_pb.ts";
import { kinds } from "../../../src/kinds/kinds.ts";
import { copyPrograms, findPostgresBinaries } from "../../../src/server/embedded/binaries.ts";
import { type Account, findAccount, findClosedFolder } from "../../../src/server/embedded/data-folder.ts";
import { applyDeployment, environmentOf } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { findNode24 } from "../../support/node24.ts";

const projectRoot = fileURLToPath(new URL("../../../", import.meta.url));
const region = { name: "local", platform: "dev", label: "local.dev" };

let krane: Awaited<ReturnType<typeof buildKrane>>;
before(async () => {
  krane = await buildKrane();
  await chmod(dirname(krane.program), 0o755);
});
after(() => krane.remove());

interface StartedProcess {
  readonly child: ChildProcess;
  readonly dataDir: string;
  readonly caFile: string;
  /** What it has told the person who started it. */
  said(): string;
}

async function startServer(t: TestContext, node: string): Promise<StartedProcess> {
  const folder = await mkdtemp(join(tmpdir(), "krane-server-"));
  t.after(() => rm(folder, { recursive: true, force: true, maxRetries: 20 }));
  const [caFile, keyFile] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  await copyFile(join(projectRoot, "testdata/tls/first.cert.pem"), caFile);
  await copyFile(join(projectRoot, "testdata/tls/first.key.pem"), keyFile);
  // Whoever runs the tests as root has the server run as somebody else.
  const account = await findAccount(process.getuid?.());
  for (const path of [folder, caFile, keyFile]) {
    if (account !== undefined) await chown(path, account.uid, account.gid);
  }
  const dataDir = join(folder, "data");
  const { postgres, nodeProgram } = await reachablePrograms(node, folder, account);
  const flags = {
    "data-dir": dataDir,
    "postgres-bin": dirname(postgres),
    listen: "127.0.0.1:0",
    "tls-cert-file": caFile,
    "tls-key-file": keyFile,
  };
  const args = Object.entries(flags).flatMap(([name, value]) => [`--${name}`, value]);
  const child = spawn(nodeProgram, [krane.program, "server", ...args], {
    ...account,
    cwd: folder,
    env: { PATH: process.env["PATH"] },
    stdio: ["ignore", "ignore", "pipe"],
  });
  t.after(async () => {
    if (child.exitCode === null && child.kill("SIGTERM")) await once(child, "close");
  });
  let said = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    said += text;
  });
  return { child, dataDir, caFile, said: () => said };
}

/** Copies of them, if the account may not enter the folder of this checkout, such as one of `mktemp -d`. */
async function reachablePrograms(node: string, folder: string, account: Account | undefined) {
  const { postgres, packaged } = await findPostgresBinaries(undefined);
  if ((await findClosedFolder(postgres, account)) === undefined || packaged === undefined)
    return { postgres, nodeProgram: node };
  const copies = await copyPrograms(packaged, folder);
  const copiedNode = join(folder, "node");
  await copyFile(node, copiedNode);
  return { postgres: copies.postgres, nodeProgram: copiedNode };
}

/** Where the server is and who may talk to it, as its file for krane's commands says. */
async function readContext(path: string): Promise<Record<"server" | "region" | "token" | "ca_file", string>> {
  const { contexts } = JSON.parse(JSON.stringify(parse(await readFile(path, "utf8"))));
  return contexts.server;
}

async function assertServes(t: TestContext, node: string): Promise<void> {
  const { child, dataDir, caFile, said } = await startServer(t, node);
  await eventually("it has started", () => {
    assert.equal(child.exitCode, null, said());
    assert.match(said(), /Press Ctrl-C to stop/);
  });
  const [, contextPath = ""] = /export KRANE_CONFIG=(.*)$/m.exec(said()) ?? assert.fail(said());
  assert.equal(contextPath, join(dataDir, "cli.toml"));
  for (const name of ["cli.toml", "admin-tokens", "agent-tokens"]) {
    assert.equal((await stat(join(dataDir, name))).mode & 0o777, 0o600, name);
  }
  const context = await readContext(contextPath);
  assert.match(context.server, /^https:\/\/localhost:\d+$/);
  assert.equal(context.ca_file, caFile, "a certificate that signs itself is its own authority");
  const ca = await readFile(context.ca_file, "utf8");
  const admins = (token: string) =>
    createClient(
      AdminService,
      createConnectTransport({
        baseUrl: context.server,
        httpVersion: "1.1",
        nodeOptions: { ca },
        interceptors: [
          (next) => (request) => {
            request.header.set("authorization", `Bearer ${token}`);
            return next(request);
          },
        ],
      }),
    );
  const spec = { spec: { case: "deployment", value: applyDeployment() } } as const;
  await admins(context.token).applyEnvironment({ region: context.region, ...environmentOf() });
  const { version } = await admins(context.token).applyObject({ region: context.region, spec });
  assert.equal(version, 1n);
  await assert.rejects(admins("somebody-else-entirely").listAgents({}), { code: Code.Unauthenticated });

  const agentTokens = await readFile(join(dataDir, "agent-tokens"), "utf8");
  const token = new Secret(/^local\.dev (.*)$/m.exec(agentTokens)?.[1] ?? assert.fail(agentTokens));
  const agent = createControlPlane(
    {
      controller: "deployments",
      baseUrl: context.server,
      region,
      token: { current: async () => token, refresh: () => undefined },
      ca,
    },
    { clock: createSystemClock() },
  );
  t.after(() => agent.close());
  const { signal } = new AbortController();
  const answer = await agent.get(kinds.deployment, { id: "d_1a2B3c4D" }, signal);
  assert.equal(answer.kind, "found");
  await agent.heartbeat(signal);
  const { agents } = await admins(context.token).listAgents({});
  assert.ok((agents[0]?.heartbeatAtMs ?? 0n) > 0n);

  child.kill("SIGTERM");
  const [code] = (await once(child, "close")) as [number | null];
  assert.equal(code, 0, said());
  assert.ok(!existsSync(join(dataDir, "postgres/data/postmaster.pid")), "the database has stopped");
}

test("a server with TLS that is not run by root serves agents and people, and stops cleanly", (t) =>
  assertServes(t, process.execPath));

test("and so it does on Node 24", async (t) => {
  const node = findNode24();
  if (node === undefined) return t.skip("Node 24 is not installed");
  await assertServes(t, node);
});
