// Two agents behind a Service, pods that ask for their secrets all the time, and agents that are replaced and killed: no
// pod waits for longer than a moment. With KRANE_TEST_LONG=1 there are 500 kills; KRANE_TEST_KILLS is another number.
import assert from "node:assert/strict";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { connect, createServer, type Socket } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, before, type TestContext, test } from "node:test";
import { setTimeout as delay } from "node:timers/promises";
import { fetchSecrets } from "../../../src/cli/exec/exec-secrets.ts";
import { createSystemClock } from "../../../src/concurrency/clock.ts";
import { createSeededRandom, type Random } from "../../../src/concurrency/random.ts";
import { createFileStorage } from "../../../src/vault/storage/file-storage.ts";
import { type AgentProcess, startAgentProcess } from "../../support/agent-process.ts";
import { applyDeployment, utf8 } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { fetchHttp1 } from "../../support/http-clients.ts";
import { buildKrane } from "../../support/krane-process.ts";
import { SecretSeekers } from "../../support/secret-seekers.ts";
import { serveCluster } from "../../support/served-cluster.ts";
import { createTestVault } from "../../support/vault-fixture.ts";
import { agentToken, region } from "../agent/agent-world.ts";
import { serveControlPlane, token } from "../server/served-control-plane.ts";

const isLong = process.env["KRANE_TEST_LONG"] === "1";
const kills = Number(process.env["KRANE_TEST_KILLS"] ?? (isLong ? 500 : 4));
const podCount = 50;
// A machine that runs other tests beside this one is slow.
const retryMs = isLong ? 2_000 : 10_000;
// How long Kubernetes may send connections to an agent that is gone.
const noticeMs = 1_000;
const renewMs = 300_000;
const masterKey =
  "Ch9rZWtfMmdqMFBJdVhac1NSa0ZhNE5mOWlLSnBHenFPENTt7an5MRogENt9Si6wms4pQ2XIvqNSIgNpaBenJmXgcInhu6Nfv2U=";
const keyring = "env_a";
const never = new AbortController().signal;

let krane: Awaited<ReturnType<typeof buildKrane>>;
before(async () => {
  krane = await buildKrane();
});
after(() => krane.remove());

/**
 * Sends each connection to one of its endpoints at random, as Kubernetes does. It closes connections and resets none: a
 * socket of Node that is reset while it ends is never closed, and the process would not exit.
 */
async function startService(t: TestContext, random: Random) {
  const endpoints = new Set<number>();
  const open = new Set<Socket>();
  const server = createServer((client) => {
    const ports = [...endpoints];
    const port = ports[Math.floor(random.next() * ports.length)];
    if (port === undefined) {
      client.destroy();
      return;
    }
    const peer = connect(port, "127.0.0.1");
    for (const [one, other] of [
      [client, peer],
      [peer, client],
    ] as const) {
      open.add(one);
      // It closes after this.
      one.on("error", () => undefined);
      one.on("close", () => {
        open.delete(one);
        other.destroy();
      });
      one.pipe(other);
    }
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    for (const socket of open) socket.destroy();
    server.close();
  });
  const address = server.address();
  const port = typeof address === "object" ? address?.port : undefined;
  return { url: `http://127.0.0.1:${port ?? assert.fail("it has no port")}`, endpoints };
}

async function startWorld(t: TestContext) {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const { admin, running } = await serveControlPlane(t, "h2c");
  const folder = await mkdtemp(join(tmpdir(), "krane-kills-"));
  t.after(() => rm(folder, { recursive: true }));
  const clock = createSystemClock();
  const storage = createFileStorage(join(folder, "keys"), { clock });
  const vault = createTestVault({ storage, keys: [masterKey], clock });
  const { encrypted } = await vault.encrypt({ keyring, data: "s3cret", context: "PASSWORD" }, never);
  await vault.close();
  const blob = utf8(JSON.stringify({ secrets: { PASSWORD: encrypted } }));
  for (let index = 0; index < podCount; index++)
    await admin.setDeployment(
      region,
      applyDeployment({
        k8sName: `web-${index}`,
        deploymentId: `d_${index}`,
        environmentId: keyring,
        replicas: 1,
        encryptedEnvironmentVariables: blob,
      }),
    );
  const service = await startService(t, createSeededRandom(7));
  const kubeconfigPath = join(folder, "kubeconfig");
  await writeFile(kubeconfigPath, cluster.kubeconfig, { mode: 0o600 });
  let started = 0;
  /** Resolves when it is ready, and an endpoint of the Service. */
  const startAgent = async (): Promise<AgentProcess> => {
    started += 1;
    const controlPlane = { url: running?.url ?? assert.fail("it is not served"), token };
    const place = { program: krane.program, region, controlPlane, kubeconfigPath, agentToken };
    const agent = await startAgentProcess(t, place, {
      UNKEY_INSTANCE_ID: `agent-${started}`,
      UNKEY_LEASE: "required",
      UNKEY_VAULT_MASTER_KEYS: masterKey,
      UNKEY_VAULT_FILE_PATH: join(folder, "keys"),
    });
    await eventually("it is ready", async () =>
      assert.equal((await fetchHttp1(`${agent.url}/health/ready`)).status, 200),
    );
    service.endpoints.add(portOf(agent));
    return agent;
  };
  return { cluster, service, startAgent, blob };
}

