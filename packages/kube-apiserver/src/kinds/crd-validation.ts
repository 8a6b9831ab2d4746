// Validates CustomResourceDefinitions: names, versions, and a schema with a type for every field. Further rules for
// schemas are not implemented.
import type {
  CustomResourceDefinition,
  CustomResourceDefinitionNames,
  CustomResourceDefinitionVersion,
  JSONSchemaProps,
} from "kubernetes-types/apiextensions/v1.js";
import { immutable, invalidValue, required, unsupported } from "../causes.ts";
import { valueAt } from "../json.ts";
import type { KubeStatusCause } from "../types.ts";
import { type Causes, refuse } from "./field-checks.ts";
import { dnsLabel1035Problems, dnsSubdomainProblems } from "./names.ts";

const approvalAnnotation = "api-approved.kubernetes.io";
const scopes = ["Cluster", "Namespaced"];
const schemaDepthMax = 64;
const freeTypes = ["x-kubernetes-int-or-string", "x-kubernetes-preserve-unknown-fields"];

export function checkCrd({ metadata, spec }: CustomResourceDefinition): Causes {
  const { group = "", scope = "" } = spec ?? {};
  const versions = spec?.versions ?? [];
  const names: Partial<CustomResourceDefinitionNames> = spec?.names ?? {};
  const found: KubeStatusCause[] = [];
  if (metadata?.name !== `${names.plural ?? ""}.${group}`)
    found.push(
      invalidValue("metadata.name", metadata?.name ?? "", 'must be spec.names.plural+"."+spec.group'),
    );
  if (isProtected(group) && !metadata?.annotations?.[approvalAnnotation])
    found.push(
      required(
        `metadata.annotations[${approvalAnnotation}]`,
        `protected groups must have approval annotation "${approvalAnnotation}", see https://github.com/kubernetes/enhancements/pull/1111`,
      ),
    );
  found.push(...checkGroup(group), ...checkNames(names));
  if (!scopes.includes(scope)) found.push(unsupported("spec.scope", scope, scopes));
  if (spec?.preserveUnknownFields === true)
    found.push(
      invalidValue(
        "spec.preserveUnknownFields",
        true,
        "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
      ),
    );
  return [...found, ...checkVersions(versions)];
}

export function checkCrdUpdate(
  { spec }: CustomResourceDefinition,
  previous: CustomResourceDefinition,
): Causes {
  const { spec: before, status } = previous;
  // Before the names were accepted, they may still change.
  const isEstablished = (status?.conditions ?? []).some(
    (condition) => condition.type === "Established" && condition.status === "True",
  );
  const fixed = [
    ["spec.group", spec.group, before.group],
    ["spec.names.plural", spec.names?.plural, before.names?.plural],
    ...(isEstablished
      ? [
          ["spec.scope", spec.scope, before.scope],
          ["spec.names.kind", spec.names?.kind, before.names?.kind],
        ]
      : []),
  ];
  return fixed.flatMap(([field = "", now, then]) => (now === then ? [] : [immutable(field, now)]));
}

function isProtected(group: string): boolean {
  return ["k8s.io", "kubernetes.io"].some((domain) => group === domain || group.endsWith(`.${domain}`));
}

function checkGroup(group: string): Causes {
  if (group === "") return [required("spec.group")];
  const problems = dnsSubdomainProblems(group);
  if (problems.length > 0) return refuse("spec.group", group, problems);
  return group.includes(".")
    ? []
    : [invalidValue("spec.group", group, "should be a domain with at least one dot")];
}

function checkNames(names: Partial<CustomResourceDefinitionNames>): Causes {
  const found: KubeStatusCause[] = [];
  for (const key of ["plural", "singular"] as const) {
    const name = names[key] ?? "";
    const field = `spec.names.${key}`;
    found.push(...(name === "" ? [required(field)] : refuse(field, name, dnsLabel1035Problems(name))));
  }
  for (const key of ["kind", "listKind"] as const) {
    const name = names[key] ?? "";
    const field = `spec.names.${key}`;
    const problems = dnsLabel1035Problems(name.toLowerCase()).map(
      (problem) => `may have mixed case, but should otherwise match: ${problem}`,
    );
    found.push(...(name === "" ? [required(field)] : refuse(field, name, problems)));
  }
  return found;
}

function checkVersions(versions: readonly CustomResourceDefinitionVersion[]): Causes {
  const found: KubeStatusCause[] = [];
  for (const [index, { name = "", schema }] of versions.entries()) {
    const at = `spec.versions[${index}]`;
    found.push(...refuse(`${at}.name`, name, dnsLabel1035Problems(name)));
    if (schema?.openAPIV3Schema === undefined) {
      found.push(required(`${at}.schema.openAPIV3Schema`));
      continue;
    }
    // With one version, the real server reports the field of the older API.
    const field = versions.length === 1 ? "spec.validation.openAPIV3Schema" : `${at}.schema.openAPIV3Schema`;
    found.push(...checkSchema(field, schema.openAPIV3Schema, 0));
    if (schema.openAPIV3Schema.type !== "object")
      found.push(
        invalidValue(`${field}.type`, schema.openAPIV3Schema.type ?? "", "must be object at the root"),
      );
  }
  const names = versions.map(({ name }) => name);
  if (new Set(names).size < names.length)
    found.push(invalidValue("spec.versions", names, "must contain unique version names"));
  if (versions.filter(({ storage }) => storage).length !== 1)
    found.push(
      invalidValue("spec.versions", names, "must have exactly one version marked as storage version"),
      ...(versions.some(({ storage }) => storage)
        ? []
        : [invalidValue("status.storedVersions", null, "must have at least one stored version")]),
    );
  return found;
}

// Without a type a field could contain anything, and pruning and apply would have to guess.
function checkSchema(field: string, schema: JSONSchemaProps, depth: number): Causes {
  if (depth > schemaDepthMax) return [];
  const { type, properties = {}, items, additionalProperties } = schema;
  const found: KubeStatusCause[] = [];
  const mayLackType = freeTypes.some((extension) => valueAt(schema, extension) === true);
  if (depth > 0 && !type && !mayLackType) {
    const why = /\.items$/.test(field)
      ? "must not be empty for specified array items"
      : "must not be empty for specified object fields";
    found.push(required(`${field}.type`, why));
  }
  if (type === "array" && items === undefined) found.push(required(`${field}.items`, "must be specified"));
  if (isSchema(items)) found.push(...checkSchema(`${field}.items`, items, depth + 1));
  if (isSchema(additionalProperties))
    found.push(...checkSchema(`${field}.additionalProperties`, additionalProperties, depth + 1));
  for (const [name, property] of Object.entries(properties)) {
    found.push(...checkSchema(`${field}.properties[${name}]`, property, depth + 1));
  }
  return found;
}

function isSchema(value: unknown): value is JSONSchemaProps {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
