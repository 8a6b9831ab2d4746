// Two documents of which one would undo the other, whichever came first, or would have the other refused.
import { type Document, idOf } from "./document.ts";
import type { DocumentProblem } from "./problem.ts";

/**
 * A document without a region may still go to that of another: whoever knows where it goes gives it that region and
 * asks again.
 */
export function clashesOf(documents: readonly Document[]): readonly DocumentProblem[] {
  return [...doublesOf(documents), ...strangersOf(documents)];
}

function doublesOf(documents: readonly Document[]): readonly DocumentProblem[] {
  const seen = new Map<string, Document>();
  return documents.flatMap((document) =>
    identitiesOf(document).flatMap(([path, identity]) => {
      const key = JSON.stringify([document.region, document.kind, path, ...identity]);
      const first = seen.get(key);
      if (first === undefined) seen.set(key, document);
      if (first === undefined || identity.includes("")) return [];
      const { file, line } = document.source;
      const message = `is that of another document as well, at ${placeOf(first)}`;
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

/**
 * Deployments in an environment of somebody else. The control plane knows the environment of before, if any, when it is
 * asked about the deployment: it would refuse the one after the other has been applied.
 */
function strangersOf(documents: readonly Document[]): readonly DocumentProblem[] {
  const keyOf = (region: string | undefined, id: string) => JSON.stringify([region, id]);
  const environments = new Map(
    documents.flatMap(({ region, source, ...content }) =>
      content.kind === "environment"
        ? [[keyOf(region, content.spec.id), { ...content.spec, source }] as const]
        : [],
    ),
  );
  return documents.flatMap((document) => {
    if (document.kind !== "deployment") return [];
    const { environmentId, workspaceId, projectId } = document.spec;
    const environment = environments.get(keyOf(document.region, environmentId));
    if (environment === undefined) return [];
    const problem = (path: string, whose: string, own: string) =>
      whose === own || whose === "" || own === ""
        ? []
        : [
            {
              ...document.source,
              path,
              message: `is not that of its environment, at ${placeOf(environment)}`,
            },
          ];
    return [
      ...problem("workspace", environment.workspaceId, workspaceId),
      ...problem("project", environment.projectId, projectId),
    ];
  });
}

function placeOf({ source }: Pick<Document, "source">): string {
  return `${source.file}:${source.line}`;
}
