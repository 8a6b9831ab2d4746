// Namespaces. A deleted namespace stays, because of spec.finalizers, until the namespace controller has emptied it.
import type { Namespace } from "kubernetes-types/core/v1.js";
import { type Column, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { refuse } from "./field-checks.ts";
import { qualifiedNameProblems } from "./names.ts";

const status: Column<Namespace> = {
  name: "Status",
  type: "string",
  description: "The status of the namespace",
  cell: (namespace) => namespace.status?.phase ?? "",
};

export const namespaces = defineResource<Namespace>({
  kind: { group: "", version: "v1", kind: "Namespace", plural: "namespaces", namespaced: false },
  singular: "namespace",
  shortNames: ["ns"],
  categories: [],
  schema: "io.k8s.api.core.v1.Namespace",
  statusSubresource: true,
  subresources: ["finalize"],
  nameRule: "label",
  selectableFields: { "status.phase": (namespace) => namespace.status?.phase ?? "" },
  columns: [nameColumn, status, ageColumn],

  defaults(namespace) {
    const { metadata } = namespace;
    if (metadata?.name) {
      metadata.labels = { ...metadata.labels, "kubernetes.io/metadata.name": metadata.name };
    }
  },
  prepareCreate(namespace) {
    const asked = namespace.spec?.finalizers ?? [];
    const finalizers = asked.includes("kubernetes") ? asked : [...asked, "kubernetes"];
    namespace.spec = { ...namespace.spec, finalizers };
    namespace.status = { phase: "Active" };
  },
  prepareUpdate(namespace, previous) {
    // Only the finalize endpoint may remove these, because a plain update could orphan the content.
    namespace.spec = { ...namespace.spec, finalizers: previous.spec?.finalizers ?? [] };
  },
  validate: ({ spec }) =>
    (spec?.finalizers ?? []).flatMap((name) => refuse("spec.finalizers", name, finalizerProblems(name))),
  markDeleting(namespace) {
    namespace.status = { ...namespace.status, phase: "Terminating" };
  },
  isHeld: (namespace) => (namespace.spec?.finalizers ?? []).length > 0,
});

function finalizerProblems(name: string): readonly string[] {
  const problems = qualifiedNameProblems(name);
  if (problems.length > 0 || name.includes("/") || name === "kubernetes") return problems;
  return ["name is neither a standard finalizer name nor is it fully qualified"];
}
