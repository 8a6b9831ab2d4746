// krane delete: deletes objects and environments, after a confirmation.
import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { ObjectKind, type ObjectRef, ObjectRefSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import { type Admin, flawOfCall } from "../admin/admin-access.ts";
import { findApp } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { exitCodes } from "../exit-codes.ts";
import type { Io } from "../io.ts";
import { waitAndTell } from "./command-wait.ts";
import type { LoadedName } from "./loaded-documents.ts";
import { resolveName } from "./named-object.ts";
import { type NamedKind, objectKindOf, parseObjectName } from "./object-names.ts";
import { nameInCluster } from "./object-rows.ts";
import { findObject, isNotFound, titleOf } from "./object-search.ts";
import { sendOrders } from "./sent-orders.ts";

export interface DeleteOptions {
  readonly yes?: true;
  readonly ifVersion?: bigint;
  readonly wait?: true;
  readonly timeout: number;
}

/** The most names in a confirmation prompt: a file may hold thousands, and nobody reads a full screen of them. */
const namedMax = 10;

const itsSecrets = " and its secrets";
const itsReleases = " and its releases";

type Target =
  | { readonly kind: "object"; readonly title: string; readonly ref: ObjectRef }
  | { readonly kind: "app"; readonly title: string; readonly region: string; readonly id: string }
  | { readonly kind: "environment"; readonly title: string; readonly region: string; readonly id: string };

type NamedTarget = Target & { readonly detail?: string };

/** The object with that name. Rejects if it does not exist, or if the name is too loose for --yes. */
export async function namedTarget(
  admin: Admin,
  what: { readonly kind: string; readonly name: string | undefined },
  { yes }: Pick<DeleteOptions, "yes">,
): Promise<NamedTarget> {
  // With --yes nobody sees what a name alone has found.
  const { kind, name } = yes
    ? parseObjectName(what.kind, what.name)
    : await resolveName(admin, { first: what.kind, second: what.name });
  if (name === undefined) throw new CommandError("usage", `which ${kind}? krane delete ${kind} ID`);
  if (kind === "environment") {
    const title = `environment/${printable(name)}`;
    return { kind, title, region: admin.region, id: name, detail: itsSecrets };
  }
  if (kind === "app") {
    const { id, isExact } = await findApp(admin, name);
    if (yes && !isExact) throw looseName(kind, name, id);
    return { kind, title: `app/${printable(id)}`, region: admin.region, id, detail: itsReleases };
  }
  const { object } = await findObject(admin, name, objectKindOf(kind));
  if (object.ref === undefined)
    throw new CommandError("failed", "the control plane's response has no object id");
  // A mistyped id may match the name of another object, and with --yes nobody sees which one.
  if (yes && object.ref.id !== name && `${object.namespace}/${object.name}` !== name)
    throw looseName(kind, name, object.ref.id);
  const detail = ` (${printable(nameInCluster(object))})`;
  return { kind: "object", title: titleOf(object.ref), ref: object.ref, detail };
}

function looseName(kind: NamedKind, name: string, id: string): CommandError {
  return new CommandError(
    "usage",
    `--yes needs an id or NAMESPACE/NAME, but ${printable(name)} is only a name; to delete it: ` +
      `krane delete ${kind} ${printable(id)} --yes`,
  );
}

/** In reverse order, because later documents may depend on earlier ones. */
export function targetsOf(names: readonly LoadedName[]): readonly NamedTarget[] {
  return names
    .map(({ kind, id, region, title }): NamedTarget => {
      if (kind === "environment") return { kind, title, region, id, detail: itsSecrets };
      if (kind === "app") return { kind, title, region, id, detail: itsReleases };
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
  targets: readonly NamedTarget[],
  options: DeleteOptions,
): Promise<number> {
  if (options.ifVersion !== undefined && targets.length > 1)
    throw new CommandError("usage", `--if-version needs exactly one object; there are ${targets.length}`);
  if (options.ifVersion !== undefined && targets[0]?.kind === "environment")
    throw new CommandError("usage", "--if-version does not work with environments");
  if (!(await isAgreed(admin, io, targets, options))) {
    io.stderr.write("nothing was deleted\n");
    return exitCodes.failure;
  }
  const awaited: { ref: ObjectRef; version: bigint }[] = [];
  const missing: string[] = [];
  await sendOrders(admin, io, {
    verb: "delete",
    // An environment can be deleted only after everything in it.
    waves: [
      targets.filter(({ kind }) => kind !== "environment"),
      targets.filter(({ kind }) => kind === "environment"),
    ],
    send: (target) => orderDeletion(admin, target, options, targets.length > 1),
    tell(target, { kind, version, deployments = [] }) {
      if (kind === "missing") {
        missing.push(target.title);
        io.stderr.write(`${target.title} does not exist\n`);
        return false;
      }
      if (kind === "gone") {
        io.stdout.write(`${target.title} is already deleted\n`);
        return false;
      }
      const said = target.kind === "environment" ? "is deleted" : "is being deleted";
      io.stdout.write(`${target.title} ${said}${version === undefined ? "" : ` (version ${version})`}\n`);
      if (target.kind === "object" && version !== undefined) awaited.push({ ref: target.ref, version });
      awaited.push(...deployments);
      return true;
    },
  });
  if (options.wait && awaited.length > 0)
    await waitAndTell(admin, io, { goal: "deleted", objects: awaited, timeoutMs: options.timeout });
  return missing.length > 0 ? exitCodes.notFound : exitCodes.ok;
}

function regionOf(target: Target): string {
  return target.kind === "object" ? target.ref.region : target.region;
}

interface Deletion {
  /** `gone`: deleted before, and nothing of it is left in the cluster. */
  readonly kind: "ordered" | "missing" | "gone";
  readonly version?: bigint;
  /** The releases of an app that still ran. */
  readonly deployments?: readonly { readonly ref: ObjectRef; readonly version: bigint }[];
}

async function orderDeletion(
  admin: Admin,
  target: Target,
  options: DeleteOptions,
  isOneOfMany: boolean,
): Promise<Deletion> {
  try {
    return await deleteOne(admin, target, options);
  } catch (error) {
    if (isNotFound(error)) return { kind: "missing" };
    if (!(error instanceof ConnectError)) throw error;
    const noRegion = await flawOfCall(admin, error, regionOf(target));
    const flaw = noRegion ?? admin.explain(error);
    if (!isOneOfMany || noRegion !== undefined || flaw.code !== "failed") throw flaw;
    throw new CommandError(flaw.code, `${target.title}: ${flaw.message}`);
  }
}

async function deleteOne(
  { client, signal }: Admin,
  target: Target,
  { ifVersion: expectedVersion }: DeleteOptions,
): Promise<Deletion> {
  if (target.kind === "environment") {
    await client.deleteEnvironment({ region: target.region, id: target.id }, { signal });
    return { kind: "ordered" };
  }
  const expected = expectedVersion === undefined ? {} : { expectedVersion };
  if (target.kind === "app") {
    const { region, id } = target;
    const { deployments } = await client.deleteApp({ region, id, ...expected }, { signal });
    const kind = ObjectKind.DEPLOYMENT;
    const refs = deployments.map((each) => ({
      ref: create(ObjectRefSchema, { region, kind, id: each.id }),
      version: each.version,
    }));
    return { kind: "ordered", deployments: refs };
  }
  const { version, gone } = await client.deleteObject({ ref: target.ref, ...expected }, { signal });
  return gone ? { kind: "gone" } : { kind: "ordered", version };
}

async function isAgreed(
  admin: Admin,
  io: Io,
  targets: readonly NamedTarget[],
  { yes }: DeleteOptions,
): Promise<boolean> {
  if (yes) return true;
  const answer = await io.ask?.(`Delete ${listOf(targets)}? [y/N] `, admin.signal);
  if (answer === undefined) throw new CommandError("usage", "no terminal to confirm on; pass --yes");
  return /^y(es)?$/i.test(answer.trim());
}

/** Environments come first: their secrets cannot be recovered, so all must be named before the list is cut. */
function listOf(targets: readonly NamedTarget[]): string {
  const rankOf = ({ kind }: Target) => (kind === "environment" ? 0 : 1);
  const ordered = targets.toSorted((one, other) => rankOf(one) - rankOf(other));
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
