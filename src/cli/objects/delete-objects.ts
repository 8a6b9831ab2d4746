// krane delete: orders the deletion of what is named, after asking.
import { create } from "@bufbuild/protobuf";
import { idOf } from "../../documents/document.ts";
import { type ObjectRef, ObjectRefSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/printable.ts";
import { type Admin, regionFlaw } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { waitAndTell } from "./command-wait.ts";
import type { LoadedDocument } from "./loaded-documents.ts";
import { objectKindOf, parseObjectName } from "./object-names.ts";
import { nameInCluster } from "./object-rows.ts";
import { findObject, isNotFound, titleOf } from "./object-search.ts";

export interface DeleteOptions {
  readonly yes?: true;
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

type Victim =
  | { readonly kind: "object"; readonly title: string; readonly ref: ObjectRef }
  | { readonly kind: "environment"; readonly title: string; readonly region: string; readonly id: string };

/** The object that is named. Rejects where there is none, or where it is not named well enough to go unasked. */
export async function namedVictim(
  admin: Admin,
  what: { readonly kind: string; readonly name: string | undefined },
  { yes }: Pick<DeleteOptions, "yes">,
): Promise<Victim & { readonly detail: string }> {
  const { kind, name } = parseObjectName(what.kind, what.name);
  if (name === undefined) throw new CommandError("usage", `which ${kind}? krane delete ${kind} ID`);
  if (kind === "environment") {
    const title = `environment/${printable(name)}`;
    return { kind, title, region: admin.region, id: name, detail: " and its secrets" };
  }
  const { object } = await findObject(admin, name, objectKindOf(kind));
  if (object.ref === undefined) throw new CommandError("failed", "the control plane answered without a name");
  // A mistyped id can be the name of somebody else's object, and with --yes nobody sees which one it is.
  if (yes && object.ref.id !== name && `${object.namespace}/${object.name}` !== name)
    throw new CommandError(
      "usage",
      `with --yes, ${printable(name)} is no id and no NAMESPACE/NAME; if this is meant: ` +
        `krane delete ${kind} ${printable(object.ref.id)} --yes`,
    );
  const detail = ` (${printable(nameInCluster(object))})`;
  return { kind: "object", title: titleOf(object.ref), ref: object.ref, detail };
}

/**
 * In the opposite order, because what was applied last may lean on what came before; environments at the end, because
 * none goes while something of it is wanted.
 */
export function victimsOf(documents: readonly LoadedDocument[]): readonly Victim[] {
  const rankOf = ({ kind }: Victim) => (kind === "environment" ? 1 : 0);
  return documents
    .map(({ document, region, title }): Victim => {
      const id = idOf(document);
      if (document.kind === "environment") return { kind: "environment", title, region, id };
      const ref = create(ObjectRefSchema, { region, kind: objectKindOf(document.kind), id });
      return { kind: "object", title, ref };
    })
    .reverse()
    .sort((one, other) => rankOf(one) - rankOf(other));
}

export async function deleteObjects(
  admin: Admin,
  io: Io,
  victims: readonly (Victim & { readonly detail?: string })[],
  options: DeleteOptions,
): Promise<number> {
  if (options.ifVersion !== undefined && victims.length > 1)
    throw new CommandError("usage", `--if-version is about one object, and there are ${victims.length}`);
  if (options.ifVersion !== undefined && victims[0]?.kind === "environment")
    throw new CommandError("usage", "--if-version is not possible for an environment");
  if (!(await isAgreed(admin, io, victims, options))) {
    io.stderr.write("nothing was deleted\n");
    return exitCodes.failure;
  }
  const awaited: { ref: ObjectRef; version: bigint }[] = [];
  const missing: string[] = [];
  for (const victim of victims) {
    try {
      const version = await deleteOne(admin, victim, options);
      const said = victim.kind === "object" ? "is being deleted" : "is deleted";
      io.stdout.write(`${victim.title} ${said}${version === undefined ? "" : ` (version ${version})`}\n`);
      if (victim.kind === "object" && version !== undefined) awaited.push({ ref: victim.ref, version });
    } catch (error) {
      if (!isNotFound(error)) throw (await regionFlaw(admin, error, regionOf(victim))) ?? error;
      missing.push(victim.title);
      io.stderr.write(`${victim.title} is not there\n`);
    }
  }
  if (options.wait && awaited.length > 0)
    await waitAndTell(admin, io, { goal: "deleted", objects: awaited, timeoutMs: options.timeout });
  return missing.length > 0 ? exitCodes.notFound : exitCodes.ok;
}

function regionOf(victim: Victim): string {
  return victim.kind === "object" ? victim.ref.region : victim.region;
}

async function deleteOne(
  { client, signal }: Admin,
  victim: Victim,
  { ifVersion: expectedVersion }: DeleteOptions,
): Promise<bigint | undefined> {
  if (victim.kind === "environment") {
    await client.deleteEnvironment({ region: victim.region, id: victim.id }, { signal });
    return undefined;
  }
  const expected = expectedVersion === undefined ? {} : { expectedVersion };
  return (await client.deleteObject({ ref: victim.ref, ...expected }, { signal })).version;
}

async function isAgreed(
  admin: Admin,
  io: Io,
  victims: readonly (Victim & { readonly detail?: string })[],
  { yes }: DeleteOptions,
): Promise<boolean> {
  if (yes) return true;
  const what = victims.map((each) => `${each.title}${each.detail ?? ""} in ${regionOf(each)}`).join(", ");
  const answer = await io.ask?.(`Delete ${what}? [y/N] `, admin.signal);
  if (answer === undefined)
    throw new CommandError("usage", "nobody is there to be asked whether it is meant: say so with --yes");
  return /^y(es)?$/i.test(answer.trim());
}
