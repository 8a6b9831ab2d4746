// The agent's container as the kernel sees it: when its process started, and the memory of its control group.
import { readdir, readFile } from "node:fs/promises";
import { get } from "node:http";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { Pod } from "kubernetes-types/core/v1.js";
import { boxVariables } from "../../test/support/node/box.ts";
import type { InstalledKrane } from "../../test/support/node/installed-krane.ts";
import type { ClusterWatch } from "./cluster-watch.ts";
import type { AgentFigures } from "./figures.ts";

const restarts = 10;
const pollEveryMs = 2;
const namespace = "krane";
const selector = "app.kubernetes.io/component=agent";
// The unit of process start times, on every architecture that Node supports.
const ticksPerSecond = 100;

export async function measureAgent(
  krane: InstalledKrane,
  watch: ClusterWatch,
  roundsMax: number,
): Promise<AgentFigures> {
  const memory = await memoryOf(await agentPod(krane));
  const startMs: number[] = [];
  for (let round = 0; round < Math.min(restarts, roundsMax); round += 1)
    startMs.push(await restart(krane, watch));
  return { startMs, ...memory };
}

async function agentPod({ cluster }: InstalledKrane): Promise<Pod> {
  const listed = await cluster.kubectl(["-n", namespace, "get", "pods", "-l", selector, "-o", "json"]);
  const [pod] = (JSON.parse(listed) as { readonly items: readonly Pod[] }).items;
  if (pod === undefined) throw new Error("the agent has no pod");
  return pod;
}

/** Replaces the agent's pod. Resolves with the time from the start of its process until its health says started. */
async function restart(krane: InstalledKrane, watch: ClusterWatch): Promise<number> {
  const previous = (await agentPod(krane)).metadata?.name;
  const isNew = ({ metadata }: Pick<Pod, "metadata">) =>
    metadata?.namespace === namespace &&
    metadata.labels?.["app.kubernetes.io/component"] === "agent" &&
    metadata.name !== previous;
  const addressed = watch.until("pods", (pod) => isNew(pod) && pod.status?.podIP !== undefined);
  const ready = watch.until("pods", (pod) => {
    const isReady = pod.status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
    return isNew(pod) && isReady === true;
  });
  await krane.cluster.kubectl(["-n", namespace, "delete", "pod", previous ?? "", "--wait=false"]);
  const { object } = await addressed;
  const port = object.spec?.containers[0]?.ports?.[0]?.containerPort;
  const url = `http://${object.status?.podIP}:${port}/health/startup`;
  while (!(await isWell(url))) await delay(pollEveryMs);
  const startedAtMs = Date.now();
  const pod = (await ready).object as Pod;
  return startedAtMs - (await processStartMs(await containerGroup(pod)));
}

function isWell(url: string): Promise<boolean> {
  return new Promise((resolve) => {
    const outgoing = get(url, { agent: false, timeout: 500 }, (incoming) => {
      incoming.resume();
      resolve(incoming.statusCode === 200);
    });
    outgoing.on("timeout", () => outgoing.destroy());
    outgoing.on("error", () => resolve(false));
  });
}

/** The container's folder in the memory hierarchy, or in the only one. */
async function containerGroup({ metadata, status }: Pod): Promise<string> {
  const id = status?.containerStatuses?.[0]?.containerID?.replace("containerd://", "") ?? "";
  for (const root of ["/sys/fs/cgroup/memory", "/sys/fs/cgroup"]) {
    const pods = join(root, process.env[boxVariables.cgroup] ?? "", "kubepods");
    const folders = await readdir(pods, { recursive: true }).catch(() => []);
    const found = folders.find((name) => name.endsWith(`pod${metadata?.uid}/${id}`));
    if (found !== undefined) return join(pods, found);
  }
  throw new Error(`no control group for the container ${id}`);
}

/** When the first process of the group started, by the clock of this machine. */
async function processStartMs(group: string): Promise<number> {
  const [pid = ""] = (await readFile(join(group, "cgroup.procs"), "utf8")).split("\n");
  const stat = await readFile(`/proc/${pid}/stat`, "utf8");
  // The name of the program, in parentheses, may contain spaces.
  const ticks = Number(stat.slice(stat.lastIndexOf(")") + 2).split(" ")[19]);
  const [uptimeSeconds = ""] = (await readFile("/proc/uptime", "utf8")).split(" ");
  const bootedAtMs = Date.now() - Number(uptimeSeconds) * 1_000;
  return bootedAtMs + (ticks / ticksPerSecond) * 1_000;
}

async function memoryOf(pod: Pod): Promise<Omit<AgentFigures, "startMs">> {
  const group = await containerGroup(pod);
  const charged = await readFile(join(group, "memory.usage_in_bytes"), "utf8").catch(() =>
    readFile(join(group, "memory.current"), "utf8"),
  );
  const stat = await readFile(join(group, "memory.stat"), "utf8");
  const anonymous = /^(?:rss|anon) (\d+)$/m.exec(stat)?.[1];
  return { anonymousBytes: Number(anonymous), chargedBytes: Number(charged) };
}
