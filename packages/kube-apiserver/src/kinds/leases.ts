// Leases (coordination.k8s.io/v1).
import type { Lease } from "kubernetes-types/coordination/v1.js";
import { invalidValue } from "../causes.ts";
import { defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { checkNonNegative } from "./field-checks.ts";

export const leases = defineResource<Lease>({
  kind: { group: "coordination.k8s.io", version: "v1", kind: "Lease", plural: "leases", namespaced: true },
  singular: "lease",
  shortNames: [],
  categories: [],
  schema: "io.k8s.api.coordination.v1.Lease",
  statusSubresource: false,
  createOnUpdate: true,
  unconditionalUpdate: false,
  columns: [
    nameColumn,
    {
      name: "Holder",
      type: "string",
      description: "The identity of the holder of the lease.",
      cell: ({ spec }: Lease) => spec?.holderIdentity ?? "",
    },
    ageColumn,
  ],

  validate({ spec = {} }) {
    const { leaseDurationSeconds: duration, leaseTransitions } = spec;
    return [
      ...(duration !== undefined && duration <= 0
        ? [invalidValue("spec.leaseDurationSeconds", duration, "must be greater than 0")]
        : []),
      ...checkNonNegative("spec.leaseTransitions", leaseTransitions),
    ];
  },
});
