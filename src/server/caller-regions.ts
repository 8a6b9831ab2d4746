// Which regions a caller may speak for, carried with the call from where its token was
// looked at to where the region is known. Nothing carried means all of them.
import { Code, ConnectError, type ContextValues, createContextKey } from "@connectrpc/connect";

const allowedRegions = createContextKey<ReadonlySet<string> | undefined>(undefined, {
  description: "the regions that the caller may speak for",
});

export function allowRegions(values: ContextValues, regions: ReadonlySet<string>): void {
  values.set(allowedRegions, regions);
}

/** `permission_denied` for every region that is not the caller's, whether it exists or not. */
export function assertMaySpeakFor(region: string, values: ContextValues): void {
  const regions = values.get(allowedRegions);
  if (regions !== undefined && !regions.has(region)) {
    throw new ConnectError("this token is for another region", Code.PermissionDenied);
  }
}
