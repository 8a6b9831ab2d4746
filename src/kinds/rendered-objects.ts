// Renders the manifests that an agent would apply for some documents, with the same functions as the agent, each object
// after those that it needs. Objects that several documents share appear once: a namespace, its pull secret, and the
// ingress policy of an environment, which admits the ports of all its deployments.
import type { DocumentRules } from "../documents/document-kind.ts";
import type { KubeObject } from "../kube/types.ts";
import { describeProblems, type ParsedMessage } from "../model/field-problem.ts";
import type { AnyDocument } from "./documents.ts";
import type { RenderSettings } from "./kind-document.ts";
import { allKinds } from "./kinds.ts";

/** `documents`: from `parseDocuments` with the same rules. Environments have no objects in a cluster. */
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
