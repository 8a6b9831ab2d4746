// Where tenants have their deployments.
import type { Choices } from "./choices.ts";

export const namespaces = ["acme", "bolt", "cask"] as const;
const slots = 5;
/** A place for a deployment: its name never changes, but its id does when it is created again. */
export function placeOf(namespace: string, slot: number) {
  const environment = `env_${namespace}${slot % 2}`;
  return {
    namespace,
    name: `${namespace}-web-${slot}`,
    environment,
    workspaceId: `ws_${namespace}`,
    projectId: `proj_${namespace}`,
  };
}

export type Place = ReturnType<typeof placeOf>;

export function anyPlace(choices: Choices): Place {
  const namespace = choices.one(namespaces);
  return placeOf(namespace, choices.index(slots));
}
