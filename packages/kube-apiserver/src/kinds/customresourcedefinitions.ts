// CustomResourceDefinitions (apiextensions.k8s.io/v1).
import type { CustomResourceDefinition } from "kubernetes-types/apiextensions/v1.js";
import { type Column, defineResource } from "../resource.ts";
import { nameColumn } from "../table-columns.ts";
import { checkCrd, checkCrdUpdate } from "./crd-validation.ts";

/** Keeps a deleted definition until all of its instances are gone. */
export const cleanupFinalizer = "customresourcecleanup.apiextensions.k8s.io";

const createdAt: Column<CustomResourceDefinition> = {
  name: "Created At",
  type: "date",
  description: "CreationTimestamp is a timestamp representing the server time when this object was created.",
  cell: ({ metadata }) => metadata?.creationTimestamp ?? "",
};

export const customresourcedefinitions = defineResource<CustomResourceDefinition>({
  kind: {
    group: "apiextensions.k8s.io",
    version: "v1",
    kind: "CustomResourceDefinition",
    plural: "customresourcedefinitions",
    namespaced: false,
  },
  singular: "customresourcedefinition",
  shortNames: ["crd", "crds"],
  categories: ["api-extensions"],
  schema: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
  statusSubresource: true,
  unconditionalUpdate: false,
  generationPaths: [["spec"]],
  columns: [nameColumn, createdAt],

  defaults({ spec }) {
    if (spec === undefined) return;
    spec.conversion ??= { strategy: "None" };
    const { names } = spec;
    if (!names?.kind) return;
    names.singular ||= names.kind.toLowerCase();
    names.listKind ||= `${names.kind}List`;
  },
  prepareCreate(definition) {
    definition.status = {
      conditions: [],
      acceptedNames: { plural: "", kind: "" },
      storedVersions: storageVersions(definition),
    };
  },
  prepareUpdate(definition, previous) {
    const before = previous.status?.storedVersions ?? [];
    const added = storageVersions(definition).filter((version) => !before.includes(version));
    if (definition.status !== undefined && added.length > 0)
      definition.status.storedVersions = [...before, ...added];
  },
  markDeleting({ metadata }) {
    const finalizers = metadata?.finalizers ?? [];
    if (metadata === undefined || finalizers.includes(cleanupFinalizer)) return;
    metadata.finalizers = [...finalizers, cleanupFinalizer];
  },
  validate: checkCrd,
  validateUpdate: checkCrdUpdate,
});

function storageVersions({ spec }: CustomResourceDefinition): string[] {
  return (spec?.versions ?? []).filter(({ storage }) => storage).map(({ name }) => name);
}
