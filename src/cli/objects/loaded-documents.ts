// Loads the documents of `-f` and determines the region of each. All problems of all files are reported at once, and
// nothing is sent if there is one.
import { clashesOf } from "../../documents/clashes.ts";
import { type DocumentName, parseDocumentNames, parseDocuments } from "../../documents/parse.ts";
import { type DocumentProblem, renderDocumentProblems } from "../../documents/problem.ts";
import { type AnyDocument, idOf, loadDocumentKinds } from "../../kinds/documents.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import { readDocumentFiles } from "./document-files.ts";

export interface LoadedDocument {
  readonly document: AnyDocument;
  readonly region: string;
  /** `deployment/d_web`, as commands accept it. */
  readonly title: string;
}

/** The values of `-f` and `--region`. */
interface FileFlags {
  readonly paths: readonly string[];
  readonly regionFlag: string | undefined;
}

export async function loadDocuments(
  admin: Admin,
  io: Io,
  flags: FileFlags,
): Promise<readonly LoadedDocument[]> {
  const kinds = await loadDocumentKinds();
  const parsed = parseDocuments(await readDocumentFiles(flags.paths, io, admin.signal), kinds);
  if (parsed.kind === "invalid") throw refusal(parsed.problems);
  const loaded = parsed.documents.map((document) => ({
    document,
    region: placed(document, admin, flags),
    title: titleOf(document.kind, idOf(document)),
  }));
  const clashes = clashesOf(
    loaded.map(({ document, region }) => ({ ...document, region })),
    kinds,
  );
  if (clashes.length > 0) throw refusal(clashes);
  return loaded;
}

/** The kind, id and region of a document, without its spec. */
export interface LoadedName {
  readonly kind: AnyDocument["kind"];
  readonly id: string;
  readonly region: string;
  readonly title: string;
}

/** Without duplicates, in the order of their first occurrence. */
export async function loadNames(admin: Admin, io: Io, flags: FileFlags): Promise<readonly LoadedName[]> {
  const kinds = await loadDocumentKinds();
  const parsed = parseDocumentNames(await readDocumentFiles(flags.paths, io, admin.signal), kinds);
  if (parsed.kind === "invalid") throw refusal(parsed.problems);
  const names = new Map<string, LoadedName>();
  for (const name of parsed.names) {
    const { kind, id } = name;
    const region = placed(name, admin, flags);
    const key = JSON.stringify([region, kind, id]);
    if (!names.has(key)) names.set(key, { kind, id, region, title: titleOf(kind, id) });
  }
  return [...names.values()];
}

function refusal(problems: readonly DocumentProblem[]): CommandError {
  return new CommandError("failed", renderDocumentProblems(problems).trimEnd());
}

function titleOf(kind: AnyDocument["kind"], id: string): string {
  return `${kind}/${printable(id)}`;
}

function placed(
  { region, source }: Pick<DocumentName<string>, "region" | "source">,
  admin: Admin,
  { regionFlag }: FileFlags,
): string {
  // If a file silently overrode the flag, the change would go to a region that the user did not ask for.
  if (region !== undefined && regionFlag !== undefined && region !== regionFlag)
    throw new CommandError(
      "usage",
      `${source.file}:${source.line}: belongs to region ${printable(region)}, not to ${regionFlag}; leave out --region`,
    );
  return region ?? admin.region;
}
