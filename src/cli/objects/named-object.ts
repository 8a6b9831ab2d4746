// Finds out which object a user named: `app web`, `app/web`, or `web` alone, where only one object has that id or name.
import { Code, ConnectError } from "@connectrpc/connect";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { idOf, listApps, nameOf } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { listEnvironments } from "./environment-search.ts";
import { isKind, kindsText, type NamedKind, namedKindOf, parseObjectName } from "./object-names.ts";
import { nameInCluster } from "./object-rows.ts";
import { listObjects } from "./object-search.ts";

export interface ObjectWords {
  readonly first: string;
  readonly second: string | undefined;
}

export interface NamedObject {
  readonly kind: NamedKind;
  /** Undefined if only a kind was named. */
  readonly name: string | undefined;
}

const suggestedMax = 5;

/** A name that is also the name of a kind means the kind. */
export async function resolveName(
  admin: Admin,
  { first, second }: ObjectWords,
  allowed?: readonly NamedKind[],
): Promise<NamedObject> {
  const [word = ""] = first.split("/", 1);
  if (second !== undefined || isKind(word)) return parseObjectName(first, second, allowed);
  if (first === "") throw new CommandError("usage", "the name is empty");
  const named = await objectsNamed(admin, first);
  const matching = named.filter(({ kind }) => allowed === undefined || allowed.includes(kind));
  const [only, ...others] = matching;
  if (only === undefined) throw unresolved(first, named, admin.region, allowed);
  if (others.length === 0) return { kind: only.kind, name: only.id };
  const list = matching.slice(0, suggestedMax).map(titleOfMatch);
  throw new CommandError("usage", `${printable(first)} is ambiguous; use one of ${list.join(", ")}`);
}

function unresolved(
  name: string,
  [other]: readonly Match[],
  region: string,
  allowed: readonly NamedKind[] | undefined,
): CommandError {
  const kinds = kindsText(name, allowed);
  if (other !== undefined)
    return new CommandError(
      "usage",
      `${titleOfMatch(other)} has a kind that this command does not take; ${kinds}`,
    );
  const text = `unknown object or kind "${printable(name)}" in region ${region}; ${kinds}`;
  return new CommandError("not_found", text);
}

function titleOfMatch({ kind, id }: Match): string {
  return `${kind}/${printable(id)}`;
}

interface Match {
  readonly kind: NamedKind;
  readonly id: string;
}

/**
 * Those with that id; if there are none, those that are called `namespace/name` or `name`. An app comes before its route, which
 * has the same name.
 */
async function objectsNamed(admin: Admin, wanted: string): Promise<readonly Match[]> {
  const [objects, apps, environments] = await Promise.all([
    listObjects(admin),
    unlessOlder(() => listApps(admin, admin.region)),
    unlessOlder(() => listEnvironments(admin, admin.region)),
  ]);
  const all = [
    ...apps.map((app) => ({ kind: "app" as const, id: idOf(app), name: nameOf(app) })),
    ...objects.flatMap((object) => {
      const kind = object.ref && namedKindOf(object.ref.kind);
      const { ref, appId } = object;
      return kind === undefined ? [] : [{ kind, id: ref?.id ?? "", name: nameInCluster(object), appId }];
    }),
    ...environments.map(({ id }) => ({ kind: "environment" as const, id, name: id })),
  ];
  const byId = all.filter(({ id }) => id === wanted);
  if (byId.length > 0) return byId;
  const called = all.filter(({ name }) => name === wanted || name.endsWith(`/${wanted}`));
  const namedApps = called.flatMap(({ kind, id }) => (kind === "app" ? [id] : []));
  return called.filter((each) => !("appId" in each && namedApps.includes(each.appId)));
}

/** An older control plane does not have every kind. */
async function unlessOlder<T>(list: () => Promise<readonly T[]>): Promise<readonly T[]> {
  try {
    return await list();
  } catch (error) {
    if (error instanceof ConnectError && error.code === Code.Unimplemented) return [];
    throw error;
  }
}
