// krane delete: orders the deletion of what is named, after asking.
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type ObjectRef, ObjectRefSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/printable.ts";
import { type Admin, regionFlaw } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { waitAndTell } from "./command-wait.ts";
import type { LoadedName } from "./loaded-documents.ts";
import { objectKindOf, parseObjectName } from "./object-names.ts";
import { nameInCluster } from "./object-rows.ts";
import { findObject, isNotFound, titleOf } from "./object-search.ts";
import { sendOrders } from "./sent-orders.ts";

export interface DeleteOptions {
  readonly yes?: true;
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

/** What a question names. A file may hold thousands, and a question that fills the screen is not read. */
const namedMax = 10;

const itsSecrets = " and its secrets";

type Victim =
  | { readonly kind: "object"; readonly title: string; readonly ref: ObjectRef }
  | { readonly kind: "environment"; readonly title: string; readonly region: string; readonly id: string };

type NamedVictim = Victim & { readonly detail?: string };

/** The object that is named. Rejects where there is none, or where it is not named well enough to go unasked. */
export async function namedVictim(
  admin: Admin,
  what: { readonly kind: string; readonly name: string | undefined },
  { yes }: Pick<DeleteOptions, "yes">,
): Promise<NamedVictim> {
  const { kind, name } = parseObjectName(what.kind, what.name);
  if (name === undefined) throw new CommandError("usage", `which ${kind}? krane delete ${kind} ID`);
  if (kind === "environment") {
    const title = `environment/${printable(name)}`;
    return { kind, title, region: admin.region, id: name, detail: itsSecrets };
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

/** In the opposite order, because what was applied last may lean on what came before. */
export function victimsOf(names: readonly LoadedName[]): readonly NamedVictim[] {
  return names
    .map(({ kind, id, region, title }): NamedVictim => {
      if (kind === "environment") return { kind, title, region, id, detail: itsSecrets };
      return {
        kind: "object",
        title,
        ref: create(ObjectRefSchema, { region, kind: objectKindOf(kind), id }),
      };
    })
    .reverse();
}

export async function deleteObjects(
  admin: Admin,
  io: Io,
  victims: readonly NamedVictim[],
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
  await sendOrders(admin, io, {
    verb: "delete",
    // None goes while something of it is wanted.
    waves: [
      victims.filter(({ kind }) => kind !== "environment"),
      victims.filter(({ kind }) => kind === "environment"),
    ],
    send: (victim) => orderDeletion(admin, victim, options, victims.length > 1),
    tell(victim, { kind, version }) {
      if (kind === "missing") {
        missing.push(victim.title);
        io.stderr.write(`${victim.title} is not there\n`);
        return false;
      }
      const said = victim.kind === "object" ? "is being deleted" : "is deleted";
      io.stdout.write(`${victim.title} ${said}${version === undefined ? "" : ` (version ${version})`}\n`);
      if (victim.kind === "object" && version !== undefined) awaited.push({ ref: victim.ref, version });
      return true;
    },
  });
  if (options.wait && awaited.length > 0)
    await waitAndTell(admin, io, { goal: "deleted", objects: awaited, timeoutMs: options.timeout });
  return missing.length > 0 ? exitCodes.notFound : exitCodes.ok;
}

function regionOf(victim: Victim): string {
  return victim.kind === "object" ? victim.ref.region : victim.region;
}

interface Deletion {
  readonly kind: "ordered" | "missing";
  readonly version?: bigint;
}

async function orderDeletion(
  admin: Admin,
  victim: Victim,
  options: DeleteOptions,
  isOneOfMany: boolean,
): Promise<Deletion> {
  try {
    return await deleteOne(admin, victim, options);
  } catch (error) {
    if (isNotFound(error)) return { kind: "missing" };
    if (!(error instanceof ConnectError)) throw error;
    const noRegion = await regionFlaw(admin, error, regionOf(victim));
    const flaw = noRegion ?? admin.explain(error);
    if (!isOneOfMany || noRegion !== undefined || flaw.code !== "failed") throw flaw;
    throw new CommandError(flaw.code, `${victim.title}: ${flaw.message}`);
  }
}

async function deleteOne(
  { client, signal }: Admin,
  victim: Victim,
  { ifVersion: expectedVersion }: DeleteOptions,
): Promise<Deletion> {
  if (victim.kind === "environment") {
    await client.deleteEnvironment({ region: victim.region, id: victim.id }, { signal });
    return { kind: "ordered" };
  }
  const expected = expectedVersion === undefined ? {} : { expectedVersion };
  const { version } = await client.deleteObject({ ref: victim.ref, ...expected }, { signal });
  return { kind: "ordered", version };
}

async function isAgreed(
  admin: Admin,
  io: Io,
  victims: readonly NamedVictim[],
  { yes }: DeleteOptions,
): Promise<boolean> {
  if (yes) return true;
  const answer = await io.ask?.(`Delete ${listOf(victims)}? [y/N] `, admin.signal);
  if (answer === undefined)
    throw new CommandError("usage", "nobody is there to be asked whether it is meant: say so with --yes");
  return /^y(es)?$/i.test(answer.trim());
}

/** Environments in front: their secrets cannot be brought back, so none may hide among those that are only counted. */
function listOf(victims: readonly NamedVictim[]): string {
  const rankOf = ({ kind }: Victim) => (kind === "environment" ? 0 : 1);
  const ordered = victims.toSorted((one, other) => rankOf(one) - rankOf(other));
  const regions = [...new Set(ordered.map(regionOf))];
  const isOneRegion = regions.length === 1;
  const named = ordered
    .slice(0, namedMax)
    .map((each) => `${each.title}${each.detail ?? ""}${isOneRegion ? "" : ` in ${regionOf(each)}`}`);
  const counted = ordered.slice(namedMax);
  const more = counted.length === 0 ? "" : ` and ${counted.length} more`;
  const where = isOneRegion ? regions : [...new Set(counted.map(regionOf))];
  return `${named.join(", ")}${more}${where.length === 0 ? "" : ` in ${where.join(", ")}`}`;
}
