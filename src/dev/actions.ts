// What a person would try, one key each, and on which kinds of object it can be tried.
import type { KindName } from "../kinds/kinds.ts";
import type { Row } from "../server/store.ts";
import type { Deed, DeedRegion, Deeds } from "./deed.ts";
import { deploymentDeeds } from "./deployment-deeds.ts";
import { DevError } from "./dev-error.ts";
import { policyDeeds } from "./policy-deeds.ts";
import { sentinelDeeds } from "./sentinel-deeds.ts";

export type Action =
  | { readonly key: string; readonly title: string; readonly about: "object"; readonly deed: Deed }
  | {
      readonly key: string;
      readonly title: string;
      readonly about: "region";
      run(region: DeedRegion): Promise<string>;
    };

export const actions: readonly Action[] = [
  { key: "+", title: "scale up", about: "object", deed: "scaleUp" },
  { key: "-", title: "scale down", about: "object", deed: "scaleDown" },
  { key: "n", title: "new version", about: "object", deed: "deployNext" },
  { key: "d", title: "delete", about: "object", deed: "orderDeletion" },
  { key: "b", title: "bad spec", about: "object", deed: "toggleBadSpec" },
  { key: "p", title: "kill a pod", about: "object", deed: "killPod" },
  { key: "c", title: "crash the image", about: "object", deed: "toggleCrash" },
  { key: "e", title: "edit behind krane's back", about: "object", deed: "editBehindBack" },
  { key: "s", title: "cut the streams", about: "region", run: cutStreams },
];

/** Does what a key stands for to the object with the given id. */
export async function runAction(
  action: Action,
  region: DeedRegion,
  id: string,
  signal: AbortSignal,
): Promise<string> {
  if (action.about === "region") return action.run(region);
  const { admin, name } = region;
  const { title, deed } = action;
  const tried =
    (await attempt("deployment", deploymentDeeds, await admin.deployments(name))) ??
    (await attempt("sentinel", sentinelDeeds, await admin.sentinels(name))) ??
    (await attempt("policy", policyDeeds, await admin.policies(name)));
  if (tried === undefined) throw new DevError("nothing_to_do", `${title}: choose an object first`);
  return tried;

  /** Undefined where the object is not of this kind. */
  async function attempt<K extends KindName>(
    kind: K,
    deeds: Deeds<K>,
    rows: readonly Row<K>[],
  ): Promise<string | undefined> {
    const row = rows.find((one) => one.id === id);
    if (row === undefined) return undefined;
    const run = deeds[deed];
    if (run === undefined) throw new DevError("nothing_to_do", `${title}: not for a ${kind}`);
    if (row.desired !== "running")
      throw new DevError("nothing_to_do", `${title}: ${row.spec.k8sName} is being deleted`);
    return run(region, row, signal);
  }
}

async function cutStreams({ faults }: DeedRegion): Promise<string> {
  faults.cutStreams();
  return "cut every stream of the control plane; krane comes back by itself";
}
