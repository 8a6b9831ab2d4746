// Compares two documents field by field, with the field names of documents. Pure.
import { documentOf } from "../documents/document-of.ts";
import type { Environment } from "../gen/krane/admin/v1/admin_pb.ts";
import type { AnyContent, AnyDocumentKind, AnyObjectContent } from "./documents.ts";
import type { Kind } from "./kind.ts";
import { kinds as desiredKinds } from "./kinds.ts";

export interface FieldChange {
  /** As in the document: `replicas`, `healthcheck.path`, `command[2]`. */
  readonly path: string;
  /** Undefined if the field is missing on that side. */
  readonly before: string | undefined;
  readonly after: string | undefined;
}

export function contentOfEnvironment({ id, workspaceId, projectId }: Environment): AnyContent {
  return { kind: "environment", spec: { id, workspaceId, projectId } };
}

export function changesBetween(
  before: AnyContent | undefined,
  after: AnyContent,
  kinds: readonly AnyDocumentKind[],
): readonly FieldChange[] {
  const [old, wanted] = [fieldsOf(before, kinds), fieldsOf(after, kinds)];
  const paths = [...new Set([...wanted.keys(), ...old.keys()])];
  return paths
    .map((path) => ({ path, before: old.get(path), after: wanted.get(path) }))
    .filter((change) => change.before !== change.after);
}

/**
 * Values by path. Secrets are left out because the control plane never returns them, and the region because it is the
 * same on both sides.
 */
function fieldsOf(
  content: AnyContent | undefined,
  kinds: readonly AnyDocumentKind[],
): ReadonlyMap<string, string> {
  if (content === undefined) return new Map();
  const fields = new Map<string, string>();
  const { region: _, ...compared } = documentOf(withoutSecrets(content), kinds);
  flatten(compared, "", fields);
  return fields;
}

function withoutSecrets(content: AnyContent): AnyContent {
  if (content.kind === "environment" || content.kind === "app") return content;
  const { secrets }: Kind = desiredKinds[content.kind];
  const spec = secrets?.withBlob(content.spec, new Uint8Array()) ?? content.spec;
  return { ...content, spec } as AnyObjectContent;
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
