// How long what Kubernetes knows of a pod in trouble takes to the control plane: from the event in which the API server shows the
// state until `krane why` names its cause. The orders and the cluster's own time to get there do not count.
import type { Pod } from "kubernetes-types/core/v1.js";
import type { InstalledKrane } from "../../test/support/node/installed-krane.ts";
import { orderNode } from "../../test/support/node/node-parts.ts";
import { applyAndWait, documentsOf, removeTenant, type Tenant } from "../../test/support/node/tenants.ts";
import { type AdminCall, refOf, until } from "./admin-call.ts";
import type { ClusterWatch } from "./cluster-watch.ts";
import type { StateDelays } from "./figures.ts";

interface State {
  readonly name: string;
  readonly rounds: number;
  readonly fields: Readonly<Record<string, unknown>>;
  isShown(pod: Pod): boolean;
  readonly cause: string;
  /** What the reason of `krane why` contains. */
  readonly reason: string;
  /** For one that an order alone does not bring about. */
  readonly bringAbout?: () => Promise<void>;
  readonly undo?: () => Promise<void>;
}

const namespace = "bench";
const program = (code: string) => ({ command: ["/nodejs/bin/node", "-e", code] });
const waitsFor = ({ status }: Pod) => status?.containerStatuses?.[0]?.state?.waiting?.reason ?? "";
const lastEnd = ({ status }: Pod) => status?.containerStatuses?.[0]?.lastState?.terminated?.reason;
const conditionOf = ({ status }: Pod, wanted: string) =>
  status?.conditions?.find(({ type }) => type === wanted);

const states: readonly State[] = [
  {
    name: "crash loop",
    rounds: 10,
    fields: program("process.exit(3)"),
    isShown: (pod) => waitsFor(pod) === "CrashLoopBackOff",
    cause: "crash-loop",
    reason: "exit code 3",
  },
  {
    name: "out of memory",
    rounds: 5,
    fields: { memory: "64Mi", ...program("const all = []; for (;;) all.push(Buffer.alloc(1e6, 1))") },
    isShown: (pod) => waitsFor(pod) === "CrashLoopBackOff" && lastEnd(pod) === "OOMKilled",
    cause: "crash-loop",
    reason: "OOMKilled",
  },
  {
    name: "image that does not exist",
    rounds: 10,
    fields: { image: "registry.example/missing:1" },
    isShown: (pod) => /ErrImagePull|ImagePullBackOff/.test(waitsFor(pod)),
    cause: "image-pull",
    reason: "registry.example/missing:1",
  },
  {
    name: "no room on the node",
    rounds: 10,
    fields: { cpu: "1000" },
    isShown: (pod) => conditionOf(pod, "PodScheduled")?.reason === "Unschedulable",
    cause: "unschedulable",
    reason: "Insufficient cpu",
  },
  {
    name: "node does not answer",
    rounds: 3,
    fields: {},
    isShown: (pod) => conditionOf(pod, "Ready")?.status === "False",
    cause: "node-lost",
    reason: "NodeLost",
    // kube-proxy would take the rules that lead to krane with it.
    bringAbout: async () => {
      await orderNode("stop kube-proxy");
      await orderNode("stop kubelet");
    },
    undo: async () => {
      await orderNode("start kube-proxy");
      await orderNode("start kubelet");
    },
  },
];

export async function measureStates(
  krane: InstalledKrane,
  watch: ClusterWatch,
  call: AdminCall,
  roundsMax: number,
): Promise<readonly StateDelays[]> {
  const measured: StateDelays[] = [];
  for (const state of states) {
    const delaysMs: number[] = [];
    for (let round = 0; round < Math.min(state.rounds, roundsMax); round += 1)
      delaysMs.push(await measure(state, { krane, watch, call }));
    measured.push({ name: state.name, delaysMs });
  }
  return measured;
}

interface Measuring {
  readonly krane: InstalledKrane;
  readonly watch: ClusterWatch;
  readonly call: AdminCall;
}

async function measure(state: State, { krane, watch, call }: Measuring): Promise<number> {
  const tenant: Tenant = { id: "state", namespace, fields: state.fields };
  if (state.bringAbout !== undefined) await applyAndWait(krane, tenant);
  const shown = watch.until(
    "pods",
    (pod) =>
      pod.metadata?.namespace === namespace &&
      pod.metadata.name?.startsWith("state-") === true &&
      state.isShown(pod as Pod),
  );
  try {
    if (state.bringAbout !== undefined) await state.bringAbout();
    else await krane.type(`krane apply -f - <<'END'\n${documentsOf(tenant)}\nEND`);
    const { atMs } = await shown;
    const explainedAtMs = await until(async () => {
      const { explanation } = await call<Explained>("ExplainObject", refOf("d_state"));
      return explanation.cause === state.cause && explanation.reason?.includes(state.reason) === true;
    });
    return explainedAtMs - atMs;
  } finally {
    await state.undo?.();
    await removeTenant(krane, tenant);
  }
}

interface Explained {
  readonly explanation: { readonly cause: string; readonly reason?: string };
}
