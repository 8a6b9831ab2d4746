// krane apply --prune SET: the control plane remembers what was applied under that name, and what the files no longer have
// is deleted after a confirmation. Absence alone deletes nothing.
//
// - The sets are read before anything is applied: what is applied now is in the files anyway.
// - Files without any member of the set are probably the wrong files, so nothing is applied then.
// - What was applied joins the set afterwards. If that fails, a later prune deletes too little, never too much.
import { create } from "@bufbuild/protobuf";
import { type ObjectRef, ObjectRefSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { idOf } from "../../kinds/documents.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { type ApplyOptions, applyDocuments } from "./apply-documents.ts";
import { type DeleteOptions, deleteObjects, targetsOf } from "./delete-objects.ts";
import type { LoadedDocument, LoadedName } from "./loaded-documents.ts";
import { namedKindOf, objectKindOf } from "./object-names.ts";
import { titleOf } from "./object-search.ts";

/** The limit of one call. */
const joiningMax = 1_000;
const pagesMax = 1_000;
/** The most names in an error. */
const namedMax = 10;

export interface PruneOptions extends ApplyOptions, DeleteOptions {
  /** The name of the set. */
  readonly prune: string;
}

export async function applyAndPrune(
  admin: Admin,
  io: Io,
  documents: readonly LoadedDocument[],
  options: PruneOptions,
): Promise<number> {
  const { prune: set, dryRun } = options;
  const refs = documents.map(refOf);
  const left: LoadedName[] = [];
  for (const region of new Set(refs.map((ref) => ref.region)))
    left.push(...(await leftBehind(admin, { region, set }, refs)));
  await applyDocuments(admin, io, documents, options);
  if (dryRun) {
    for (const { title } of left) io.stdout.write(`${title} would be deleted (dry run)\n`);
    return exitCodes.ok;
  }
  await join(admin, set, refs);
  if (left.length === 0) return exitCodes.ok;
  io.stderr.write(
    `set ${set} has ${counted(left)} that ${left.length === 1 ? "is" : "are"} not in these files\n`,
  );
  // The version that is asked for is that of what was applied.
  const { ifVersion: _, ...deletion } = options;
  return deleteObjects(admin, io, targetsOf(left), deletion);
}

function refOf({ document, region }: LoadedDocument): ObjectRef {
  return create(ObjectRefSchema, { region, kind: objectKindOf(document.kind), id: idOf(document) });
}

function nameOf(ref: ObjectRef): LoadedName {
  const kind = namedKindOf(ref.kind);
  if (kind === undefined)
    throw new CommandError(
      "failed",
      `${printable(ref.id)} is of a kind that this krane is too old for; upgrade it`,
    );
  return { kind, id: ref.id, region: ref.region, title: titleOf(ref) };
}

function keyOf({ region, kind, id }: ObjectRef): string {
  return JSON.stringify([region, kind, id]);
}

/** The members of the set in this region that are not among these. */
async function leftBehind(
  { client, signal }: Admin,
  { region, set }: { readonly region: string; readonly set: string },
  refs: readonly ObjectRef[],
): Promise<readonly LoadedName[]> {
  const kept = new Set(refs.map(keyOf));
  const members: ObjectRef[] = [];
  let pageToken = "";
  for (let page = 0; page === 0 || pageToken !== ""; page++) {
    if (page === pagesMax)
      throw new CommandError("failed", `the control plane lists more than ${pagesMax} pages of set ${set}`);
    const answer = await client.listSet({ region, set, pageToken }, { signal });
    members.push(...answer.members);
    pageToken = answer.nextPageToken;
  }
  const left = members.filter((ref) => !kept.has(keyOf(ref))).map(nameOf);
  if (left.length > 0 && left.length === members.length)
    throw new CommandError(
      "failed",
      `none of the ${counted(members)} in set ${set} is in these files, so these are probably not its files; nothing was applied. ` +
        `If they are, delete the old ones first: ${left
          .slice(0, namedMax)
          .map(({ title }) => title)
          .join(", ")}`,
    );
  return left;
}

function counted({ length }: readonly unknown[]): string {
  return `${length} object${length === 1 ? "" : "s"}`;
}

async function join({ client, signal }: Admin, set: string, refs: readonly ObjectRef[]): Promise<void> {
  for (const region of new Set(refs.map((ref) => ref.region))) {
    const own = refs.filter((ref) => ref.region === region);
    for (let from = 0; from < own.length; from += joiningMax)
      await client.joinSet({ region, set, members: own.slice(from, from + joiningMax) }, { signal });
  }
}
