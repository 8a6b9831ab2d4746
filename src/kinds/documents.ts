// The documents of all kinds, assembled from their descriptors, and Environment beside them.
import type { Message } from "@bufbuild/protobuf";
import type { Document } from "../documents/document.ts";
import type { DocumentKind } from "../documents/document-kind.ts";
import { type EnvironmentContent, environmentDocument } from "../documents/environment.ts";
import type { Kind } from "./kind.ts";
import type { ObjectContent } from "./kind-document.ts";
import { type ApplyMessage, allKinds, type KindName, kinds } from "./kinds.ts";

/** What a document says of an object of a cluster. */
export type AnyObjectContent = { [K in KindName]: ObjectContent<K, ApplyMessage<K>> }[KindName];
/** What any document says. */
export type AnyContent = AnyObjectContent | EnvironmentContent;
export type AnyDocument = Document<AnyContent>;
export type AnyDocumentKind = DocumentKind<AnyContent>;

/** In the order in which the documentation has them. */
export async function loadDocumentKinds(): Promise<readonly AnyDocumentKind[]> {
  return [...(await Promise.all(allKinds.map(documentKindOf))), environmentDocument];
}

async function documentKindOf(kind: Kind<KindName>): Promise<AnyDocumentKind> {
  const { schema, belongsTo } = await kind.loadDocument();
  const documentKind: DocumentKind<ObjectContent<KindName, Message>> = {
    ...schema,
    idOf: ({ spec }) => kind.idOf(spec),
    // Where a part of the name is missing, so is a part here.
    nameOf: ({ spec }) => kind.uniqueNameOf(spec).split("/"),
    ...(belongsTo && { belongsTo: ({ spec }) => belongsTo(spec) }),
  };
  // Each is handed the documents of its own kind only, which a table of all kinds cannot say.
  return documentKind as unknown as AnyDocumentKind;
}

export function idOf(content: AnyContent): string {
  if (content.kind === "environment") return content.spec.id;
  const kind: Kind = kinds[content.kind];
  return kind.idOf(content.spec);
}
