// What every store asks of a change of an environment, and of its end.
import type { Kind } from "./kinds.ts";
import { type EnvironmentContent, type Row, type StoredEnvironment, StoreError } from "./store.ts";

export function isSameEnvironment(environment: StoredEnvironment, wanted: EnvironmentContent): boolean {
  const { workspaceId, projectId, secrets } = environment;
  if (workspaceId !== wanted.workspaceId || projectId !== wanted.projectId) return false;
  if (secrets.size !== wanted.secrets.size) return false;
  return [...wanted.secrets].every(([name, value]) => secrets.get(name) === value);
}

/** The kinds of object that belong to an environment. */
export const tenantKinds = ["deployment", "sentinel"] as const satisfies readonly Kind[];

/** Throws `in_use` when one of the rows is wanted and of the environment, or cannot be read, and may be. */
export function assertUnused(id: string, rows: readonly Row<(typeof tenantKinds)[number]>[]): void {
  const user = rows.find(
    ({ spec, desired }) =>
      desired !== "stopped" &&
      (spec.environmentId === id || (desired === "unreadable" && spec.environmentId === "")),
  );
  if (user === undefined) return;
  const kind = "deploymentId" in user.spec ? "deployment" : "sentinel";
  const whose =
    user.desired === "unreadable"
      ? `was written by a newer server and may be of environment ${id}`
      : `of environment ${id} is wanted`;
  throw new StoreError("in_use", `${kind} ${user.id} ${whose}: delete it first`);
}
