// Records of actions that are not looked at, for tests of what acts.
import { ActionRecords } from "../../src/engine/action-records.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createQuietLog } from "./quiet-log.ts";

export function createActionRecords(api: Pick<KubeApi, "get">): ActionRecords {
  const events = { record: () => undefined };
  return new ActionRecords({ controller: "sentinels", api, log: createQuietLog(), events });
}
