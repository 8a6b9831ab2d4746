// The regions that a caller may act for, attached to the call when its token is checked.
// No value means all regions.
import { Code, ConnectError, type ContextValues, createContextKey } from "@connectrpc/connect";

const allowedRegions = createContextKey<ReadonlySet<string> | undefined>(undefined, {
  description: "the regions that the caller may act for",
});

export function allowRegions(values: ContextValues, regions: ReadonlySet<string>): void {
  values.set(allowedRegions, regions);
}

/** Throws `permission_denied` for every region that is not the caller's, whether it exists or not. */
export function assertMaySpeakFor(region: string, values: ContextValues): void {
  const regions = values.get(allowedRegions);
  if (regions !== undefined && !regions.has(region)) {
    throw new ConnectError("this token is for another region", Code.PermissionDenied);
  }
}
