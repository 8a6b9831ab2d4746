// Writes packages/kube-apiserver/src/schema/: the fields of built-in kinds for the embedded
// API server, taken from a real API server's OpenAPI documents.
//
//   node --import tsx tools/extract-openapi.ts
//
// Descriptions are dropped, and so is every definition that no served kind reaches. Each
// property gets an `x-go` mark from the Go sources: "omit" (left out when empty), "zero"
// (written even when empty) or "null" (written as null when absent).
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { requestApi } from "../test/support/cluster/api-request.ts";
import { startCluster } from "../test/support/cluster.ts";
import { runGo } from "./go-command.ts";
import { findGoField, type GoField, type GoStructs, parseGoStructs } from "./go-struct-tags.ts";
import { resolveKubeBinaries } from "./kube-binaries.ts";

interface Definition {
  type?: string;
  format?: string;
  default?: unknown;
  $ref?: string;
  allOf?: Definition[];
  oneOf?: Definition[];
  properties?: Record<string, Definition>;
  additionalProperties?: Definition;
  items?: Definition;
  [extension: string]: unknown;
}

interface GoPackage {
  readonly prefix: string;
  readonly module: string;
  readonly file: string;
}

const documents = [
  "api/v1",
  "apis/apps/v1",
  "apis/policy/v1",
  "apis/coordination.k8s.io/v1",
  "apis/node.k8s.io/v1",
  "apis/events.k8s.io/v1",
  "apis/apiextensions.k8s.io/v1",
  "apis/authentication.k8s.io/v1",
  "apis/authorization.k8s.io/v1",
  "apis/autoscaling/v1",
];

const roots = [
  ..."Namespace Pod Service Secret ConfigMap ServiceAccount Event Node Binding".split(" ").map(core),
  "io.k8s.api.apps.v1.ReplicaSet",
  "io.k8s.api.apps.v1.Deployment",
  "io.k8s.api.autoscaling.v1.Scale",
  "io.k8s.api.policy.v1.PodDisruptionBudget",
  "io.k8s.api.policy.v1.Eviction",
  "io.k8s.api.coordination.v1.Lease",
  "io.k8s.api.node.v1.RuntimeClass",
  "io.k8s.api.events.v1.Event",
  "io.k8s.api.authentication.v1.TokenReview",
  "io.k8s.api.authentication.v1.TokenRequest",
  "io.k8s.api.authorization.v1.SubjectAccessReview",
  "io.k8s.api.authorization.v1.SelfSubjectAccessReview",
  "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.CustomResourceDefinition",
  "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions",
];

const apiGroups = "apps autoscaling policy coordination node events authentication authorization core".split(
  " ",
);
const packages: readonly GoPackage[] = [
  ...apiGroups.map((group) => ({
    prefix: `io.k8s.api.${group}.v1.`,
    module: "k8s.io/api",
    file: `${group}/v1/types.go`,
  })),
  {
    prefix: "io.k8s.apimachinery.pkg.apis.meta.v1.",
    module: "k8s.io/apimachinery",
    file: "pkg/apis/meta/v1/types.go",
  },
  {
    prefix: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.",
    module: "k8s.io/apiextensions-apiserver",
    file: "pkg/apis/apiextensions/v1/types.go",
  },
  {
    prefix: "io.k8s.apiextensions-apiserver.pkg.apis.apiextensions.v1.JSONSchema",
    module: "k8s.io/apiextensions-apiserver",
    file: "pkg/apis/apiextensions/v1/types_jsonschema.go",
  },
];

function core(kind: string): string {
  return `io.k8s.api.core.v1.${kind}`;
}

/** Drops descriptions and examples, and keeps what the server uses. */
function withoutProse(node: Definition): Definition {
  const kept: Definition = {};
  for (const [key, value] of Object.entries(node)) {
    if (key === "description" || key === "externalDocs") continue;
    if (key === "properties") {
      kept.properties = mapValues(value as Record<string, Definition>, withoutProse);
    } else if (key === "items" || key === "additionalProperties") {
      kept[key] = withoutProse(value as Definition);
    } else {
      kept[key] = value;
    }
  }
  return kept;
}

function mapValues<T, U>(record: Record<string, T>, change: (value: T) => U): Record<string, U> {
  return Object.fromEntries(Object.entries(record).map(([key, value]) => [key, change(value)]));
}

