// Establishes CustomResourceDefinitions: accepts their names, serves their kinds, and deletes all instances before a
// definition is removed.
import type { CustomResourceDefinition } from "kubernetes-types/apiextensions/v1.js";
import { recordUpdate } from "../apply/field-manager.ts";
import { FieldSet } from "../apply/field-set.ts";
import { blankObject } from "../body.ts";
import { schemaOf } from "../builtin-schemas.ts";
import type { Core } from "../core.ts";
import { timestampOf } from "../core.ts";
import { copyJson, type JsonObject, listAt, stringAt } from "../json.ts";
import { cleanupFinalizer, customresourcedefinitions } from "../kinds/customresourcedefinitions.ts";
import { apiVersionOf } from "../resource.ts";
import type { Change, StoredObject } from "../store.ts";
import { servedVersions } from "./served-versions.ts";

const { group, plural } = customresourcedefinitions.kind;

/** Follows the definitions in the store. Returns a function that stops it. */
export function startEstablishing(core: Core): () => void {
  const timers = new Set<{ cancel(): void }>();
  const soon = (step: () => void): void => {
    const timer = core.clock.setTimer(0, () => {
      timers.delete(timer);
      step();
    });
    timers.add(timer);
  };
  const unsubscribe = core.store.subscribe((change) => {
    if (change.key.group !== group || change.key.plural !== plural) return;
    follow(core, change, soon);
  });
  return () => {
    unsubscribe();
    for (const timer of timers) timer.cancel();
  };
}

function follow(core: Core, change: Change, soon: (step: () => void) => void): void {
  const { name } = change.key;
  const definition = change.object as unknown as CustomResourceDefinition;
  if (change.removed || !isEstablished(definition)) core.registry.setCustom(name, []);
  else core.registry.setCustom(name, servedVersions(definition));
  if (change.removed) return;
  if (stringAt(change.object, "metadata", "deletionTimestamp") !== undefined) soon(() => cleanUp(core, name));
  else if (!isEstablished(definition)) soon(() => establish(core, name));
}

function isEstablished(definition: CustomResourceDefinition): boolean {
  return (definition.status?.conditions ?? []).some(
    ({ type, status }) => type === "Established" && status === "True",
  );
}

function establish(core: Core, name: string): void {
  const live = find(core, name);
  if (live === undefined || stringAt(live, "metadata", "deletionTimestamp") !== undefined) return;
  const { spec } = live as unknown as CustomResourceDefinition;
  const draft = copyJson(live);
  const lastTransitionTime = timestampOf(core);
  draft["status"] = {
    acceptedNames: copyJson(spec.names) as unknown as JsonObject,
    conditions: [
      {
        type: "NamesAccepted",
        status: "True",
        lastTransitionTime,
        reason: "NoConflicts",
        message: "no conflicts found",
      },
      {
        type: "Established",
        status: "True",
        lastTransitionTime,
        reason: "InitialNamesAccepted",
        message: "the initial names have been accepted",
      },
    ],
    storedVersions: spec.versions.filter((version) => version.storage).map((version) => version.name),
  };
  store(core, live, draft);
}

function cleanUp(core: Core, name: string): void {
  const live = find(core, name);
  if (live === undefined) return;
  const { spec } = live as unknown as CustomResourceDefinition;
  const instances = { group: spec.group, plural: spec.names.plural };
  for (const { metadata } of core.store.list(instances)) {
    core.store.remove({
      ...instances,
      namespace: stringAt(metadata, "namespace") ?? "",
      name: stringAt(metadata, "name") ?? "",
    });
  }
  core.registry.setCustom(name, []);
  core.watches.closeAll(
    (path) => path.startsWith(`/apis/${spec.group}/`) && path.includes(`/${spec.names.plural}`),
  );
  const finalizers = listAt(live, "metadata", "finalizers").filter((item) => item !== cleanupFinalizer);
  if (finalizers.length === 0) core.store.remove({ group, plural, namespace: "", name });
  else if (finalizers.length < listAt(live, "metadata", "finalizers").length) {
    core.store.put(
      { group, plural, namespace: "", name },
      { ...live, metadata: { ...live.metadata, finalizers } },
    );
  }
}

function find(core: Core, name: string): StoredObject | undefined {
  return core.store.get({ group, plural, namespace: "", name });
}

function store(core: Core, live: StoredObject, draft: StoredObject): void {
  const resource = customresourcedefinitions;
  const write = {
    schema: schemaOf(resource),
    apiVersion: apiVersionOf(resource.kind),
    manager: "kube-apiserver",
    subresource: "status",
    ignored: FieldSet.of(["metadata"], ["spec"]),
    blank: blankObject(resource),
    timestamp: timestampOf(core),
  };
  const recorded = recordUpdate(write, live, draft) as StoredObject;
  core.store.put({ group, plural, namespace: "", name: stringAt(live, "metadata", "name") ?? "" }, recorded);
}
