// Two documents of which one would undo the other, whichever came first.
import { type Document, idOf } from "./document.ts";
import type { DocumentProblem } from "./problem.ts";

/**
 * A document without a region may still go to that of another: whoever knows where it goes gives it that region and
 * asks again.
 */
export function clashesOf(documents: readonly Document[]): readonly DocumentProblem[] {
  const seen = new Map<string, Document>();
  return documents.flatMap((document) =>
    identitiesOf(document).flatMap(([path, identity]) => {
      const key = JSON.stringify([document.region, document.kind, path, ...identity]);
      const first = seen.get(key);
      if (first === undefined) seen.set(key, document);
      if (first === undefined || identity.includes("")) return [];
      const { file, line } = document.source;
      const message = `is that of another document as well, at ${first.source.file}:${first.source.line}`;
      return [{ file, line, path, message }];
    }),
  );
}

function identitiesOf(document: Document): readonly (readonly [path: string, identity: readonly string[]])[] {
  const id = ["id", [idOf(document)]] as const;
  if (document.kind === "environment") return [id];
  // Reports name deployments and sentinels without a namespace, so a region has each name once.
  const namespace = document.kind === "policy" ? [document.spec.k8sNamespace] : [];
  return [id, ["name", [...namespace, document.spec.k8sName]]];
}
