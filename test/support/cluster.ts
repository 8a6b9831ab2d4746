// Starts a real Kubernetes control plane on the loopback interface, with fake
// nodes, and takes it away again without a trace.
//
// Everything it writes lies in one temporary folder, which a leash removes
// together with the processes, even when the starter is killed.

import { mkdtemp, readFile, writeFile } from "node:fs/promises";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { requestApi } from "./cluster/api-request.ts";
import {
  apiServer,
  authorityPath,
  type ComponentCommand,
  type ControlPlaneLayout,
  controllerManager,
  etcd,
  files,
  kwok,
  scheduler,
} from "./cluster/components.ts";
import {
  createIdentities,
  type Identity,
  writeKubeconfig,
  writeServiceAccountKey,
  writeTokenFile,
} from "./cluster/credentials.ts";
import type { ClusterFacts } from "./cluster/facts.ts";
import { type KubectlOptions, runKubectl } from "./cluster/kubectl.ts";
import { type Kennel, openKennel } from "./cluster/leash.ts";
import { auditPolicy, clusterObjects, realNodeObjects } from "./cluster/manifests.ts";
import { kwokStages } from "./cluster/stages.ts";
import { whileAlive } from "./cluster/vigil.ts";
import { eventually } from "./eventually.ts";

export interface ClusterOptions {
  /** A folder with the binaries, as `resolveKubeBinaries` finds it. */
  readonly binariesDir: string;
  /** A real node joins, and no fake ones exist. It must be started by the caller. */
  readonly realNode?: ControlPlaneLayout["realNode"];
}

export interface Cluster extends ClusterFacts {
  kubectl(args: readonly string[], options?: KubectlOptions): Promise<string>;
  /** Ends every process and removes the folder. Calling it again is harmless. */
  stop(): Promise<void>;
}

const startDeadlineMs = 60_000;

export async function startCluster(options: ClusterOptions, signal: AbortSignal): Promise<Cluster> {
  const dir = await mkdtemp(join(tmpdir(), "krane-cluster-"));
  const kennel = openKennel(dir);
  try {
    const layout = {
      dir,
      binariesDir: options.binariesDir,
      ...(options.realNode && { realNode: options.realNode }),
      port: await freePort(),
      kubeletPort: await freePort(),
      identities: createIdentities(dir),
    };
    const facts = await startComponents(layout, kennel, signal);
    return {
      ...facts,
      kubectl: (args, kubectlOptions) => runKubectl(facts, args, kubectlOptions),
      stop: () => kennel.close(),
    };
  } catch (error) {
    await kennel.close();
    throw error;
  }
}

async function startComponents(
  layout: ControlPlaneLayout,
  kennel: Kennel,
  signal: AbortSignal,
): Promise<ClusterFacts> {
  const { dir, identities } = layout;
  const run = (command: ComponentCommand) =>
    kennel.start({
      ...command,
      cwd: dir,
      // Nothing of the user's shell (proxies, kubeconfigs, kwok's folder) leaks in.
      env: { PATH: process.env["PATH"], HOME: dir, KWOK_WORKDIR: dir, TMPDIR: dir },
      logPath: join(dir, `${command.name}.log`),
    });
  await Promise.all([
    writeTokenFile(join(dir, files.tokens), identities),
    writeServiceAccountKey(join(dir, files.serviceAccountKey)),
    writeFile(join(dir, files.auditPolicy), JSON.stringify(auditPolicy())),
    writeFile(join(dir, files.stages), kwokStages),
  ]);
  const store = run(etcd(layout));
  const server = run(apiServer(layout));
  const facts = await whileAlive([store, server], (until) => whenServing(layout, until), signal);
  await Promise.all(
    Object.values(identities).map((identity: Identity) =>
      writeKubeconfig(identity, facts.serverUrl, facts.ca),
    ),
  );
  const fakeNodes = layout.realNode === undefined;
  const components = [controllerManager, scheduler, ...(fakeNodes ? [kwok] : [])];
  const workers = components.map((component) => run(component(layout)));
  await whileAlive([store, server, ...workers], (until) => bootstrap(facts, fakeNodes, until), signal);
  return facts;
}

/** Asks until the API server is ready, and says how to reach it. */
function whenServing(layout: ControlPlaneLayout, signal: AbortSignal): Promise<ClusterFacts> {
  const { dir, identities } = layout;
  const caPath = authorityPath(layout);
  const serverUrl = `https://127.0.0.1:${layout.port}`;
  const adminToken = identities.admin.token;
  return eventually(
    "the API server is ready",
    async () => {
      const ca = await readFile(caPath, "utf8");
      const answer = await requestApi({ serverUrl, ca, adminToken }, { path: "/readyz" });
      if (answer.status !== 200) {
        throw new Error(`/readyz answers ${answer.status}: ${String(answer.body)}`);
      }
      return {
        serverUrl,
        ca,
        caPath,
        adminToken,
        kubeconfigPath: identities.admin.kubeconfigPath,
        agentUser: identities.agent.user,
        agentToken: identities.agent.token,
        agentKubeconfigPath: identities.agent.kubeconfigPath,
        auditLogPath: join(dir, files.auditLog),
        binariesDir: layout.binariesDir,
        dir,
      };
    },
    { deadlineMs: startDeadlineMs, signal },
  );
}

async function bootstrap(facts: ClusterFacts, fakeNodes: boolean, signal: AbortSignal): Promise<void> {
  const crdPath = join(facts.binariesDir, "ciliumnetworkpolicies.yaml");
  const apply = ["apply", "--server-side", "--field-manager=krane-test-cluster"];
  const input = JSON.stringify(fakeNodes ? clusterObjects() : realNodeObjects());
  const wait = ["wait", `--timeout=${startDeadlineMs / 1000}s`];
  await Promise.all([
    runKubectl(facts, [...apply, "-f", crdPath], { signal }),
    runKubectl(facts, [...apply, "-f", "-"], { input, signal }),
  ]);
  await Promise.all([
    runKubectl(facts, [...wait, "--for=condition=Established", "crd/ciliumnetworkpolicies.cilium.io"], {
      signal,
    }),
    fakeNodes && runKubectl(facts, [...wait, "--for=condition=Ready", "node", "--all"], { signal }),
  ]);
}

// Taken by someone else between here and the API server's bind, it makes the
// API server end with a message that says so.
function freePort(): Promise<number> {
  return new Promise((resolve, reject) => {
    const server = createServer().once("error", reject);
    server.listen(0, "127.0.0.1", () => {
      const address = server.address();
      const port = typeof address === "object" && address !== null ? address.port : 0;
      server.close(() => resolve(port));
    });
  });
}
