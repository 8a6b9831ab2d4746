// The checks that every store makes before it changes or deletes an environment.

import { allKinds, type KindName } from "../kinds/kinds.ts";
import { quote } from "../model/field-problem.ts";
import {
  type Author,
  type EnvironmentContent,
  type HistoryEntry,
  type Row,
  type StoredEnvironment,
  StoreError,
} from "./store.ts";

export function isSameEnvironment(environment: StoredEnvironment, wanted: EnvironmentContent): boolean {
  const { workspaceId, projectId, secrets } = environment;
  if (workspaceId !== wanted.workspaceId || projectId !== wanted.projectId) return false;
  if (secrets.size !== wanted.secrets.size) return false;
  return [...wanted.secrets].every(([name, value]) => secrets.get(name) === value);
}

/** A change as history entries: the owner, and each secret by name only (K7). */
export function environmentNews(
  before: StoredEnvironment | undefined,
  after: StoredEnvironment,
  author: Author,
): HistoryEntry[] {
  const { id, version, secrets, workspaceId, projectId } = after;
  const entry = (event: HistoryEntry["event"], outcome: string) =>
    ({ ...author, kind: "environment", id, version, event, outcome }) as const;
  const old = before?.secrets ?? new Map<string, string>();
  const isOwned = before?.workspaceId === workspaceId && before.projectId === projectId;
  const set = [...secrets].filter(([name, value]) => old.get(name) !== value);
  const unset = [...old.keys()].filter((name) => !secrets.has(name));
  return [
    ...(isOwned ? [] : [entry("set", "")]),
    ...set.map(([name]) => entry("secret_set", name)),
    ...unset.map((name) => entry("secret_unset", name)),
  ];
}

export function removalOf({ id, version }: Pick<StoredEnvironment, "id" | "version">, author: Author) {
  return { ...author, kind: "environment", id, version, event: "removed", outcome: "" } as const;
}

/**
 * Returns the fields whose value would change but must stay while an object of the environment is in use, in words;
 * undefined if the owner stays the same. An environment without an owner may get any owner. Throws `in_use` if a
 * secret would change hands too: the new owner could run pods that read it.
 */
export function keptOwner(
  before: StoredEnvironment | undefined,
  wanted: EnvironmentContent,
): string | undefined {
  if (before === undefined) return undefined;
  const { id, workspaceId, projectId, secrets } = before;
  const changed = [
    ["workspace_id", workspaceId, wanted.workspaceId],
    ["project_id", projectId, wanted.projectId],
  ].filter(([, old, next]) => old !== "" && old !== next);
  if (changed.length === 0) return undefined;
  const kept = changed.map(([field, old = ""]) => `${field} must stay ${quote(old)}`).join(", ");
  const taken = [...wanted.secrets].find(([name, value]) => secrets.get(name) === value);
  if (taken === undefined) return kept;
  throw new StoreError("in_use", `${kept}: environment ${id} has the secret ${taken[0]}; unset it first`);
}

/** The kinds of object that belong to an environment: their specs name one. */
export const tenantKinds: readonly KindName[] = allKinds
  .filter(({ applySchema }) => "environmentId" in applySchema.field)
  .map(({ name }) => name);

/**
 * Throws `in_use` when one of the rows is desired and in the environment, or is unreadable and may belong to it.
 * `refused` names the part of the call that is not possible; undefined means the whole call.
 */
export function assertUnused(
  id: string,
  kind: KindName,
  rows: readonly Row<KindName>[],
  refused?: string,
): void {
  const user = rows.find(({ spec, desired }) => {
    if (desired === "stopped" || !("environmentId" in spec)) return false;
    return spec.environmentId === id || (desired === "unreadable" && spec.environmentId === "");
  });
  if (user === undefined) return;
  const whose =
    user.desired === "unreadable"
      ? `was written by a newer server and may belong to environment ${id}`
      : `still uses environment ${id}`;
  const what = refused === undefined ? "" : `${refused}: `;
  throw new StoreError("in_use", `${what}${kind} ${user.id} ${whose}; delete it first`);
}
