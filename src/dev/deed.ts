// What can be done to an object. Each kind has its own way of doing it, through the door that is meant for
// it: the control plane's admin API for wishes, the Kubernetes API for what happens behind krane's back.
// Each answers with a sentence about what it did.
import type { KindName } from "../kinds/kinds.ts";
import type { Row } from "../server/store.ts";
import type { DevRegion } from "./dev-region.ts";

export type DeedRegion = Pick<DevRegion, "name" | "clock" | "admin" | "faults"> & {
  readonly cluster: Pick<DevRegion["cluster"], "api" | "behaviours">;
};

export type Deed =
  | "scaleUp"
  | "scaleDown"
  | "deployNext"
  | "orderDeletion"
  | "toggleBadSpec"
  | "killPod"
  | "toggleCrash"
  | "editBehindBack";

/** What is left out makes no sense for that kind. */
export type Deeds<K extends KindName> = Readonly<
  Partial<Record<Deed, (region: DeedRegion, row: Row<K>, signal: AbortSignal) => Promise<string>>>
>;
