// The actions of `krane dev`, one key each.
import { DevError } from "./dev-error.ts";
import type { ActionName, ActionRegion } from "./kind-actions.ts";
import { actionOf } from "./object-actions.ts";
import { loadWantedObjects } from "./wanted-objects.ts";

export type Action =
  | { readonly key: string; readonly title: string; readonly about: "object"; readonly name: ActionName }
  | {
      readonly key: string;
      readonly title: string;
      readonly about: "region";
      run(region: ActionRegion): Promise<string>;
    };

export const actions: readonly Action[] = [
  { key: "+", title: "scale up", about: "object", name: "scaleUp" },
  { key: "-", title: "scale down", about: "object", name: "scaleDown" },
  { key: "n", title: "new version", about: "object", name: "deployNext" },
  { key: "d", title: "delete", about: "object", name: "orderDeletion" },
  { key: "b", title: "bad spec", about: "object", name: "toggleBadSpec" },
  { key: "p", title: "kill a pod", about: "object", name: "killPod" },
  { key: "c", title: "crash the image", about: "object", name: "toggleCrash" },
  { key: "e", title: "edit behind krane's back", about: "object", name: "editBehindBack" },
  { key: "s", title: "cut the streams", about: "region", run: cutStreams },
  { key: "o", title: "dashboard", about: "region", run: openDashboard },
];

/** Runs the action of a key on the object with the given id. */
export async function runAction(
  action: Action,
  region: ActionRegion,
  id: string,
  signal: AbortSignal,
): Promise<string> {
  if (action.about === "region") return action.run(region);
  const { title, name } = action;
  const object = (await loadWantedObjects(region, signal)).find((one) => one.id === id);
  if (object === undefined) throw new DevError("nothing_to_do", `${title}: select an object first`);
  const { kind, isWanted, spec } = object;
  const run = actionOf(kind, name);
  if (run === undefined) throw new DevError("nothing_to_do", `${title}: not available for a ${kind}`);
  if (!isWanted) throw new DevError("nothing_to_do", `${title}: ${spec.k8sName} is being deleted`);
  return run(region, object, signal);
}

async function cutStreams({ faults }: ActionRegion): Promise<string> {
  faults.cutStreams();
  return "cut every stream of the control plane; krane reconnects";
}

async function openDashboard({ urls: { dashboard }, openUrl }: ActionRegion): Promise<string> {
  if (dashboard === undefined)
    throw new DevError("nothing_to_do", "this krane runs from source and has no dashboard; use bin/krane");
  if ((await openUrl?.(dashboard)) !== true)
    throw new DevError("nothing_to_do", `found no browser to start; open ${dashboard}`);
  return `opened ${dashboard}; sign in with the token above`;
}
