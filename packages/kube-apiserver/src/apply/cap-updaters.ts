// At most ten updaters are remembered one by one; the oldest beyond that share an entry
// per API version, or objects that many controllers touch would grow without end.
import { compareText, type Owners, type Ownership, ownerId } from "./managed-fields.ts";

const updatersMax = 10;

export function capUpdaters(owners: Owners): Owners {
  const updaters = [...owners]
    .filter(([, owner]) => owner.operation === "Update")
    .sort(
      ([leftId, left], [rightId, right]) =>
        compareText(left.time ?? "", right.time ?? "") || compareText(leftId, rightId),
    );
  if (updaters.length <= updatersMax) return owners;
  const capped = new Map(owners);
  const firstOfVersion = new Map<string, string>();
  let count = updaters.length;
  for (const [id, owner] of updaters) {
    if (count <= updatersMax) break;
    const first = firstOfVersion.get(owner.apiVersion);
    if (first === undefined) {
      firstOfVersion.set(owner.apiVersion, id);
      continue;
    }
    mergeIntoBucket(capped, first, id, owner);
    count--;
  }
  return capped;
}

function mergeIntoBucket(
  owners: Map<string, Ownership>,
  firstId: string,
  id: string,
  owner: Ownership,
): void {
  const as = {
    manager: "ancient-changes",
    operation: "Update",
    apiVersion: owner.apiVersion,
    subresource: "",
  } as const;
  const bucketId = ownerId(as);
  const bucket = owners.get(bucketId) ?? owners.get(firstId);
  owners.delete(firstId);
  owners.delete(id);
  const fields = bucket === undefined ? owner.fields : owner.fields.union(bucket.fields);
  owners.set(bucketId, { ...as, time: owner.time, fields });
}
