// Finds documents that conflict: the same id or name twice, or an owner that differs from the environment's.
import type { Document, DocumentContent } from "./document.ts";
import type { DocumentKind } from "./document-kind.ts";
import type { DocumentProblem } from "./problem.ts";

/**
 * A document without a region may still get the same region as another one: callers that know the region set it and
 * check again.
 */
export function clashesOf<D extends DocumentContent>(
  documents: readonly Document<D>[],
  kinds: readonly DocumentKind<D>[],
): readonly DocumentProblem[] {
  const sorted = documents.flatMap((document) => {
    const kind = kinds.find((each) => each.kind === document.kind);
    return kind === undefined ? [] : [{ document, kind }];
  });
  return [...doublesOf(sorted), ...strangersOf(sorted)];
}

interface Sorted<D extends DocumentContent> {
  readonly document: Document<D>;
  readonly kind: DocumentKind<D>;
}

function doublesOf<D extends DocumentContent>(sorted: readonly Sorted<D>[]): readonly DocumentProblem[] {
  const seen = new Map<string, Document>();
  return sorted.flatMap(({ document, kind }) => {
    const name = kind.nameOf?.(document);
    const id = ["id", [kind.idOf(document)]] as const;
    const identities = name === undefined ? [id] : [id, ["name", name] as const];
    return identities.flatMap(([path, identity]) => {
      const key = JSON.stringify([document.region, document.kind, path, ...identity]);
      const first = seen.get(key);
      if (first === undefined) seen.set(key, document);
      if (first === undefined || identity.includes("")) return [];
      const { file, line } = document.source;
      const message = `is already used by another document, at ${placeOf(first)}`;
      return [{ file, line, path, message }];
    });
  });
}

/**
 * Documents whose owner differs from that of their environment. A dry run cannot find these: the control plane still
 * has the previous environment, and would reject the document only after the new one was applied.
 */
function strangersOf<D extends DocumentContent>(sorted: readonly Sorted<D>[]): readonly DocumentProblem[] {
  const keyOf = (region: string | undefined, id: string) => JSON.stringify([region, id]);
  const environments = new Map(
    sorted.flatMap(({ document, kind }) => {
      const environment = kind.environmentOf?.(document);
      if (environment === undefined) return [];
      const { region, source } = document;
      return [[keyOf(region, environment.id), { ...environment, source }] as const];
    }),
  );
  return sorted.flatMap(({ document, kind }) => {
    const own = kind.belongsTo?.(document);
    const environment = own && environments.get(keyOf(document.region, own.id));
    if (own === undefined || environment === undefined) return [];
    const message = `differs from that of its environment, at ${placeOf(environment)}`;
    const problem = (path: string, whose: string, mine: string) =>
      whose === mine || whose === "" || mine === "" ? [] : [{ ...document.source, path, message }];
    return [
      ...problem("workspace", environment.workspaceId, own.workspaceId),
      ...problem("project", environment.projectId, own.projectId),
    ];
  });
}

function placeOf({ source }: Pick<Document, "source">): string {
  return `${source.file}:${source.line}`;
}
