// The sets of `krane apply --prune`.
import type { JoinSetRequest, ListSetRequest } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Refuse } from "../../model/field-problem.ts";
import { pageOf } from "../../services/page-token.ts";
import type { Store } from "../store.ts";
import { checked } from "./bad-request.ts";
import { parseHistoryRef, parseRegion, refOf } from "./object-refs.ts";

const membersMax = 1_000;

export async function joinSet(store: Store, request: JoinSetRequest) {
  const { region, set, members } = checked((refuse) => {
    const { length } = request.members;
    if (length === 0) refuse("members", "is required");
    if (length > membersMax) refuse("members", `has ${length} entries; at most ${membersMax} are allowed`);
    const refs = request.members.map((ref, index) => parseHistoryRef(`members[${index}]`, ref, refuse));
    const home = parseRegion(request.region, refuse);
    for (const [index, ref] of refs.entries())
      if (ref.region !== home) refuse(`members[${index}].region`, `must be ${home}, the region of the set`);
    return { region: home, set: parseSet(request.set, refuse), members: refs };
  });
  await store.sets.join(region, set, members);
  return {};
}

export async function listSet(store: Store, request: ListSetRequest) {
  const { region, set } = checked((refuse) => ({
    region: parseRegion(request.region, refuse),
    set: parseSet(request.set, refuse),
  }));
  const members = await store.sets.members(region, set);
  const places = members.map((member) => ({ controller: member.kind, key: member.id, member }));
  const { items, nextPageToken } = pageOf(places, request);
  return { members: items.map(({ member }) => refOf({ region, ...member })), nextPageToken };
}

function parseSet(set: string, refuse: Refuse): string {
  if (!/^[a-z0-9][a-z0-9._-]{0,62}$/.test(set))
    refuse(
      "set",
      "must have at most 63 lower-case letters, digits, '-', '_' and '.', and begin with a letter or a digit",
    );
  return set;
}
