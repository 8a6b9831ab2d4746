// RuntimeClasses (node.k8s.io/v1).
import type { RuntimeClass } from "kubernetes-types/node/v1.js";
import { immutable, required } from "../causes.ts";
import { defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { refuse } from "./field-checks.ts";
import { dnsLabelProblems } from "./names.ts";

export const runtimeclasses = defineResource<RuntimeClass>({
  kind: {
    group: "node.k8s.io",
    version: "v1",
    kind: "RuntimeClass",
    plural: "runtimeclasses",
    namespaced: false,
  },
  singular: "runtimeclass",
  shortNames: [],
  categories: [],
  schema: "io.k8s.api.node.v1.RuntimeClass",
  statusSubresource: false,
  createOnUpdate: true,
  unconditionalUpdate: false,
  columns: [
    nameColumn,
    { name: "Handler", type: "string", cell: ({ handler }: RuntimeClass) => handler ?? "" },
    ageColumn,
  ],

  validate: ({ handler = "" }) =>
    handler === "" ? [required("handler")] : refuse("handler", handler, dnsLabelProblems(handler)),
  validateUpdate: ({ handler }, previous) =>
    handler === previous.handler ? [] : [immutable("handler", handler)],
});
