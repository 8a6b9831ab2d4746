// Validates metadata, for all kinds.

import { forbiddenField, immutable, invalidValue, required } from "./causes.ts";
import { equalJson, isObject, type Json, type JsonObject, listAt } from "./json.ts";
import type { ServedResource } from "./resource.ts";
import type { KubeStatusCause } from "./types.ts";

const subdomain = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const label = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?$/;
const qualifiedName = /^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$/;

const subdomainMessage =
  "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')";
const labelMessage =
  "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with an alphanumeric character (e.g. 'my-name',  or '123-abc', regex used for validation is '[a-z0-9]([-a-z0-9]*[a-z0-9])?')";
const nameMessage =
  "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is '([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')";
const valueMessage =
  "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is '(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')";
const annotationsBytesMax = 256 * 1024;

export function validateMeta(resource: ServedResource, metadata: JsonObject): KubeStatusCause[] {
  return [
    ...validateName(resource, metadata),
    ...mapCauses(metadata["labels"], "metadata.labels", true),
    ...mapCauses(metadata["annotations"], "metadata.annotations", false),
    ...finalizerCauses(metadata, resource.custom ?? false),
    ...ownerCauses(metadata),
  ];
}

function validateName(resource: ServedResource, metadata: JsonObject): KubeStatusCause[] {
  const { name, generateName } = metadata;
  const field = "metadata.name";
  if (typeof name !== "string" || name === "") {
    return typeof generateName === "string" && generateName !== ""
      ? []
      : [required(field, "name or generateName is required")];
  }
  const rule = resource.nameRule ?? "subdomain";
  if (rule === "path-segment") {
    if (name === "." || name === "..") return [invalidValue(field, name, `may not be '${name}'`)];
    return ["/", "%"]
      .filter((letter) => name.includes(letter))
      .map((letter) => invalidValue(field, name, `may not contain '${letter}'`));
  }
  const isLabel = rule === "label";
  const lengthMax = isLabel ? 63 : 253;
  const causes: KubeStatusCause[] = [];
  if (name.length > lengthMax)
    causes.push(invalidValue(field, name, `must be no more than ${lengthMax} characters`));
  if (!(isLabel ? label : subdomain).test(name)) {
    causes.push(invalidValue(field, name, isLabel ? labelMessage : subdomainMessage));
  }
  return causes;
}

function mapCauses(map: Json | undefined, field: string, areLabels: boolean): KubeStatusCause[] {
  if (!isObject(map)) return [];
  const causes: KubeStatusCause[] = [];
  let bytes = 0;
  for (const [key, value] of Object.entries(map)) {
    bytes += Buffer.byteLength(key) + Buffer.byteLength(String(value));
    causes.push(...keyCauses(areLabels ? key : key.toLowerCase(), key, field));
    if (!areLabels) continue;
    if (String(value).length > 63) causes.push(invalidValue(field, value, "must be no more than 63 bytes"));
    if (value !== "" && !qualifiedName.test(String(value)))
      causes.push(invalidValue(field, value, valueMessage));
  }
  if (!areLabels && bytes > annotationsBytesMax) {
    causes.push({
      reason: "FieldValueTooLong",
      message: `Too long: may not be more than ${annotationsBytesMax} bytes`,
      field,
    });
  }
  return causes;
}

/** `name` or `prefix/name`. */
function keyCauses(text: string, shown: string, field: string): KubeStatusCause[] {
  const parts = text.split("/");
  const name = parts.at(-1) ?? "";
  if (parts.length > 2) {
    return [
      invalidValue(
        field,
        shown,
        "a valid label key must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')",
      ),
    ];
  }
  const causes: KubeStatusCause[] = [];
  const [prefix] = parts;
  if (parts.length === 2 && prefix === "")
    causes.push(invalidValue(field, shown, "prefix part must be non-empty"));
  else if (parts.length === 2 && !subdomain.test(prefix ?? "")) {
    causes.push(invalidValue(field, shown, `prefix part ${subdomainMessage}`));
  }
  if (name === "") causes.push(invalidValue(field, shown, "name part must be non-empty"));
  else if (name.length > 63)
    causes.push(invalidValue(field, shown, "name part must be no more than 63 bytes"));
  if (!qualifiedName.test(name)) causes.push(invalidValue(field, shown, nameMessage));
  return causes;
}

const standardFinalizers: readonly unknown[] = ["kubernetes", "orphan", "foregroundDeletion"];

function finalizerCauses(metadata: JsonObject, isCustom: boolean): KubeStatusCause[] {
  return listAt(metadata, "finalizers").flatMap((finalizer, index) => {
    const text = String(finalizer);
    const causes = keyCauses(text, text, "metadata.finalizers");
    if (isCustom || text.includes("/") || standardFinalizers.includes(text)) return causes;
    const why = "name is neither a standard finalizer name nor is it fully qualified";
    return [...causes, invalidValue(`metadata.finalizers[${index}]`, text, why)];
  });
}

function ownerCauses(metadata: JsonObject): KubeStatusCause[] {
  const field = "metadata.ownerReferences";
  const owners = listAt(metadata, "ownerReferences").filter(isObject);
  const causes: KubeStatusCause[] = [];
  let controller: string | undefined;
  for (const owner of owners) {
    if (!owner["apiVersion"])
      causes.push(invalidValue(`${field}.apiVersion`, "", "version must not be empty"));
    for (const part of ["kind", "name", "uid"]) {
      if (!owner[part]) causes.push(invalidValue(`${field}.${part}`, "", "must not be empty"));
    }
    if (owner["controller"] !== true) continue;
    const current = `${String(owner["kind"])}/${String(owner["name"])}`;
    if (controller !== undefined) {
      const why = `Only one reference can have Controller set to true. Found "true" in references for ${controller} and ${current}`;
      causes.push(invalidValue(field, owners, why));
    }
    controller ??= current;
  }
  return causes;
}

/** Checks the fields that an update must not change. */
export function validateMetaUpdate(next: JsonObject, previous: JsonObject): KubeStatusCause[] {
  const causes: KubeStatusCause[] = [];
  if (typeof previous["deletionTimestamp"] === "string") {
    const known = new Set(listAt(previous, "finalizers"));
    const added = listAt(next, "finalizers").filter((finalizer) => !known.has(finalizer));
    if (added.length > 0) {
      const list = added.map((finalizer) => JSON.stringify(finalizer)).join(", ");
      causes.push(
        forbiddenField(
          "metadata.finalizers",
          `no new finalizers can be added if the object is being deleted, found new finalizers []string{${list}}`,
        ),
      );
    }
  }
  for (const field of ["name", "namespace", "uid", "creationTimestamp", "deletionTimestamp"]) {
    if (!equalJson(next[field] ?? null, previous[field] ?? null)) {
      causes.push(immutable(`metadata.${field}`, next[field] ?? null));
    }
  }
  return causes;
}
