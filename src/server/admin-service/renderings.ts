// The call that shows the manifests of an object, made with the agent's own functions. Only imported when it is made: a server that
// nobody looks at needs no YAML.
import { Code, ConnectError } from "@connectrpc/connect";
import { defaultAudience } from "../../config/settings.ts";
import { renderYaml } from "../../documents/document-of.ts";
import type { RenderObjectRequest } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type AnyDocument, renderedObjects } from "../../kinds/documents.ts";
import type { KindName } from "../../kinds/kinds.ts";
import { kindOf } from "../../kinds/kinds.ts";
import type { KubeObject } from "../../kube/types.ts";
import { annotationKeys } from "../../model/labels.ts";
import type { Row, Store } from "../store.ts";
import { notFound } from "./object-changes.ts";
import { parseRef } from "./object-refs.ts";

// A pod with secrets has more than one without, so they are replaced and not left out.
const placeholder = new TextEncoder().encode('{"secrets":{"A":""}}');
const shownPlaceholder = Buffer.from(placeholder).toString("base64");

export async function renderObject(store: Store, request: RenderObjectRequest) {
  const ref = parseRef(request.ref);
  const { region, kind, id } = ref;
  const row = (await store.object(region, kind, id))?.row;
  if (row === undefined) throw notFound(ref);
  if (row.desired !== "running") {
    const why = row.desired === "stopped" ? "it is to be deleted" : "a newer server wrote it";
    throw new ConnectError(`${kind} ${id} has no manifests: ${why}`, Code.FailedPrecondition);
  }
  const settings = { region, runtimeClass: "gvisor", secrets: { audience: defaultAudience } } as const;
  const objects = await renderedObjects([documentOf(kind, row)], settings, { registries: [] });
  return { manifests: renderYaml(objects.map(shown)) };
}

function documentOf<K extends KindName>(kind: K, { spec }: Row<K>): AnyDocument {
  const { secrets } = kindOf(kind);
  const hasSecrets = secrets !== undefined && secrets.blobOf(spec).length > 0;
  const rendered = hasSecrets ? secrets.withBlob(spec, placeholder) : spec;
  // The kind determines the message type.
  return { kind, spec: rendered, source: { file: "", line: 1 } } as unknown as AnyDocument;
}

/** Also without the hashes, which would be those of the placeholder. */
function shown(object: KubeObject): KubeObject {
  const left: ReadonlySet<string> = new Set([annotationKeys.manifestHash, annotationKeys.templateHash]);
  const text = JSON.stringify(object, (key, value: unknown) => {
    if (left.has(key)) return undefined;
    return value === shownPlaceholder ? "[redacted]" : value;
  });
  return JSON.parse(text) as KubeObject;
}
