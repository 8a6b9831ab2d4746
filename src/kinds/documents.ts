// The document kinds: one for each kind of object, built from its descriptor, and Environment.
import type { Message } from "@bufbuild/protobuf";
import type { Document } from "../documents/document.ts";
import type { DocumentKind } from "../documents/document-kind.ts";
import { type EnvironmentContent, environmentDocument } from "../documents/environment.ts";
import type { Kind } from "./kind.ts";
import type { ObjectContent } from "./kind-document.ts";
import { type ApplyMessage, allKinds, type KindName, kinds } from "./kinds.ts";

/** The content of a document that describes an object in a cluster. */
export type AnyObjectContent = { [K in KindName]: ObjectContent<K, ApplyMessage<K>> }[KindName];
/** The content of any document. */
export type AnyContent = AnyObjectContent | EnvironmentContent;
export type AnyDocument = Document<AnyContent>;
export type AnyDocumentKind = DocumentKind<AnyContent>;

/** In the order of the documentation. */
export async function loadDocumentKinds(): Promise<readonly AnyDocumentKind[]> {
  return [...(await Promise.all(allKinds.map(documentKindOf))), environmentDocument];
}

async function documentKindOf(kind: Kind<KindName>): Promise<AnyDocumentKind> {
  const { schema, belongsTo } = await kind.loadDocument();
  const documentKind: DocumentKind<ObjectContent<KindName, Message>> = {
    ...schema,
    idOf: ({ spec }) => kind.idOf(spec),
    // If a part of the name is missing, that part is empty here.
    nameOf: ({ spec }) => kind.uniqueNameOf(spec).split("/"),
    ...(belongsTo && { belongsTo: ({ spec }) => belongsTo(spec) }),
  };
  // Each gets only documents of its own kind, which the type of a list of all kinds cannot express.
  return documentKind as unknown as AnyDocumentKind;
}

export function idOf(content: AnyContent): string {
  if (content.kind === "environment") return content.spec.id;
  const kind: Kind = kinds[content.kind];
  return kind.idOf(content.spec);
}
