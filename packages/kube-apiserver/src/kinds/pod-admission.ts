// Does what the real server's admission plug-ins do with a new pod: service account and token, priority, tolerations of
// lost nodes, runtime class, and topology labels.
import type { Node, Pod, PodSpec, ServiceAccount } from "kubernetes-types/core/v1.js";
import { randomSuffix } from "../identifiers.ts";
import type { Draft, RequestContext } from "../resource.ts";
import { forbidden } from "../status-error.ts";

const podResource = { group: "", plural: "pods" };
const tokenPath = "/var/run/secrets/kubernetes.io/serviceaccount";
const topologyLabels = ["topology.kubernetes.io/region", "topology.kubernetes.io/zone"];
const lostNodeKeys = ["node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"];
const lostNodeSeconds = 300;
const systemPriorities = new Map([
  ["system-node-critical", 2_000_001_000],
  ["system-cluster-critical", 2_000_000_000],
]);

export function admitPod(pod: Draft<Pod>, context: RequestContext): void {
  const { spec } = pod;
  if (spec === undefined) return;
  giveServiceAccount(pod, spec, context);
  givePriority(pod, spec);
  tolerateLostNodes(spec);
  if (spec.nodeName && pod.metadata !== undefined) {
    const labels = { ...pod.metadata.labels, ...topologyOf(spec.nodeName, context) };
    if (Object.keys(labels).length > 0) pod.metadata.labels = labels;
  }
  const { runtimeClassName } = spec;
  if (!runtimeClassName) return;
  if (context.read({ group: "node.k8s.io", plural: "runtimeclasses" }, "", runtimeClassName) === undefined)
    throw refused(pod, `pod rejected: RuntimeClass "${runtimeClassName}" not found`);
}

/** The topology labels that a pod gets from its node. */
export function topologyOf(nodeName: string, { read }: RequestContext): Record<string, string> {
  const node = read({ group: "", plural: "nodes" }, "", nodeName) as Node | undefined;
  const entries = Object.entries(node?.metadata?.labels ?? {});
  return Object.fromEntries(entries.filter(([key]) => topologyLabels.includes(key)));
}

function refused(pod: Draft<Pod>, why: string): Error {
  return forbidden(podResource, pod.metadata?.name ?? "", why);
}

function giveServiceAccount(pod: Draft<Pod>, spec: Draft<PodSpec>, context: RequestContext): void {
  spec.serviceAccountName ||= "default";
  spec.serviceAccount = spec.serviceAccountName;
  const name = spec.serviceAccountName;
  const namespace = pod.metadata?.namespace ?? "";
  const account = context.read({ group: "", plural: "serviceaccounts" }, namespace, name) as
    | ServiceAccount
    | undefined;
  // The default account of a new namespace is created a moment later; the real server waits for it.
  if (account === undefined && name !== "default")
    throw refused(
      pod,
      `error looking up service account ${namespace}/${name}: serviceaccount "${name}" not found`,
    );
  if (spec.automountServiceAccountToken ?? account?.automountServiceAccountToken ?? true)
    mountToken(spec, context);
  if (spec.imagePullSecrets === undefined && (account?.imagePullSecrets ?? []).length > 0)
    spec.imagePullSecrets = (account?.imagePullSecrets ?? []).map((secret) => ({ ...secret }));
}

function mountToken(spec: Draft<PodSpec>, { random }: RequestContext): void {
  const hungry = [...(spec.initContainers ?? []), ...(spec.containers ?? [])].filter(
    ({ volumeMounts = [] }) => !volumeMounts.some(({ mountPath }) => mountPath === tokenPath),
  );
  if (hungry.length === 0) return;
  const name = `kube-api-access-${randomSuffix({ next: random })}`;
  for (const container of hungry) {
    container.volumeMounts = [
      ...(container.volumeMounts ?? []),
      { name, readOnly: true, mountPath: tokenPath },
    ];
  }
  const sources = [
    { serviceAccountToken: { expirationSeconds: 3607, path: "token" } },
    { configMap: { name: "kube-root-ca.crt", items: [{ key: "ca.crt", path: "ca.crt" }] } },
    {
      downwardAPI: {
        items: [{ path: "namespace", fieldRef: { apiVersion: "v1", fieldPath: "metadata.namespace" } }],
      },
    },
  ];
  spec.volumes = [...(spec.volumes ?? []), { name, projected: { sources, defaultMode: 420 } }];
}

function givePriority(pod: Draft<Pod>, spec: Draft<PodSpec>): void {
  const { priorityClassName } = spec;
  const computed = priorityClassName ? systemPriorities.get(priorityClassName) : 0;
  if (computed === undefined) throw refused(pod, `no PriorityClass with name ${priorityClassName} was found`);
  if (spec.priority !== undefined && spec.priority !== computed) {
    throw refused(
      pod,
      `the integer value of priority (${spec.priority}) must not be provided in pod spec; ` +
        `priority admission controller computed ${computed} from the given PriorityClass name`,
    );
  }
  spec.priority = computed;
  spec.preemptionPolicy ??= "PreemptLowerPriority";
}

// By default, a pod is deleted from a lost node after five minutes.
function tolerateLostNodes(spec: Draft<PodSpec>): void {
  for (const key of lostNodeKeys) {
    const isSaid = (spec.tolerations ?? []).some(
      (toleration) =>
        (!toleration.key || toleration.key === key) &&
        (!toleration.effect || toleration.effect === "NoExecute"),
    );
    if (isSaid) continue;
    spec.tolerations = [
      ...(spec.tolerations ?? []),
      { key, operator: "Exists", effect: "NoExecute", tolerationSeconds: lostNodeSeconds },
    ];
  }
}
