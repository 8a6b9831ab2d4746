// What can be done to an object: through the control plane's admin API for wishes, through the Kubernetes API for what
// happens behind krane's back. Each answers with a sentence about what it did.
import type { KindName } from "../kinds/kinds.ts";
import type { DevRegion } from "./dev-region.ts";
import type { WantedObject } from "./wanted-objects.ts";

export type ActionRegion = Pick<DevRegion, "name" | "clock" | "admin" | "faults"> & {
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

/** What is left out makes no sense for that kind. */
export type KindActions<K extends KindName> = Readonly<Partial<Record<ActionName, RunAction<K>>>>;
