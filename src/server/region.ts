// Determines the region of a call. Agents of different versions send it in different places:
// a string in the request, a header, or a RegionKey. Any of them is enough, but all that are
// set have to agree: picking one of two would give a cluster the workloads of another.
import { Code, ConnectError } from "@connectrpc/connect";
import type { RegionKey } from "../gen/ctrl/v1/region_pb.ts";

export interface RegionSources {
  /** `string region = 1` of the Watch requests. */
  readonly field?: string;
  readonly header: string | null;
  readonly key: RegionKey | undefined;
}

/** The region in its joined form; throws `invalid_argument` when it is missing or ambiguous. */
export function resolveRegion({ field, header, key }: RegionSources): string {
  if (field && header && field !== header) throw disagreement(field, header);
  const text = field || header || "";
  const joined = key === undefined || key.name === "" ? "" : joinedForm(key);
  if (text === "" && joined === "") {
    throw new ConnectError("the region is missing: set X-Krane-Region", Code.InvalidArgument);
  }
  // An agent with a separate platform setting may send the bare name as its region.
  const agree = text === "" || joined === "" || text === joined || text === key?.name;
  if (!agree) throw disagreement(text, joined);
  return text || joined;
}

function joinedForm({ name, platform }: RegionKey): string {
  return platform === "" ? name : `${name}.${platform}`;
}

function disagreement(one: string, other: string): ConnectError {
  return new ConnectError(`the call names two different regions, ${one} and ${other}`, Code.InvalidArgument);
}
