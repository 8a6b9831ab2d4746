// What to do about each cause: one or two sentences, with the command to run if there is one.
import type { ObjectKind } from "../gen/krane/admin/v1/admin_pb.ts";
import { allKinds, kindOfObject } from "../kinds/kinds.ts";
import type { Cause } from "./explanation.ts";
import { olderPodsRemedy, podSelector } from "./older-pods.ts";

export interface RemedyFacts {
  readonly region: string;
  /** Its id, or the name that the user typed. */
  readonly name: string;
  readonly namespace?: string;
  readonly objectName?: string;
  readonly kind?: ObjectKind;
  readonly controller?: string;
  readonly key?: string;
  /** The names of its pods from an older version. */
  readonly olderPods?: readonly string[];
  /** The field that was rejected. */
  readonly fieldPath?: string | undefined;
  /** Why the stream ended, as a Connect code. */
  readonly errorCode?: string | undefined;
}

type Remedy = string | ((facts: RemedyFacts) => string);

const [firstPlural, ...otherPlurals] = allKinds.map(({ plural }) => plural);

const remedies: Readonly<Record<Cause, Remedy>> = {
  "unknown-object": ({ region }) =>
    `List what exists with krane get ${firstPlural} --region ${region} (or ${otherPlurals.join(", ")}). If it should exist, apply it.`,
  unreadable:
    "Upgrade the server and the command line to the version that wrote it, or apply the object again.",
  deleted: "",
  "release-failed": ({ name }) =>
    `Fix what the reason names and apply the app again. To see its releases: krane describe app ${name}`,
  "releases-paused": ({ name }) => `To release what was applied: krane rollout resume app/${name}`,
  releasing: "Wait. It becomes the current one once all of its pods have been ready for a while.",
  "agent-never-seen": ({ region }) =>
    `Start an agent for region ${region}. If one is running, check its control.url, token and region, and its log.`,
  "agent-silent":
    "Check that the agent's pod is running, and read its log. Workloads keep running without it, but nothing is changed or repaired.",
  "deletion-blocked": ({ controller = "", key = "" }) =>
    `To delete it: krane deletions release ${controller} ${key}. To keep it, apply it again.`,
  "deletion-in-progress": (facts) =>
    `Wait a moment. If it stays, check its finalizers and the controllers that set them: ${inspect(facts, "-o jsonpath={.metadata.finalizers}")}`,
  "invalid-spec": ({ fieldPath }) =>
    fieldPath === undefined || fieldPath === ""
      ? "Fix the spec and apply it again."
      : `Fix ${fieldPath} and apply it again.`,
  "refused-by-cluster": ({ fieldPath }) =>
    fieldPath === undefined || fieldPath === ""
      ? "Change what the reason names, in the spec or in the cluster's admission rules. krane retries from time to time."
      : `Change ${fieldPath} and apply it again, or change the cluster's admission rules.`,
  "name-taken": (facts) =>
    `Delete or rename the other object, or give this one another name. If it was krane's before a lost key, a renamed region or a restore: krane adopt --dry-run. To see the other object: ${inspect(facts, "-o yaml")}`,
  "isolation-lowered": (facts) =>
    `Find the mutating webhook or admission policy that does it, and make it leave krane's objects alone: kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies. To see the result: ${inspect(facts, "-o yaml")}`,
  "weak-pods": ({ namespace = "" }) =>
    `Find out who changed it: the Event on the pod names the field manager, if Kubernetes recorded one: kubectl -n ${namespace} get events --field-selector reason=Evicted. If krane waits, the reason says what for.`,
  contested:
    "Stop that client, or make the change in the control plane instead. If it is unknown, the API server's audit log names it.",
  "missing-crd":
    'Install Cilium, or at least its CustomResourceDefinitions; krane then continues without a restart. To run deployments without network policies, set isolation.network_policy = "best-effort".',
  "not-at-gateway": ({ namespace = "", objectName = "" }) =>
    `Everything else of it is in place. If no Gateway is configured, set [gateway] in the agent's configuration; if the kind is missing, install the Gateway API. Otherwise ask the Gateway: kubectl -n ${namespace} describe httproute ${objectName}`,
  quota: ({ namespace = "" }) =>
    `Raise the quota, free some of it, or request less. See: kubectl -n ${namespace} describe resourcequota`,
  "namespace-terminating": ({ namespace = "" }) =>
    `Wait until the namespace is gone; krane then creates it again. If it stays: kubectl get namespace ${namespace} -o yaml`,
  unauthenticated:
    "Check that the agent's ServiceAccount exists, or that its kubeconfig holds a valid token. krane doctor tests them.",
  forbidden:
    "Grant krane's ServiceAccount the permission named in the reason; krane doctor checks all permissions.",
  retrying: "Wait for the next attempt. If it keeps failing, fix what the reason names.",
  "agent-too-old":
    "Upgrade the agent, with the chart that belongs to it: what is new may need more permissions. It then continues by itself.",
  "stream-down": ({ errorCode }) =>
    errorCode === "unauthenticated" || errorCode === "permission_denied"
      ? "Give the agent a token that the control plane accepts for its region (control.token)."
      : "Check the network between agent and control plane, and the agent's control.url. The agent keeps reconnecting.",
  "not-settled": "Wait a few seconds. If nothing changes, krane status shows how far behind the agent is.",
  paused: ({ kind, name }) =>
    `To run it: krane scale ${kindOfObject(kind)?.name ?? "deployment"} ${name} --replicas 1`,
  "older-pods-failing": olderPodsOf,
  "image-pull": (facts) =>
    `Check that the image exists and that the cluster may pull it (the agent's [registry] settings, or the deployment's pullSecret); fix the image and apply it again. See: ${podsOf(facts)}`,
  // Kubernetes says in an Event only that it ended a container because of its health check.
  "crash-loop": (facts) =>
    `Read the log of the crashed container: ${logsOf(facts)}. If it shows no error, the health check may have failed: ${podsOf(facts)}`,
  "container-config": (facts) => `Create what the reason names, or fix the spec. See: ${podsOf(facts)}`,
  unschedulable: "Add nodes, free capacity, or request less CPU and memory.",
  "node-lost":
    "Check the node: kubectl get nodes. Unless it comes back, Kubernetes replaces its pods after five minutes.",
  "pods-refused": "Change what the reason names, in the spec or in the cluster's admission rules.",
  "rollout-stuck": (facts) => `Check the pods that do not start: ${podsOf(facts)}`,
  "pods-failing": (facts) => `Check its pods: ${podsOf(facts)}`,
  "reports-held-back":
    "Check why the control plane rejects or does not receive the agent's reports; the agent retries within a minute.",
  starting: (facts) => `Wait. If pods do not become ready, check their health check: ${podsOf(facts)}`,
  "older-pods": olderPodsOf,
  "surplus-pods": (facts) => `Wait. If they stay, check why: ${podsOf(facts)}`,
  "changed-by-cluster":
    "Nothing, if it is meant: list the fields in drift.tolerate_fields. Otherwise find the webhook or policy that sets them: kubectl get mutatingwebhookconfigurations,mutatingadmissionpolicies",
  "all-well": "",
};

export function remedyOf(cause: Cause, facts: RemedyFacts): string {
  const remedy = remedies[cause];
  return typeof remedy === "string" ? remedy : remedy(facts);
}

function olderPodsOf({ kind, name, namespace = "", olderPods = [] }: RemedyFacts): string {
  return olderPodsRemedy({ namespace, selector: podSelector(kind, name), olderPods });
}

function podsOf({ kind, name, namespace }: RemedyFacts): string {
  return `kubectl -n ${namespace} describe pods -l ${podSelector(kind, name)}`;
}

function logsOf({ kind, name, namespace }: RemedyFacts): string {
  return `kubectl -n ${namespace} logs -l ${podSelector(kind, name)} --previous`;
}

function inspect({ kind, namespace, objectName }: RemedyFacts, how: string): string {
  const kubectlKind = kindOfObject(kind)?.kubectlKind ?? "all";
  return `kubectl -n ${namespace} get ${kubectlKind} ${objectName} ${how}`;
}