function referencesOf(node: unknown): string[] {
  if (typeof node !== "object" || node === null) return [];
  const own = "$ref" in node && typeof node.$ref === "string" ? [node.$ref.replace(/^.*\//, "")] : [];
  return [...own, ...Object.values(node).flatMap(referencesOf)];
}

function reachable(all: ReadonlyMap<string, Definition>): Map<string, Definition> {
  const found = new Map<string, Definition>();
  const waiting = [...roots];
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (found.has(name)) continue;
    const definition = all.get(name);
    if (definition === undefined) throw new Error(`no OpenAPI document has ${name}`);
    found.set(name, definition);
    waiting.push(...referencesOf(definition));
  }
  return found;
}

function markOf(
  property: Definition,
  field: GoField,
  all: ReadonlyMap<string, Definition>,
): string | undefined {
  if (field.pointer) return field.omitEmpty ? undefined : "null";
  const target = property.$ref ?? property.allOf?.[0]?.$ref;
  const definition = target === undefined ? property : (all.get(target.replace(/^.*\//, "")) ?? property);
  const isStruct = target !== undefined && definition.type !== "array";
  if (isStruct) return field.omitZero ? "omit" : "zero";
  if (definition.type === "array" || definition.type === "object" || definition.format === "byte") {
    return field.omitEmpty ? "omit" : "null";
  }
  return field.omitEmpty ? "omit" : "zero";
}

function addMarks(
  name: string,
  definition: Definition,
  structs: GoStructs,
  all: ReadonlyMap<string, Definition>,
): Definition {
  const struct = name.replace(/^.*\./, "");
  if (definition.properties === undefined) return definition;
  const properties: Record<string, Definition> = {};
  for (const [key, property] of Object.entries(definition.properties)) {
    const field = findGoField(structs, struct, key);
    const mark = field === undefined ? undefined : markOf(property, field, all);
    properties[key] = mark === undefined ? property : { ...property, "x-go": mark };
  }
  return { ...definition, properties };
}

async function loadDefinitions(signal: AbortSignal): Promise<Map<string, Definition>> {
  const report = (line: string) => console.error(line);
  const binaries = await resolveKubeBinaries(process.env, { report }, signal);
  if (binaries.kind === "missing") throw new Error(binaries.what);
  const cluster = await startCluster({ binariesDir: binaries.dir }, signal);
  try {
    const all = new Map<string, Definition>();
    for (const document of documents) {
      const { status, body } = await requestApi(cluster, { path: `/openapi/v3/${document}` });
      if (status !== 200) throw new Error(`/openapi/v3/${document} returned ${status}`);
      const { components } = body as { components: { schemas: Record<string, Definition> } };
      for (const [name, schema] of Object.entries(components.schemas)) all.set(name, withoutProse(schema));
    }
    return all;
  } finally {
    await cluster.stop();
  }
}

/** The structs that a package's types may embed are those of its own file and of core. */
async function loadStructs(signal: AbortSignal): Promise<Map<string, GoStructs>> {
  const directories = new Map<string, string>();
  const cwd = fileURLToPath(new URL("kubernetes/", import.meta.url));
  for (const module of new Set(packages.map((entry) => entry.module))) {
    const printed = await runGo(["list", "-m", "-f", "{{.Dir}}", module], { cwd, env: process.env }, signal);
    directories.set(module, printed.trim());
  }
  const structs = new Map<string, GoStructs>();
  for (const { prefix, module, file } of packages) {
    const source = await readFile(join(directories.get(module) ?? "", file), "utf8");
    structs.set(prefix, parseGoStructs(source));
  }
  return structs;
}

const signal = AbortSignal.timeout(600_000);
const all = await loadDefinitions(signal);
const structs = await loadStructs(signal);
const byFile = new Map<string, string[]>();
for (const [name, definition] of [...reachable(all)].sort(([a], [b]) => (a < b ? -1 : 1))) {
  const owner = packages.findLast((entry) => name.startsWith(entry.prefix));
  const marked = addMarks(name, definition, structs.get(owner?.prefix ?? "") ?? new Map(), all);
  const group = /^io\.k8s\.api\.(\w+)\.v1\./.exec(name)?.[1];
  const file = group ?? (name.includes("apiextensions") ? "apiextensions" : "meta");
  byFile.set(file, [...(byFile.get(file) ?? []), `${JSON.stringify(name)}: ${JSON.stringify(marked)}`]);
}
for (const [file, lines] of byFile) {
  const path = fileURLToPath(new URL(`../packages/kube-apiserver/src/schema/${file}.json`, import.meta.url));
  await writeFile(path, `{\n${lines.join(",\n")}\n}\n`);
  console.log(`${file}.json: ${lines.length} definitions`);
}
