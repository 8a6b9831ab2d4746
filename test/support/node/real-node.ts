// Starts a real Kubernetes node and its control plane. Works only in a box (box.ts), whose network, mounts and control
// groups it takes for the machine's.

import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { promisify } from "node:util";
import type { Service } from "kubernetes-types/core/v1.js";
import type { EndpointSlice } from "kubernetes-types/discovery/v1.js";
import { requestApi } from "../cluster/api-request.ts";
import type { ComponentCommand } from "../cluster/components.ts";
import { kubeconfig } from "../cluster/credentials.ts";
import type { ClusterFacts } from "../cluster/facts.ts";
import { type Kennel, type Leashed, openKennel } from "../cluster/leash.ts";
import { whileAlive } from "../cluster/vigil.ts";
import { type Cluster, startCluster } from "../cluster.ts";
import { eventually } from "../eventually.ts";
import { nodeAddress as address, boxVariables, nodeName as name } from "./box.ts";
import { createCertificates } from "./certificates.ts";
import { startDnsServer } from "./dns-server.ts";
import {
  containerd,
  containerdSocket,
  kubelet,
  kubeProxy,
  type NodeLayout,
  nodeFiles,
} from "./node-components.ts";
import { serveNodeParts } from "./node-parts.ts";
import { type SupervisedPart, supervise } from "./supervised-part.ts";

export interface RealNodeOptions {
  /** The control plane's binaries. */
  readonly kubeDir: string;
  /** The node's binaries. */
  readonly nodeDir: string;
  /** OCI archives of the images that pods may use. There is no registry. */
  readonly images: readonly string[];
}

const startDeadlineMs = 180_000;
const run = promisify(execFile);

/** It ends with the box. */
export async function startRealNode(options: RealNodeOptions, signal: AbortSignal): Promise<Cluster> {
  const dir = join(boxVariable("dir"), "node");
  await mkdir(dir);
  const certificates = await createCertificates(join(dir, "pki"), { name, address });
  const starting = { binariesDir: options.kubeDir, realNode: { address, certificates } };
  const layout: NodeLayout = {
    dir,
    binariesDir: options.nodeDir,
    name,
    address,
    cgroup: boxVariable("cgroup"),
    certificates,
    kubeProxyKubeconfigPath: "",
  };
  const kennel = openKennel(join(dir, "leashes"));
  const [cluster, runtime] = await Promise.all([
    startCluster(starting, signal),
    startContainerd(layout, kennel, options.images, signal),
  ]);
  await startNodeComponents(
    { ...layout, kubeProxyKubeconfigPath: join(cluster.dir, "system:kube-proxy.kubeconfig") },
    { kennel, cluster, runtime },
    signal,
  );
  return cluster;
}

async function startContainerd(
  layout: NodeLayout,
  kennel: Kennel,
  images: readonly string[],
  signal: AbortSignal,
): Promise<SupervisedPart> {
  await writeFiles(layout);
  const runtime = supervise(() => start(containerd(layout), layout, kennel));
  const ctr = (...args: string[]) =>
    run(join(layout.binariesDir, "ctr"), ["--address", containerdSocket, "--namespace", "k8s.io", ...args]);
  const prepare = async (until: AbortSignal) => {
    await eventually("containerd answers", () => ctr("version"), {
      deadlineMs: startDeadlineMs,
      signal: until,
    });
    for (const image of images) await ctr("images", "import", "--local", image);
  };
  await whileAlive([runtime.leashed()], prepare, signal);
  return runtime;
}

interface Started {
  readonly kennel: Kennel;
  readonly cluster: Cluster;
  readonly runtime: SupervisedPart;
}

async function startNodeComponents(
  layout: NodeLayout,
  { kennel, cluster, runtime }: Started,
  signal: AbortSignal,
): Promise<void> {
  const { certificate, key } = layout.certificates.kubeletClient;
  const credentials = { "client-certificate": certificate, "client-key": key };
  await writeFile(
    join(layout.dir, "kubelet.kubeconfig"),
    kubeconfig(`system:node:${name}`, credentials, cluster.serverUrl, cluster.ca),
    { mode: 0o600 },
  );
  await writeFiles(layout);
  await startDnsServer(address, (namespace, service, pod) => lookUpService(cluster, namespace, service, pod));
  const parts = {
    containerd: runtime,
    kubelet: supervise(() => start(kubelet(layout), layout, kennel)),
    "kube-proxy": supervise(() => start(kubeProxy(layout), layout, kennel)),
  };
  const ready = async (until: AbortSignal) => {
    const options = { deadlineMs: startDeadlineMs, signal: until };
    const wait = ["wait", "--timeout=1s", "--for=condition=Ready", `node/${name}`];
    await eventually("the node is Ready", () => cluster.kubectl(wait, { signal: until }), options);
    // kube-proxy reports nothing; the API server's own Service shows that it has set its rules.
    const path = "/readyz";
    const serverUrl = "https://10.96.0.1";
    await eventually(
      "Services are reachable",
      () => requestApi({ ...cluster, serverUrl }, { path }),
      options,
    );
  };
  // At the first start, an end is an error of the configuration.
  await whileAlive(
    Object.values(parts).map((part) => part.leashed()),
    ready,
    signal,
  );
  await serveNodeParts({ ...layout, parts });
}

async function writeFiles(layout: NodeLayout): Promise<void> {
  for (const [file, text] of Object.entries(nodeFiles(layout))) {
    const path = join(layout.dir, file);
    await mkdir(dirname(path), { recursive: true });
    await writeFile(path, text);
  }
}

function start(command: ComponentCommand, { dir, binariesDir }: NodeLayout, kennel: Kennel): Leashed {
  // containerd looks for runsc and runc on the PATH, and nothing else of the user's shell matters to a node.
  const env = { PATH: `${binariesDir}:/usr/sbin:/usr/bin:/sbin:/bin`, HOME: dir, TMPDIR: boxVariable("tmp") };
  return kennel.start({ ...command, cwd: dir, env, logPath: join(dir, `${command.name}.log`) });
}

async function lookUpService(
  cluster: ClusterFacts,
  namespace: string,
  name: string,
  pod: string | undefined,
): Promise<readonly string[] | undefined> {
  const service = await requestApi(cluster, { path: `/api/v1/namespaces/${namespace}/services/${name}` });
  if (service.status !== 200) return undefined;
  const { clusterIP } = (service.body as Service).spec ?? {};
  if (clusterIP !== "None") return pod === undefined && clusterIP !== undefined ? [clusterIP] : undefined;
  const selector = encodeURIComponent(`kubernetes.io/service-name=${name}`);
  const path = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=${selector}`;
  const { items } = (await requestApi(cluster, { path })).body as {
    readonly items: readonly EndpointSlice[];
  };
  const endpoints = items.flatMap((slice) => slice.endpoints ?? []);
  const wanted = endpoints.filter(({ hostname }) => pod === undefined || hostname === pod);
  return wanted.length === 0 && pod !== undefined ? undefined : wanted.flatMap(({ addresses }) => addresses);
}

function boxVariable(name: "dir" | "cgroup" | "tmp"): string {
  const value = process.env[name === "tmp" ? "TMPDIR" : boxVariables[name]];
  if (value === undefined) throw new Error("a real node needs a box: see test/support/node/box.ts");
  return value;
}
