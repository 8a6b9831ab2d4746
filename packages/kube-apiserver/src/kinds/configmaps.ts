// ConfigMaps.
import type { ConfigMap } from "kubernetes-types/core/v1.js";
import { invalidValue, tooLong } from "../causes.ts";
import { defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import { checkKeys, checkSeal, dataBytesMax, decodedBytes } from "./data-keys.ts";
import type { Causes } from "./field-checks.ts";

export const configmaps = defineResource<ConfigMap>({
  kind: { group: "", version: "v1", kind: "ConfigMap", plural: "configmaps", namespaced: true },
  singular: "configmap",
  shortNames: ["cm"],
  categories: [],
  schema: "io.k8s.api.core.v1.ConfigMap",
  statusSubresource: false,
  columns: [
    nameColumn,
    {
      name: "Data",
      type: "string",
      description: "The number of keys.",
      cell: ({ data = {}, binaryData = {} }: ConfigMap) =>
        Object.keys(data).length + Object.keys(binaryData).length,
    },
    ageColumn,
  ],

  validate: checkConfigMap,
  validateUpdate: checkSeal,
});

function checkConfigMap({ data = {}, binaryData = {} }: ConfigMap): Causes {
  const bytes =
    Object.values(data).reduce((sum, value) => sum + Buffer.byteLength(value), 0) +
    Object.values(binaryData).reduce((sum, value) => sum + decodedBytes(value), 0);
  return [
    ...checkKeys("data", data),
    ...Object.keys(data)
      .filter((key) => Object.hasOwn(binaryData, key))
      .map((key) => invalidValue(`data[${key}]`, key, "duplicate of key present in binaryData")),
    ...checkKeys("binaryData", binaryData),
    ...(bytes > dataBytesMax ? [tooLong("[]", dataBytesMax)] : []),
  ];
}
