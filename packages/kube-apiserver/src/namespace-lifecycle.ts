// Rejects creates in missing or terminating namespaces, and the deletion of the four namespaces that the server needs.
import type { Scope } from "./core.ts";
import { stringAt } from "./json.ts";
import { forbidden, notFound } from "./status-error.ts";
import type { StoredObject } from "./store.ts";

const namespaceResource = { group: "", plural: "namespaces" } as const;
export const systemNamespaces = ["default", "kube-node-lease", "kube-public", "kube-system"] as const;
const permanent = new Set(["default", "kube-system", "kube-public"]);

export function checkNamespace(scope: Scope, name: string): void {
  const { core, namespace, resource } = scope;
  if (namespace === "") return;
  const found = core.store.get({ ...namespaceResource, namespace: "", name: namespace });
  if (found === undefined) throw notFound(namespaceResource, namespace);
  if (!isTerminating(found)) return;
  const why = `unable to create new content in namespace ${namespace} because it is being terminated`;
  throw forbidden(resource.kind, name, why, [
    {
      reason: "NamespaceTerminating",
      message: `namespace ${namespace} is being terminated`,
      field: "metadata.namespace",
    },
  ]);
}

export function checkNamespaceDeletion({ resource }: Scope, name: string): void {
  const isNamespace = resource.kind.plural === "namespaces" && resource.kind.group === "";
  if (isNamespace && permanent.has(name)) {
    throw forbidden(resource.kind, name, "this namespace may not be deleted");
  }
}

function isTerminating(namespace: StoredObject): boolean {
  return stringAt(namespace, "metadata", "deletionTimestamp") !== undefined;
}
