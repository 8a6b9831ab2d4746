// Records of what krane did, for tests of what acts: the log lines go nowhere, the Events to a list if one is given.
import { ActionRecords } from "../../src/engine/action-records.ts";
import type { ObjectEvent } from "../../src/engine/object-events.ts";
import type { KubeApi } from "../../src/kube/api.ts";
import { createQuietLog } from "./quiet-log.ts";

export function createActionRecords(api: Pick<KubeApi, "get">, recorded: ObjectEvent[] = []): ActionRecords {
  const events = { record: (event: ObjectEvent) => void recorded.push(event) };
  return new ActionRecords({
    controller: "sentinels",
    api,
    log: createQuietLog(),
    events,
    repairs: { add: () => undefined },
  });
}
