// Handles <workload>/<name>/scale: the number of replicas, in the same form for all kinds.
import { recordUpdate } from "../apply/field-manager.ts";
import type { Scope } from "../core.ts";
import { readJsonPath } from "../custom-resources/json-path.ts";
import { copyJson, isObject, type Json, type JsonObject, setField, stringAt, valueAt } from "../json.ts";
import { applyJsonPatch } from "../patches/json-patch.ts";
import { applyMergePatch } from "../patches/merge-patch.ts";
import { parseWriteQuery } from "../query.ts";
import { type LabelSelector, printLabelSelector } from "../selectors.ts";
import { badRequest, conflict, invalid } from "../status-error.ts";
import type { StoredObject } from "../store.ts";
import { liveObject, storeNext } from "../update.ts";
import { identityOf } from "../write-identity.ts";

export function readScale(scope: Scope): JsonObject {
  return scaleOf(scope, liveObject(scope));
}

export function updateScale(scope: Scope, body: unknown): JsonObject {
  if (!isObject(body)) throw badRequest("the object provided is unrecognized (must be of type Scale)");
  return storeReplicas(scope, body);
}

export function patchScale(scope: Scope, body: unknown): JsonObject {
  const present = readScale(scope);
  const patch = body as Json;
  const patched = Array.isArray(patch) ? applyJsonPatch(present, patch) : applyMergePatch(present, patch);
  return storeReplicas(scope, isObject(patched) ? patched : {});
}

function storeReplicas(scope: Scope, scale: JsonObject): JsonObject {
  const write = parseWriteQuery(
    scope.request,
    scope.request.method === "PUT" ? "UpdateOptions" : "PatchOptions",
  );
  const live = liveObject(scope);
  const version = stringAt(scale, "metadata", "resourceVersion");
  if (version && version !== stringAt(live, "metadata", "resourceVersion")) {
    const why = "the object has been modified; please apply your changes to the latest version and try again";
    throw conflict(scope.resource.kind, scope.name, why);
  }
  const replicas = Number(valueAt(scale, "spec", "replicas") ?? 0);
  if (!(replicas >= 0)) {
    const message = `Invalid value: ${replicas}: must be greater than or equal to 0`;
    const cause = { reason: "FieldValueInvalid", message, field: "spec.replicas" };
    throw invalid({ group: "autoscaling", kind: "Scale" }, scope.name, [cause]);
  }
  const draft = copyJson(live);
  setAt(draft, scope.resource.scale?.specReplicasPath ?? "", replicas);
  const recorded = recordUpdate(identityOf(scope, write), live, draft) as StoredObject;
  return scaleOf(scope, storeNext({ ...scope, subresource: "" }, live, recorded, write));
}

function scaleOf({ resource }: Scope, object: StoredObject): JsonObject {
  const { scale } = resource;
  const replicas = Number(readJsonPath(object, scale?.specReplicasPath ?? "") ?? 0);
  const selector = selectorText(object, scale?.labelSelectorPath, resource.custom ?? false);
  const { name, namespace, uid, resourceVersion, creationTimestamp } = object.metadata;
  return {
    kind: "Scale",
    apiVersion: "autoscaling/v1",
    metadata: copyJson({ name, namespace, uid, resourceVersion, creationTimestamp }) as JsonObject,
    spec: replicas === 0 ? {} : { replicas },
    status: {
      replicas: Number(readJsonPath(object, scale?.statusReplicasPath ?? "") ?? 0),
      ...(selector === "" ? {} : { selector }),
    },
  };
}

function selectorText(object: StoredObject, path: string | undefined, isCustom: boolean): string {
  if (path !== undefined) return String(readJsonPath(object, path) ?? "");
  const selector = isCustom ? undefined : valueAt(object, "spec", "selector");
  return isObject(selector) ? printLabelSelector(selector as LabelSelector) : "";
}

function setAt(object: JsonObject, path: string, value: Json): void {
  const steps = path.split(".").filter((step) => step !== "");
  let place = object;
  for (const step of steps.slice(0, -1)) {
    const next = place[step];
    const inner: JsonObject = isObject(next) ? next : {};
    setField(place, step, inner);
    place = inner;
  }
  setField(place, steps.at(-1) ?? "", value);
}
