// What people are shown of a policy. It has no pods, and nothing is reported about it.
import { type KindView, noPods } from "../kind-view.ts";

export const policyView: KindView = {
  columns: ["id", "name", "phase", "deployment", "version", "reason"],
  podsOf: () => noPods,
  listedPods: () => [],
  reportedAtMs: () => undefined,
  wantedText: ({ spec }) => (spec?.spec.case === "policy" ? "a network policy" : ""),
  liveText: () => "",
  differencesOf: () => [],
  stillExists: () => false,
  isRollingOut: () => false,
};
