// Finds the view for an object returned by the control plane.
import type { ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import { type KindView, noPods } from "./kind-view.ts";
import { kindOfObject } from "./kinds.ts";

/** For objects of a kind that only a newer control plane knows. */
const unknownView: KindView = {
  columns: ["id", "name", "phase", "version", "reason"],
  podsOf: () => noPods,
  listedPods: () => [],
  reportedAtMs: () => undefined,
  wantedText: () => "",
  liveText: () => "",
  differencesOf: () => [],
  stillExists: () => false,
  isRollingOut: () => false,
};

export function viewOf({ ref }: ObjectView): KindView {
  return kindOfObject(ref?.kind)?.view ?? unknownView;
}
