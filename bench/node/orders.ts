// Orders a deployment of one pod, follows it until its program answers and the control plane has it as running, and removes
// it again.
import { request } from "node:http";
import { text } from "node:stream/consumers";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import type { InstalledKrane } from "../../test/support/node/installed-krane.ts";
import { applyAndWait, removeTenant, type Tenant } from "../../test/support/node/tenants.ts";
import { type AdminCall, refOf, region, until } from "./admin-call.ts";
import type { ClusterWatch } from "./cluster-watch.ts";
import type { Journey } from "./figures.ts";

export interface Orders {
  /** Ordered at the control plane. */
  krane(id: string): Promise<Journey>;
  /** The same ReplicaSet, sent to the API server, with labels that are not krane's. */
  raw(id: string): Promise<Journey>;
}

const namespace = "bench";
const template: Tenant = {
  id: "template",
  namespace,
  fields: { command: ["/nodejs/bin/node", "/app.mjs"] },
};

interface OrderedSpec {
  readonly deployment: Readonly<Record<string, unknown>>;
}

interface ShownObject {
  readonly object: {
    readonly spec: OrderedSpec;
    readonly deployment?: { readonly instances?: readonly { readonly status: string }[] };
  };
}

/** A deployment from a document is the template of all others. */
export async function openOrders(
  krane: InstalledKrane,
  watch: ClusterWatch,
  call: AdminCall,
): Promise<Orders> {
  await applyAndWait(krane, template);
  const { object } = await call<ShownObject>("GetObject", refOf("d_template"));
  const kubectl = ["-n", namespace, "get", "replicaset", "template", "-o", "json"];
  const replicaSet = JSON.parse(await krane.cluster.kubectl(kubectl)) as ReplicaSet;
  await removeTenant(krane, template);

  async function isReported(id: string): Promise<boolean> {
    const shown = await call<ShownObject>("GetObject", refOf(id));
    return shown.object.deployment?.instances?.some(({ status }) => status === "STATUS_RUNNING") ?? false;
  }
  return {
    async krane(id) {
      const spec = { ...object.spec.deployment, deploymentId: `d_${id}`, k8sName: id };
      const order = () => call("ApplyObject", { region, spec: { deployment: spec } });
      const journey = await follow(id, watch, order, () => isReported(`d_${id}`));
      await removed(id, watch, () => call("DeleteObject", refOf(`d_${id}`)));
      return journey;
    },
    async raw(id) {
      const path = `/apis/apps/v1/namespaces/${namespace}/replicasets`;
      const body = rawReplicaSet(replicaSet, id);
      const order = () => krane.cluster.request({ method: "POST", path, body });
      const journey = await follow(id, watch, order, undefined);
      const deletion = { method: "DELETE", path: `${path}/${id}` } as const;
      const cascade = { ...deletion, body: { propagationPolicy: "Background" } };
      await removed(id, watch, () => krane.cluster.request(cascade));
      return journey;
    },
  };
}

function rawReplicaSet({ spec }: ReplicaSet, id: string): ReplicaSet {
  const labels = { "bench.krane/raw": id };
  return {
    apiVersion: "apps/v1",
    kind: "ReplicaSet",
    metadata: { name: id, namespace },
    spec: {
      replicas: 1,
      selector: { matchLabels: labels },
      template: { metadata: { labels }, ...(spec?.template?.spec && { spec: spec.template.spec }) },
    },
  };
}

async function follow(
  id: string,
  watch: ClusterWatch,
  order: () => Promise<unknown>,
  isReported: (() => Promise<boolean>) | undefined,
): Promise<Journey> {
  const isOf = ({ metadata }: Pick<Pod, "metadata">) =>
    metadata?.namespace === namespace && metadata.name?.startsWith(`${id}-`) === true;
  const podIs = (isWanted: (pod: Pod) => boolean) =>
    watch.until("pods", (pod) => isOf(pod) && isWanted(pod as Pod));
  const hasCondition = ({ status }: Pod, wanted: string) =>
    status?.conditions?.some(({ type, status: value }) => type === wanted && value === "True") === true;
  const seen = {
    applied: watch.until("replicasets", ({ metadata }) => metadata?.name === id),
    created: podIs(() => true),
    scheduled: podIs((pod) => hasCondition(pod, "PodScheduled")),
    started: podIs(({ status }) => status?.containerStatuses?.[0]?.state?.running !== undefined),
    addressed: podIs(({ status }) => status?.podIP !== undefined),
    ready: podIs((pod) => hasCondition(pod, "Ready")),
  };
  const begunMs = performance.now();
  await order();
  const answered = seen.addressed.then(({ object }) =>
    until(async () => (await get(`http://${object.status?.podIP}:8080/`)) === "hello"),
  );
  const reported = isReported && seen.started.then(() => until(isReported));
  const since = (atMs: number) => atMs - begunMs;
  return {
    applied: since((await seen.applied).atMs),
    created: since((await seen.created).atMs),
    scheduled: since((await seen.scheduled).atMs),
    started: since((await seen.started).atMs),
    answered: since(await answered),
    ready: since((await seen.ready).atMs),
    reported: reported === undefined ? 0 : since(await reported),
  };
}

/** Resolves when the pod is gone, so that orders do not disturb each other. */
async function removed(id: string, watch: ClusterWatch, order: () => Promise<unknown>): Promise<void> {
  const gone = watch.until(
    "pods",
    ({ metadata }, event) => event === "DELETED" && metadata?.name?.startsWith(`${id}-`) === true,
  );
  await order();
  await gone;
}

/** The body of the answer; nothing while there is none. */
function get(url: string): Promise<string | undefined> {
  return new Promise((resolve) => {
    const outgoing = request(url, { agent: false, timeout: 1_000 }, (incoming) => {
      text(incoming).then(resolve, () => resolve(undefined));
    });
    outgoing.on("timeout", () => outgoing.destroy());
    outgoing.on("error", () => resolve(undefined));
    outgoing.end();
  });
}
