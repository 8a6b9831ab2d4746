// The actions on an object: desired changes go through the control plane's admin API, faults through the Kubernetes
// API, behind krane's back. Each returns a sentence about what it did.
import type { KindName } from "../kinds/kinds.ts";
import type { DevRegion } from "./dev-region.ts";
import type { WantedObject } from "./wanted-objects.ts";

export type ActionRegion = Pick<DevRegion, "name" | "clock" | "admin" | "faults" | "urls" | "openUrl"> & {
  readonly cluster: Pick<DevRegion["cluster"], "api" | "behaviours">;
};

export type ActionName =
  | "scaleUp"
  | "scaleDown"
  | "deployNext"
  | "orderDeletion"
  | "toggleBadSpec"
  | "killPod"
  | "toggleCrash"
  | "editBehindBack";

export type RunAction<K extends KindName> = (
  region: ActionRegion,
  object: WantedObject<K>,
  signal: AbortSignal,
) => Promise<string>;

/** Actions that make no sense for a kind are left out. */
export type KindActions<K extends KindName> = Readonly<Partial<Record<ActionName, RunAction<K>>>>;
