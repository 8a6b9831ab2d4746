// The bundle as it runs in a container: not as root, on a read-only file system, with no shell and no other program.
// Each part starts with the configuration that deploy/manifests has for it, does its work, and stops cleanly.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { mkdtemp, rm } from "node:fs/promises";
import { connect, createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, describe, type TestContext, test } from "node:test";
import { createSystemClock } from "../../src/concurrency/clock.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { findPostgresBinaries } from "../../src/server/embedded/binaries.ts";
import { startEmbeddedPostgres } from "../../src/server/embedded/embedded-postgres.ts";
import { generateMasterKey } from "../../src/vault/master-keys.ts";
import { dev as region, serveControlPlane, token } from "../integration/server/served-control-plane.ts";
import {
  buildContainerImage,
  type ContainerImage,
  type ContainerOptions,
  containerObstacle,
  containerUser,
} from "../support/container.ts";
import type { ManifestObject } from "../support/deployed-parts.ts";
import { manifestsOf } from "../support/deployed-rights.ts";
import { applyDeployment } from "../support/deployment-messages.ts";
import { eventually } from "../support/eventually.ts";
import { fetchHttp1 } from "../support/http-clients.ts";
import { freePort } from "../support/krane-process.ts";
import { createQuietLog } from "../support/quiet-log.ts";
import { serveCluster } from "../support/served-cluster.ts";

const never = new AbortController().signal;
const skip = (await containerObstacle()) ?? false;
let image: ContainerImage;

before(async () => {
  if (!skip) image = await buildContainerImage();
});
after(() => image?.remove());

/** The configuration in the manifest of a part, where its pod has it. */
function configOf(part: "agent" | "server" | "vault"): Readonly<Record<string, string>> {
  const objects = manifestsOf(`${part}.yaml`) as readonly ManifestObject[];
  const text = objects.find(({ kind }) => kind === "ConfigMap")?.data?.["krane.toml"];
  return { "/etc/krane/krane.toml": text ?? assert.fail("no configuration") };
}

/** Resolves when it is ready, and returns what stops it and checks that it went well. */
async function startReady(t: TestContext, options: ContainerOptions, url: string) {
  const args = [...options.args, "--config", "/etc/krane/krane.toml"];
  const { child, exit } = await image.start(t, { ...options, args });
  const gaveUp = new AbortController();
  const died = exit.then(({ code, stdout, stderr }) => {
    gaveUp.abort();
    throw new Error(`it ended with ${code}: ${stdout}${stderr}`);
  });
  died.catch(() => undefined);
  const ready = async () => assert.equal((await fetchHttp1(`${url}/health/ready`)).status, 200);
  await Promise.race([eventually("it is ready", ready, { signal: gaveUp.signal }), died]);
  assertContained(child.pid ?? assert.fail("it has no pid"), options.writable ?? []);
  return async () => {
    child.kill("SIGTERM");
    const { code, stderr } = await exit;
    assert.equal(code, 0, stderr);
  };
}

/** The kernel's own word for it: who it is, what it may do, and what of its files it can write to. */
function assertContained(pid: number, writable: readonly string[]): void {
  const status = readFileSync(`/proc/${pid}/status`, "utf8");
  assert.match(status, new RegExp(`^Uid:(\\t${containerUser}){4}$`, "m"));
  assert.match(status, /^CapEff:\t0+$/m);
  const mounts = readFileSync(`/proc/${pid}/mountinfo`, "utf8")
    .trim()
    .split("\n")
    .map((line) => line.split(" "))
    .filter(([, , , , path = ""]) => !/^\/(dev|proc)(\/|$)/.test(path));
  const isOpen = ([, , , , , options = ""]: readonly string[]) => options.split(",").includes("rw");
  assert.deepEqual(
    mounts.filter(isOpen).map(([, , , , path]) => path),
    writable,
  );
  assert.ok(mounts.some(([, , , , path]) => path === "/"));
}

