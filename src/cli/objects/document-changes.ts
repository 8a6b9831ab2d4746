// What would change, field by field, in the words of the documents. Pure.
import type { DocumentContent } from "../../documents/document.ts";
import { documentOf } from "../../documents/document-of.ts";
import type { Environment, ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";

export interface FieldChange {
  /** As in the document: `replicas`, `healthcheck.path`, `command[2]`. */
  readonly path: string;
  /** Undefined where there is nothing on that side. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

/** The document that says what the control plane holds; undefined where a newer server wrote it. */
export function contentOfView({ spec, deploymentId }: ObjectView): DocumentContent | undefined {
  switch (spec?.spec.case) {
    case "deployment":
      return { kind: "deployment", spec: spec.spec.value };
    case "sentinel":
      return { kind: "sentinel", spec: spec.spec.value };
    case "policy":
      return { kind: "policy", spec: spec.spec.value, deploymentId };
    default:
      return undefined;
  }
}

export function contentOfEnvironment({ id, workspaceId, projectId }: Environment): DocumentContent {
  return { kind: "environment", spec: { id, workspaceId, projectId } };
}

export function changesBetween(
  before: DocumentContent | undefined,
  after: DocumentContent,
): readonly FieldChange[] {
  const [old, wanted] = [fieldsOf(before), fieldsOf(after)];
  const paths = [...new Set([...wanted.keys(), ...old.keys()])];
  return paths
    .map((path) => ({ path, before: old.get(path), after: wanted.get(path) }))
    .filter((change) => change.before !== change.after);
}

/**
 * Values by path. Secrets are left out: the control plane never shows the ones that it has. So is the region, which
 * is where both sides are, whether or not the document says so.
 */
function fieldsOf(content: DocumentContent | undefined): ReadonlyMap<string, string> {
  if (content === undefined) return new Map();
  const shown =
    content.kind === "deployment"
      ? { ...content, spec: { ...content.spec, encryptedEnvironmentVariables: new Uint8Array() } }
      : content;
  const fields = new Map<string, string>();
  const { region: _, ...compared } = documentOf(shown);
  flatten(compared, "", fields);
  return fields;
}

function flatten(value: unknown, path: string, into: Map<string, string>): void {
  if (Array.isArray(value) && value.length > 0) {
    for (const [index, item] of value.entries()) flatten(item, `${path}[${index}]`, into);
  } else if (typeof value === "object" && value !== null && Object.keys(value).length > 0) {
    for (const [key, item] of Object.entries(value))
      flatten(item, path === "" ? key : `${path}.${key}`, into);
  } else {
    into.set(path, JSON.stringify(value));
  }
}
