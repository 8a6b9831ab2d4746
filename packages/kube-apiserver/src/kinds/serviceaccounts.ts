// ServiceAccounts. Tokens are issued by the `token` endpoint and not stored.
import type { ServiceAccount } from "kubernetes-types/core/v1.js";
import { defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";

export const serviceaccounts = defineResource<ServiceAccount>({
  kind: { group: "", version: "v1", kind: "ServiceAccount", plural: "serviceaccounts", namespaced: true },
  singular: "serviceaccount",
  shortNames: ["sa"],
  categories: [],
  schema: "io.k8s.api.core.v1.ServiceAccount",
  statusSubresource: false,
  deleteReturnsObject: true,
  subresources: ["token"],
  columns: [nameColumn, ageColumn],
});
