// What to do about each cause: a sentence or two, with the command to type where there is one.
import type { ObjectKind } from "../gen/krane/admin/v1/admin_pb.ts";
import { allKinds, kindOfObject } from "../kinds/kinds.ts";
import type { Cause } from "./explanation.ts";
import { olderPodsRemedy } from "./older-pods.ts";
import { podSelector } from "./pod-selector.ts";

export interface RemedyFacts {
  readonly region: string;
  /** Its id, or what was asked for. */
  readonly name: string;
  readonly namespace?: string;
  readonly objectName?: string;
  readonly kind?: ObjectKind;
  readonly controller?: string;
  readonly key?: string;
  /** The names of its pods that an earlier description made. */
  readonly olderPods?: readonly string[];
  /** The field that was refused. */
  readonly fieldPath?: string | undefined;
  /** Why the stream ended, as a Connect code. */
  readonly errorCode?: string | undefined;
}

type Remedy = string | ((facts: RemedyFacts) => string);

const [firstPlural, ...otherPlurals] = allKinds.map(({ plural }) => plural);

const remedies: Readonly<Record<Cause, Remedy>> = {
  "unknown-object": ({ region }) =>
    `See what there is with krane get ${firstPlural} --region ${region}, and the same with ${otherPlurals.join(" and ")}. If it should exist, apply it.`,
  unreadable: "Use a server and a command line at least as new as what wrote it, or apply the object again.",
  deleted: "",
  "agent-never-seen": ({ region }) =>
    `Start an agent for region ${region}, and check its control.url, token and region; its log says what fails.`,
  "agent-silent":
    "See whether the agent's pod runs and what its log says last. Workloads go on running without it, but nothing is changed or repaired.",
  "deletion-blocked": ({ controller = "", key = "" }) =>
    `If it is to go: krane deletions release ${controller} ${key}. If it is wanted, apply it again.`,
  "deletion-in-progress": (facts) =>
    `Wait a moment. If it stays, look at its finalizers, and ask whoever put them there: ${inspect(facts, "-o jsonpath={.metadata.finalizers}")}`,
  "invalid-spec": ({ fieldPath }) =>
    fieldPath === undefined || fieldPath === ""
      ? "Correct it and apply it again."
      : `Correct ${fieldPath} and apply it again.`,
  "refused-by-cluster": ({ fieldPath }) =>
    fieldPath === undefined || fieldPath === ""
      ? "Change what the reason names, here or in the cluster's admission rules. krane tries again now and then."
      : `Change ${fieldPath} and apply it again, or change the cluster's admission rules.`,
  "name-taken": (facts) =>
    `Delete or rename the other object, or give this one another name; krane never takes over what is not its own. Look at it with: ${inspect(facts, "-o yaml")}`,
  contested:
    "Stop the other field manager from writing these fields, or change them at the control plane instead.",
  "missing-crd":
    'Install Cilium, or at least its CustomResourceDefinitions; krane goes on by itself then. isolation.network_policy = "best-effort" runs deployments without network policies.',
  quota: ({ namespace = "" }) =>
    `Raise the quota, free some of it, or ask for less. See: kubectl -n ${namespace} describe resourcequota`,
  "namespace-terminating": ({ namespace = "" }) =>
    `Wait until the namespace is gone; krane makes it again. If it stays: kubectl get namespace ${namespace} -o yaml`,
  unauthenticated:
    "See that the agent's ServiceAccount exists, or that its kubeconfig holds a token that is still good. krane doctor tries them.",
  forbidden:
    "Give krane's ServiceAccount the right that the reason names; krane doctor checks all that it needs.",
  retrying: "Wait for the next attempt. If it goes on, act on what the reason names.",
  "stream-down": ({ errorCode }) =>
    errorCode === "unauthenticated" || errorCode === "permission_denied"
      ? "Give the agent a token that the control plane takes for its region (control.token)."
      : "Check the network between agent and control plane, and the agent's control.url. It connects again by itself.",
  "not-settled": "Wait a few seconds. If it stays so, krane status shows how far behind the agent is.",
  paused: ({ kind, name }) =>
    `To run it: krane scale ${kindOfObject(kind)?.name ?? "deployment"} ${name} --replicas 1`,
  "older-pods-failing": olderPodsOf,
  "image-pull": (facts) =>
    `Check that the image exists and that the cluster may pull it ([registry] of the agent), then apply the right one. See: ${podsOf(facts)}`,
  "crash-loop": (facts) => `Read the log of the program: ${logsOf(facts)}`,
  "container-config": (facts) =>
    `Make what the reason names, or correct the description. See: ${podsOf(facts)}`,
  unschedulable: "Add nodes, free some room, or ask for less CPU and memory.",
  "pods-refused": "Change what the reason names, here or in the cluster's admission rules.",
  "rollout-stuck": (facts) => `Look at the pods that do not come up: ${podsOf(facts)}`,
  "pods-failing": (facts) => `Look at its pods: ${podsOf(facts)}`,
  "reports-held-back":
    "See why the control plane refuses or loses the agent's reports; the agent tries again within a minute.",
  starting: (facts) => `Wait. If pods stay not ready, look at their health check: ${podsOf(facts)}`,
  "older-pods": olderPodsOf,
  "surplus-pods": (facts) => `Wait. If they stay, see what keeps them: ${podsOf(facts)}`,
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
