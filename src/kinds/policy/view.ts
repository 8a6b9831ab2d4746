// How the CLI shows a policy. It has no pods and no status reports.
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
