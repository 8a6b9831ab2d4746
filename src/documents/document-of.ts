// Converts the control plane's state back to a document. Defaults are written out, unless they are empty, so that two
// documents of the same kind can be compared field by field.
import type { DocumentContent } from "./document.ts";
import { apiVersion, type DocumentKind } from "./document-kind.ts";
import type { JsonValue } from "./source-tree.ts";
import { yamlText } from "./yaml-text.ts";

export type PlainDocument = { readonly [name: string]: JsonValue };

export function documentOf<D extends DocumentContent>(
  document: D & { readonly region?: string },
  kinds: readonly DocumentKind<D>[],
): PlainDocument {
  const kind = kinds.find((each) => each.kind === document.kind);
  if (kind === undefined) throw new TypeError(`no kind of document is called ${document.kind}`);
  const { region } = document;
  return { apiVersion, kind: kind.word, ...(region !== undefined && { region }), ...kind.write(document) };
}

/** Several values in one file. */
export function renderYaml(values: readonly unknown[]): string {
  return values.map(yamlText).join("---\n");
}
