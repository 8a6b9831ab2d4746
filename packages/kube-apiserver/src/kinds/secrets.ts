// Secrets. `stringData` is write-only: it is encoded into `data`.
import type { Secret } from "kubernetes-types/core/v1.js";
import { immutable, invalidValue, required, tooLong } from "../causes.ts";
import { setField } from "../json.ts";
import { type Column, defineResource } from "../resource.ts";
import { ageColumn, nameColumn } from "../table-columns.ts";
import type { KubeStatusCause } from "../types.ts";
import { checkKeys, checkSeal, dataBytesMax, decodedBytes } from "./data-keys.ts";
import type { Causes } from "./field-checks.ts";

const accountAnnotation = "kubernetes.io/service-account.name";

/** The keys that each type requires. */
const promisedKeys: Readonly<Record<string, readonly string[]>> = {
  "kubernetes.io/dockerconfigjson": [".dockerconfigjson"],
  "kubernetes.io/dockercfg": [".dockercfg"],
  "kubernetes.io/tls": ["tls.crt", "tls.key"],
};

const columns: Column<Secret>[] = [
  nameColumn,
  {
    name: "Type",
    type: "string",
    description: "What the data is meant for.",
    cell: ({ type }) => type ?? "",
  },
  {
    name: "Data",
    type: "string",
    description: "The number of keys.",
    cell: ({ data }) => Object.keys(data ?? {}).length,
  },
  ageColumn,
];

export const secrets = defineResource<Secret>({
  kind: { group: "", version: "v1", kind: "Secret", plural: "secrets", namespaced: true },
  singular: "secret",
  shortNames: [],
  categories: [],
  schema: "io.k8s.api.core.v1.Secret",
  statusSubresource: false,
  selectableFields: { type: ({ type }) => type ?? "" },
  columns,

  defaults(secret) {
    secret.type ??= "Opaque";
    if (secret.stringData === undefined) return;
    secret.data ??= {};
    for (const [key, text] of Object.entries(secret.stringData)) {
      setField(secret.data, key, Buffer.from(text).toString("base64"));
    }
    delete secret.stringData;
  },
  validate: checkSecret,
  validateUpdate: (secret, previous) => [
    ...(secret.type === previous.type ? [] : [immutable("type", secret.type)]),
    ...checkSeal(secret, previous),
  ],
});

function checkSecret({ type = "", data = {}, metadata }: Secret): Causes {
  const found: KubeStatusCause[] = [...checkKeys("data", data)];
  const bytes = Object.values(data).reduce((sum, value) => sum + decodedBytes(value), 0);
  if (bytes > dataBytesMax) found.push(tooLong("data", dataBytesMax));
  const has = (key: string) => Object.hasOwn(data, key);
  for (const key of promisedKeys[type] ?? []) {
    if (!has(key)) found.push(required(`data[${key}]`));
    else if (key.startsWith(".docker")) found.push(...checkJson(`data[${key}]`, data[key] ?? ""));
  }
  if (type === "kubernetes.io/basic-auth" && !has("username") && !has("password"))
    found.push(required("data[username]"), required("data[password]"));
  if (type === "kubernetes.io/ssh-auth" && (data["ssh-privatekey"] ?? "") === "")
    found.push(required("data[ssh-privatekey]"));
  if (type === "kubernetes.io/service-account-token" && !metadata?.annotations?.[accountAnnotation])
    found.push(required(`metadata.annotations[${accountAnnotation}]`));
  return found;
}

function checkJson(field: string, base64: string): Causes {
  try {
    JSON.parse(Buffer.from(base64, "base64").toString("utf8"));
    return [];
  } catch {
    // Does not include the value, nor the parser's message, which quotes it.
    return [
      invalidValue(field, "<secret contents redacted>", "invalid character looking for beginning of value"),
    ];
  }
}
