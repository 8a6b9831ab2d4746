// One sentence for each cause.
import { podsText } from "../kinds/workload-view.ts";
import type { Cause } from "./explanation.ts";
import type { Facts } from "./facts.ts";

type Summary = string | ((facts: Facts) => string);

const summaries: Readonly<Record<Cause, Summary>> = {
  "unknown-object": "The control plane has no such object.",
  unreadable: "A newer krane wrote its spec or phase, and this one cannot read it.",
  deleted: "Deleted on request.",
  "agent-never-seen": ({ agent }) => `No agent of region ${agent.region} has ever connected.`,
  "agent-silent": ({ agent }) => `The agent of region ${agent.region} stopped sending heartbeats.`,
  "deletion-blocked": "The agent is holding back its deletion.",
  "deletion-in-progress": ({ object, trouble }) =>
    (trouble?.failing ?? "") === ""
      ? `${object.namespace}/${object.name} is being deleted.`
      : `${object.namespace}/${object.name} is being deleted, but something blocks it.`,
  "invalid-spec": ({ trouble }) =>
    (trouble?.appliedVersion ?? 0n) === 0n
      ? "The spec is invalid; nothing is applied until it changes."
      : "The spec is invalid; krane keeps the last good version until it changes.",
  "refused-by-cluster": "The cluster rejected it.",
  "name-taken": ({ object }) =>
    `The name ${object.namespace}/${object.name} is taken by another object in the cluster.`,
  contested: "Another field manager keeps overwriting what krane applies.",
  "missing-crd": "A CustomResourceDefinition that it needs is not installed in the cluster.",
  quota: "A resource quota of its namespace is exhausted.",
  "namespace-terminating": ({ object }) =>
    `Namespace ${object.namespace} is being deleted, so nothing can be created in it.`,
  unauthenticated: "The cluster rejects the agent's credentials.",
  forbidden: "krane lacks a permission in the cluster.",
  retrying: "The last attempt failed; the agent retries.",
  "stream-down": ({ object }) =>
    `The agent is not connected to the control plane and has not received version ${object.version}.`,
  "not-settled": ({ object, controller }) => {
    const { waiting = 0, inFlight = 0, delayed = 0 } = controller?.queue ?? {};
    const queue = `${waiting} waiting, ${inFlight} in flight, ${delayed} delayed`;
    return `The agent has not applied version ${object.version} yet (its queue: ${queue}).`;
  },
  paused: "Up to date, scaled to 0 pods.",
  "older-pods-failing": "Pods from an older version cannot run, and krane does not replace running pods.",
  "image-pull": "Its image cannot be pulled.",
  "crash-loop": "The container is crash-looping.",
  "container-config": "Its container cannot be created.",
  unschedulable: "Its pods do not fit on any node.",
  "pods-refused": "The cluster refuses to create its pods.",
  "rollout-stuck": "The rollout is stuck: its new pods do not become ready, and the old ones keep running.",
  "pods-failing": "Its pods cannot run.",
  "reports-held-back": "The agent has paused its status reports because too many failed.",
  starting: "Applied; its pods are starting.",
  "older-pods": ({ pods }) =>
    `Applied, but ${pods.outdated} of its pods ${pods.outdated === 1 ? "is" : "are"} from an older version: krane does not replace running pods.`,
  "surplus-pods": ({ pods }) => `Applied, but it still has ${podsText(pods.surplus)} too many.`,
  "all-well": "Up to date.",
};

export function summaryOf(cause: Cause, facts: Facts): string {
  const summary = summaries[cause];
  return typeof summary === "string" ? summary : summary(facts);
}
