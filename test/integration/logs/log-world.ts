// A region whose pods print what a test says: the embedded API server, a control plane and the agent between them, and
// `krane logs` as people run it.
import assert from "node:assert/strict";
import type { TestContext } from "node:test";
import { main } from "../../../src/cli/main.ts";
import { pods } from "../../../src/kube/resources.ts";
import { type AdminServer, startAdminServer } from "../../support/admin-server.ts";
import { applyDeployment } from "../../support/deployment-messages.ts";
import { eventually } from "../../support/eventually.ts";
import { FakeIo } from "../../support/fake-io.ts";
import { type FaultProxy, startFaultProxy } from "../../support/fault-proxy.ts";
import { freePort } from "../../support/krane-process.ts";
import { type PrintedLogs, printLogs } from "../../support/printed-logs.ts";
import { kubeconfigFor, type ServedCluster, serveCluster } from "../../support/served-cluster.ts";
import { parse, startedAgent } from "../agent/agent-world.ts";

const never = new AbortController().signal;

export interface LogWorld extends PrintedLogs {
  readonly cluster: ServedCluster;
  readonly server: AdminServer;
  /** What the agent's connections to the control plane go through. */
  readonly link: FaultProxy;
  /** What `krane logs` goes through. */
  readonly front: FaultProxy;
  startAgent(settings?: string): Promise<{ stop(): Promise<void> }>;
  deploy(id?: string, replicas?: number): Promise<readonly string[]>;
  /** Starts `krane logs`. */
  logs(argv: readonly string[], options?: { readonly token?: string; readonly io?: FakeIo }): RunningLogs;
}

export interface RunningLogs {
  readonly io: FakeIo;
  readonly ended: Promise<number>;
  lines(): readonly string[];
}

export async function createLogWorld(t: TestContext): Promise<LogWorld> {
  const cluster = await serveCluster();
  t.after(() => cluster.stop());
  const server = await startAdminServer();
  t.after(() => server.stop());
  const link = await startFaultProxy(t, Number(new URL(server.url).port));
  const front = await startFaultProxy(t, Number(new URL(server.url).port));
  const printed = printLogs(cluster);
  const running: FakeIo[] = [];
  t.after(() => {
    for (const io of running) io.send("SIGINT");
  });
  return {
    ...{ cluster, server, link, front },
    ...printed,
    async startAgent(settings = "[logs]\nenabled = true") {
      const rpcPort = await freePort();
      const config = parse(`region = "local.dev"
rpc_port = ${rpcPort}
[control]
url = "http://127.0.0.1:${link.port}"
token = "${server.tokens.agent}"
[kubernetes]
kubeconfig = "kubeconfig"
${settings}`);
      return startedAgent(t, config, { kubeconfig: kubeconfigFor(cluster.url) });
    },
    async deploy(id = "d_web", replicas = 1) {
      const name = id.replace("d_", "");
      await server.admin.setDeployment(
        "local.dev",
        applyDeployment({ deploymentId: id, k8sName: name, replicas }),
      );
      return eventually(`pods of ${id} are reported`, async () => {
        const instances = await server.admin.instances("local.dev", id);
        assert.equal(instances.length, replicas);
        return instances.map(({ k8sName }) => k8sName).sort();
      });
    },
    logs(argv, { token = server.tokens.logs, io = new FakeIo() } = {}) {
      running.push(io);
      const env = {
        KRANE_SERVER: `http://127.0.0.1:${front.port}`,
        KRANE_TOKEN: token,
        KRANE_REGION: "local.dev",
      };
      const ended = main(["logs", ...argv], env, io);
      return { io, ended, lines: () => io.stdout.text.split("\n").slice(0, -1) };
    },
  };
}

export function podsOf(world: LogWorld) {
  return world.cluster.api.list(pods, { namespace: "acme" }, never);
}
