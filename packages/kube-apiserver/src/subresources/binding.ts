// Handles pods/<name>/binding, with which the scheduler assigns a pod to a node.
import { contextOf, keyOf, type Scope, timestampOf } from "../core.ts";
import { copyJson, isObject, type JsonObject, listAt, stringAt, valueAt } from "../json.ts";
import { topologyOf } from "../kinds/pod-admission.ts";
import { badRequest, conflict, createdBody } from "../status-error.ts";
import { liveObject } from "../update.ts";

export function bindPod(scope: Scope, body: unknown): JsonObject {
  const { core, name } = scope;
  const node = stringAt(body, "target", "name");
  if (!node) throw badRequest("target.name: Required value");
  const live = liveObject(scope);
  const place = { group: "", plural: "pods/binding" };
  if (stringAt(live, "metadata", "deletionTimestamp") !== undefined) {
    throw conflict(place, name, `pod ${name} is being deleted, cannot be assigned to a host`);
  }
  const assigned = stringAt(live, "spec", "nodeName");
  if (assigned)
    throw conflict(place, name, `pod ${name} is already assigned to node ${JSON.stringify(assigned)}`);
  const draft = copyJson(live);
  const status = isObject(draft["status"]) ? draft["status"] : {};
  const others = listAt(status, "conditions").filter(
    (condition) => stringAt(condition, "type") !== "PodScheduled",
  );
  const scheduled = {
    type: "PodScheduled",
    status: "True",
    lastProbeTime: null,
    lastTransitionTime: timestampOf(core),
  };
  const labels = {
    ...labelsOf(draft),
    ...labelsOf(body),
    ...(stringAt(body, "target", "kind") === "Node" ? topologyOf(node, contextOf(scope)) : {}),
  };
  if (Object.keys(labels).length > 0) draft.metadata["labels"] = labels;
  draft["spec"] = { ...(isObject(draft["spec"]) ? draft["spec"] : {}), nodeName: node };
  draft["status"] = { ...status, conditions: [...others, scheduled] };
  core.store.put(keyOf(scope), draft);
  return createdBody();
}

function labelsOf(object: unknown): JsonObject {
  const labels = valueAt(object, "metadata", "labels");
  return isObject(labels) ? labels : {};
}
