// Which region a call is about. Agents of different age say it in different places: a
// string in the request, a header, or a RegionKey. Any of them will do, but those that
// are there have to agree: taking one of two would hand a cluster the workloads of
// another.
import { Code, ConnectError } from "@connectrpc/connect";
import type { RegionKey } from "../gen/ctrl/v1/region_pb.ts";

export interface RegionSources {
  /** `string region = 1` of the Watch requests. */
  readonly field?: string;
  readonly header: string | null;
  readonly key: RegionKey | undefined;
}

/** The region in its joined form; `invalid_argument` when there is none, or more than one. */
export function resolveRegion({ field, header, key }: RegionSources): string {
  if (field && header && field !== header) throw disagreement(field, header);
  const text = field || header || "";
  const joined = key === undefined || key.name === "" ? "" : joinedForm(key);
  if (text === "" && joined === "") {
    throw new ConnectError("the region is missing: set X-Krane-Region", Code.InvalidArgument);
  }
  // An agent whose platform is set on its own may call its region by the name alone.
  const agree = text === "" || joined === "" || text === joined || text === key?.name;
  if (!agree) throw disagreement(text, joined);
  return text || joined;
}

function joinedForm({ name, platform }: RegionKey): string {
  return platform === "" ? name : `${name}.${platform}`;
}

function disagreement(one: string, other: string): ConnectError {
  return new ConnectError(`the call names two regions, ${one} and ${other}`, Code.InvalidArgument);
}
