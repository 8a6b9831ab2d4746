// From `-f` to documents, each with the region that it goes to. All mistakes of all files are said at once, and
// nothing is sent while there is one.
import { clashesOf } from "../../documents/clashes.ts";
import { type Document, idOf } from "../../documents/document.ts";
import { parseDocuments } from "../../documents/parse.ts";
import { renderDocumentProblems } from "../../documents/problem.ts";
import { printable } from "../../telemetry/printable.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import type { Io } from "../io.ts";
import { readDocumentFiles } from "./document-files.ts";

export interface LoadedDocument {
  readonly document: Document;
  readonly region: string;
  /** `deployment/d_web`, as it can be typed again. */
  readonly title: string;
}

export async function loadDocuments(
  admin: Admin,
  io: Io,
  { paths, regionFlag }: { readonly paths: readonly string[]; readonly regionFlag: string | undefined },
): Promise<readonly LoadedDocument[]> {
  const parsed = parseDocuments(await readDocumentFiles(paths, io, admin.signal));
  if (parsed.kind === "invalid")
    throw new CommandError("failed", renderDocumentProblems(parsed.problems).trimEnd());
  const loaded = parsed.documents.map((document) => {
    const { region, source } = document;
    // A flag that a file overrides in silence would send a change to a region that nobody asked for.
    if (region !== undefined && regionFlag !== undefined && region !== regionFlag)
      throw new CommandError(
        "usage",
        `${source.file}:${source.line}: belongs to region ${printable(region)}, not to ${regionFlag}; leave out --region`,
      );
    return {
      document,
      region: region ?? admin.region,
      title: `${document.kind}/${printable(idOf(document))}`,
    };
  });
  const clashes = clashesOf(loaded.map(({ document, region }) => ({ ...document, region })));
  if (clashes.length > 0) throw new CommandError("failed", renderDocumentProblems(clashes).trimEnd());
  return loaded;
}