describe("krane in a container", { skip }, () => {
  test("the agent", async (t) => {
    const cluster = await serveCluster();
    t.after(() => cluster.stop());
    const { admin, running } = await serveControlPlane(t, "h2c");
    await admin.setDeployment(region, applyDeployment({ k8sName: "web", deploymentId: "d_1" }));
    const port = await freePort();
    const stop = await startReady(
      t,
      {
        args: ["agent"],
        files: {
          ...configOf("agent"),
          "/etc/krane/kubeconfig": cluster.kubeconfig,
          "/run/secrets/krane/control-token": token,
          "/run/secrets/krane/agent-token": "token-of-the-agent-service",
          "/run/secrets/krane/vault-token": "token-of-the-vault",
        },
        env: {
          UNKEY_RPC_PORT: String(port),
          UNKEY_PROMETHEUS_PORT: String(await freePort()),
          UNKEY_CONTROL_PLANE_URL: `http://127.0.0.1:${running?.port}`,
          UNKEY_KUBERNETES_KUBECONFIG: "/etc/krane/kubeconfig",
        },
      },
      `http://127.0.0.1:${port}`,
    );
    await eventually("the deployment is there", async () => {
      const { items } = await cluster.api.list(replicaSets, {}, never);
      assert.deepEqual(
        items.map(({ metadata }) => metadata?.name),
        ["web"],
      );
    });
    await stop();
  });

  test("the server, with a database of somebody else", async (t) => {
    const databaseUrl = await serveDatabase(t);
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const agentToken = "token-of-some-region";
    const stop = await startReady(
      t,
      {
        args: ["server"],
        files: {
          ...configOf("server"),
          "/run/secrets/krane/database-url": databaseUrl,
          "/run/secrets/krane/agent-tokens": `local.dev ${agentToken}\n`,
          "/run/secrets/krane/admin-tokens": "ada read-write token-of-somebody-else\n",
        },
        env: {
          UNKEY_SERVER_LISTEN: `127.0.0.1:${port}`,
          UNKEY_PROMETHEUS_PORT: String(await freePort()),
        },
      },
      url,
    );
    const call = { region: { name: "local", platform: "dev" } };
    assert.equal(await post(`${url}/ctrl.v1.ClusterService/Heartbeat`, agentToken, call), 200);
    await stop();
  });

  test("the vault, with a volume", async (t) => {
    const port = await freePort();
    const url = `http://127.0.0.1:${port}`;
    const vaultToken = "token-of-the-vault";
    const stop = await startReady(
      t,
      {
        args: ["vault", "serve"],
        files: {
          ...configOf("vault"),
          "/run/secrets/krane/token": vaultToken,
          "/run/secrets/krane/master-keys": `${generateMasterKey(Date.now())}\n`,
        },
        writable: ["/var/lib/krane-vault"],
        env: { UNKEY_RPC_PORT: String(port), UNKEY_PROMETHEUS_PORT: String(await freePort()) },
      },
      url,
    );
    const call = { keyring: "env_1", data: "value" };
    assert.equal(await post(`${url}/vault.v1.VaultService/Encrypt`, vaultToken, call), 200);
    await stop();
  });
});

async function post(url: string, bearer: string, body: object): Promise<number> {
  const headers = {
    authorization: `Bearer ${bearer}`,
    "content-type": "application/json",
    "x-krane-region": "local.dev",
  };
  return (await fetch(url, { method: "POST", headers, body: JSON.stringify(body) })).status;
}

/** PostgreSQL on a port, as it is reached from a container. */
async function serveDatabase(t: TestContext): Promise<string> {
  const dataDir = await mkdtemp(join(tmpdir(), "krane-container-"));
  const binaries = await findPostgresBinaries(undefined);
  const deps = { clock: createSystemClock(), log: createQuietLog() };
  const postgres = await startEmbeddedPostgres({ dataDir, binaries, uid: process.getuid?.() }, deps, never);
  const { host = "", port = 0, user, password } = postgres.config;
  const relay = createServer((client) => {
    const socket = connect(join(host, `.s.PGSQL.${port}`));
    client.pipe(socket).pipe(client);
    for (const [one, other] of [
      [client, socket],
      [socket, client],
    ] as const)
      one.on("error", () => undefined).on("close", () => other.destroy());
  });
  const relayPort = await freePort();
  await new Promise<void>((resolve) => relay.listen(relayPort, "127.0.0.1", resolve));
  t.after(async () => {
    relay.close();
    await postgres.stop();
    await rm(dataDir, { recursive: true });
  });
  return `postgres://${user}:${password}@127.0.0.1:${relayPort}/postgres`;
}
