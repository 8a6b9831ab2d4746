// The desired state of the control plane, through its admin API.
import type { ObjectView } from "../gen/krane/admin/v1/admin_pb.ts";
import { ObjectView_Desired as Desired } from "../gen/krane/admin/v1/admin_pb.ts";
import type { ApplyInit, ApplyMessage, KindName } from "../kinds/kinds.ts";
import type { Admin } from "../server/admin-service/admin-client.ts";

export interface WantedObject<K extends KindName = KindName> {
  readonly kind: K;
  readonly id: string;
  readonly spec: ApplyMessage<K>;
  /** False once its deletion was ordered. */
  readonly isWanted: boolean;
  readonly view: ObjectView;
}

export interface WantedRegion {
  readonly name: string;
  readonly admin: Admin;
}

/** All of them, including those whose deletion is done. */
export async function loadWantedObjects(
  { admin, name: region }: WantedRegion,
  signal: AbortSignal,
): Promise<readonly WantedObject[]> {
  const objects: WantedObject[] = [];
  let pageToken = "";
  do {
    const request = { region, includeDeleted: true, pageToken };
    const page = await admin.listObjects(request, { signal });
    for (const view of page.objects) {
      const { case: kind, value: spec } = view.spec?.spec ?? {};
      if (kind === undefined || spec === undefined) continue;
      objects.push({ kind, spec, id: view.ref?.id ?? "", isWanted: view.desired === Desired.RUNNING, view });
    }
    pageToken = page.nextPageToken;
  } while (pageToken !== "");
  return objects;
}

/** Applies an object; returns its version. */
export async function applyWanted<K extends KindName>(
  { admin, name: region }: WantedRegion,
  kind: K,
  value: ApplyInit<K>,
  deploymentId = "",
): Promise<bigint> {
  // The kind determines the message type.
  const spec = { spec: { case: kind, value } } as Parameters<typeof admin.applyObject>[0]["spec"];
  return (await admin.applyObject({ region, spec, deploymentId })).version;
}