function portOf({ url }: AgentProcess): number {
  return Number(new URL(url).port);
}

interface Seeking {
  readonly tookMs: readonly number[];
  readonly failures: readonly string[];
}

/** Asks for the secrets of every pod without pause until the signal aborts. */
async function seek(
  seekers: SecretSeekers,
  { endpoint, blob }: { readonly endpoint: string; readonly blob: Uint8Array },
  over: AbortSignal,
): Promise<Seeking> {
  const clock = createSystemClock();
  const random = createSeededRandom(11);
  const tookMs: number[] = [];
  const failures: string[] = [];
  const seekAs = async (index: number) => {
    const pod = await seekers.podOf(`d_${index}`);
    const question = {
      endpoint,
      tokenPath: "/token",
      blob,
      names: new Set(["PASSWORD"]),
      deploymentId: `d_${index}`,
      environmentId: keyring,
    };
    // It is valid for ten minutes. Kubernetes replaces the file in time.
    const deps = { clock, random, readTextFile: () => podToken };
    let podToken = seekers.tokenOf(pod);
    let issuedMs = performance.now();
    while (!over.aborted) {
      // A pod may ask once a second.
      await delay(1_000 + 1_000 * random.next());
      const beganMs = performance.now();
      if (beganMs - issuedMs > renewMs) {
        podToken = seekers.tokenOf(pod);
        issuedMs = beganMs;
      }
      await fetchSecrets(question, { timeoutMs: retryMs }, deps, never).then(
        (values) => assert.equal(values.get("PASSWORD"), "s3cret"),
        (error: Error) => void failures.push(error.message),
      );
      tookMs.push(performance.now() - beganMs);
    }
  };
  await Promise.all(Array.from({ length: podCount }, (_, index) => seekAs(index)));
  return { tookMs, failures };
}

test("pods get their secrets while agents are replaced and killed", async (t) => {
  const { cluster, service, startAgent, blob } = await startWorld(t);
  const { endpoints } = service;
  const random = createSeededRandom(3);
  let agents = [await startAgent(), await startAgent()];
  const seekers = new SecretSeekers(cluster.api, "acme");
  await seekers.podOf(`d_${podCount - 1}`);
  const over = new AbortController();
  t.after(() => over.abort());
  const seeking = seek(seekers, { endpoint: service.url, blob }, over.signal);
  const leaves = async (agent: AgentProcess) => {
    await delay(noticeMs);
    endpoints.delete(portOf(agent));
  };

  // A rolling upgrade: a new one first, then an old one stops.
  for (const old of agents) {
    const next = await startAgent();
    await Promise.all([old.stop(), leaves(old)]);
    agents = [...agents.filter((agent) => agent !== old), next];
  }
  for (let kill = 0; kill < kills; kill++) {
    const target = agents[Math.floor(random.next() * agents.length)] ?? assert.fail("no agent");
    target.kill();
    await Promise.all([target.gone, leaves(target)]);
    agents = [...agents.filter((agent) => agent !== target), await startAgent()];
  }
  over.abort();
  const { tookMs, failures } = await seeking;
  assert.deepEqual(failures, []);
  const sorted = tookMs.toSorted((one, other) => one - other);
  const at = (share: number) => `${(sorted[Math.ceil(sorted.length * share) - 1] ?? 0).toFixed(0)} ms`;
  t.diagnostic(`${kills} kills, ${sorted.length} requests: p50 ${at(0.5)}, p99 ${at(0.99)}, max ${at(1)}`);
});
