// One sentence for each cause.
import { podsText } from "../kinds/workload-view.ts";
import type { Cause } from "./explanation.ts";
import type { Facts } from "./facts.ts";

type Summary = string | ((facts: Facts) => string);

const summaries: Readonly<Record<Cause, Summary>> = {
  "unknown-object": "The control plane has no such object.",
  unreadable: "A newer krane wrote what is wanted of it or how far it has come, and this one cannot read it.",
  deleted: "Its deletion was ordered, and it is gone.",
  "agent-never-seen": ({ agent }) =>
    `No agent of region ${agent.region} was ever heard of, so nobody acts on it.`,
  "agent-silent": ({ agent }) => `The agent of region ${agent.region} has fallen silent.`,
  "deletion-blocked": "The agent does not dare to delete it.",
  "deletion-in-progress": ({ object, trouble }) =>
    (trouble?.failing ?? "") === ""
      ? `The deletion of ${object.namespace}/${object.name} is ordered and not done yet.`
      : `${object.namespace}/${object.name} is being deleted, and something keeps it from going.`,
  "invalid-spec": "krane cannot make sense of its description, and has parked it until it changes.",
  "refused-by-cluster": "The cluster does not take it as it is.",
  "name-taken": ({ object }) =>
    `The name ${object.namespace}/${object.name} belongs to something else in the cluster.`,
  contested: "Somebody else keeps changing in the cluster what krane applies.",
  "missing-crd": "The cluster lacks a kind of object that it needs.",
  quota: "A quota of its namespace is used up.",
  "namespace-terminating": ({ object }) =>
    `Namespace ${object.namespace} is being deleted, and takes nothing new.`,
  unauthenticated: "The cluster does not take the agent's credentials.",
  forbidden: "krane may not do in the cluster what it would have to.",
  retrying: "The last attempt failed; the agent tries again by itself.",
  "stream-down": ({ object }) =>
    `The agent is not connected to the control plane, and has not heard of version ${object.version}.`,
  "not-settled": ({ object, controller }) => {
    const { waiting = 0, inFlight = 0, delayed = 0 } = controller?.queue ?? {};
    const queue = `${waiting} wait, ${inFlight} are being worked on, ${delayed} are put off`;
    return `The agent has not settled version ${object.version} yet (of its objects, ${queue}).`;
  },
  paused: "It is to have no pods, and is as it should be.",
  "older-pods-failing": "Pods of an earlier description cannot run, and krane replaces no pod.",
  "image-pull": "Its image cannot be pulled.",
  "crash-loop": "Its program ends again and again.",
  "container-config": "Its container cannot be made.",
  unschedulable: "No node of the cluster takes its pods.",
  "pods-refused": "The cluster refuses to make its pods.",
  "rollout-stuck": "Its new pods do not come up; those of before are kept.",
  "pods-failing": "Its pods cannot run.",
  "reports-held-back": "The agent cannot report what runs: too many reports failed, and it pauses.",
  starting: "It is applied, and its pods are on their way up.",
  "older-pods": ({ pods }) =>
    `It is applied, but ${pods.outdated} of its pods ${pods.outdated === 1 ? "is" : "are"} of an earlier description: krane replaces no pod.`,
  "surplus-pods": ({ pods }) =>
    `It is applied, and ${podsText(pods.surplus)} more than it should have ${pods.surplus === 1 ? "is" : "are"} still there.`,
  "all-well": "It is as it should be.",
};

export function summaryOf(cause: Cause, facts: Facts): string {
  const summary = summaries[cause];
  return typeof summary === "string" ? summary : summary(facts);
}
