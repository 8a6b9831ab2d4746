// What an agent would bring to a cluster for some documents: the same manifests, from the same functions of the
// kinds, in an order in which each finds what it needs. What several documents share is there once: a namespace, its
// pull secret, and the ingress policy of an environment, which lets in the ports of all its deployments.
import type { DocumentRules } from "../documents/document-kind.ts";
import type { KubeObject } from "../kube/types.ts";
import { describeProblems, type ParsedMessage } from "../model/field-problem.ts";
import type { AnyDocument } from "./documents.ts";
import type { RenderSettings } from "./kind-document.ts";
import { allKinds } from "./kinds.ts";

/** `documents`: as `parseDocuments` gave them under the same rules. Environments are nothing in a cluster. */
export async function renderedObjects(
  documents: readonly AnyDocument[],
  settings: RenderSettings,
  rules: DocumentRules,
): Promise<readonly KubeObject[]> {
  const manifests = new Map<AnyDocument, readonly KubeObject[]>();
  for (const kind of allKinds) {
    const { manifestsOf } = await kind.loadDocument();
    const own = documents.flatMap((document) => (document.kind === kind.name ? [document] : []));
    const rendered = manifestsOf(
      own.map(({ spec }) => specOf(kind.parseApply(spec, rules))),
      settings,
    );
    for (const [index, document] of own.entries()) manifests.set(document, rendered[index] ?? []);
  }
  return firstOfEach(documents.flatMap((document) => manifests.get(document) ?? []));
}

function firstOfEach(objects: readonly KubeObject[]): readonly KubeObject[] {
  const seen = new Map<string, KubeObject>();
  for (const object of objects) {
    const { kind, metadata } = object;
    const key = `${kind} ${metadata?.namespace ?? ""}/${metadata?.name ?? ""}`;
    if (!seen.has(key)) seen.set(key, object);
  }
  return [...seen.values()];
}

function specOf<T>(parsed: ParsedMessage<T>): T {
  if (parsed.kind === "valid") return parsed.spec;
  throw new TypeError(
    `a document was taken that the model does not take: ${describeProblems(parsed.problems)}`,
  );
}
