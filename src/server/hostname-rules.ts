// The checks that every store makes before it writes a route with hostnames, or changes the grants.
import type { ApplyRoute } from "../gen/ctrl/v1/route_pb.ts";
import { grantsCovering } from "../model/hostnames.ts";
import type { HostnameGrant, HostnameUse } from "./hostnames.ts";
import { StoreError } from "./store.ts";

/** A hostname that a route cannot have. */
export class HostnameRefusal extends StoreError {
  readonly hostname: string;
  /** Continues a sentence about it. */
  readonly problem: string;

  constructor(code: "hostname_taken" | "hostname_not_granted", hostname: string, problem: string) {
    super(code, `hostname ${hostname} ${problem}`);
    this.hostname = hostname;
    this.problem = problem;
  }
}

/** What decides whether a route may have its hostnames. */
export interface HostnameFacts {
  /** The workspaces of the grants that cover them, by the name of the grant. */
  readonly grants: ReadonlyMap<string, string>;
  /** The ids of the routes of the region that are wanted and have one, by hostname. */
  readonly holders: ReadonlyMap<string, string>;
}

export function checkHostnames(
  { routeId, workspaceId, hostnames }: Pick<ApplyRoute, "routeId" | "workspaceId" | "hostnames">,
  { grants, holders }: HostnameFacts,
): void {
  for (const hostname of hostnames) {
    const owner = ownerOf(hostname, grants);
    // Who else has it is not told: the caller may be somebody who tries names.
    if (owner !== workspaceId)
      throw new HostnameRefusal(
        "hostname_not_granted",
        hostname,
        `is not granted to workspace ${workspaceId}; grant it with: krane hostnames grant ${hostname} ${workspaceId}`,
      );
    const holder = holders.get(hostname);
    if (holder !== undefined && holder !== routeId)
      throw new HostnameRefusal(
        "hostname_taken",
        hostname,
        `is already that of route ${holder}; remove it there first`,
      );
  }
}

/** The workspace that may use the hostname; undefined if none may. */
function ownerOf(hostname: string, grants: ReadonlyMap<string, string>): string | undefined {
  const decisive = grantsCovering(hostname).find((name) => grants.has(name));
  return decisive === undefined ? undefined : grants.get(decisive);
}

/** Throws if the grants as they would be take a hostname from a route. `name`: the grant that changes. */
export function checkUses(
  uses: Iterable<HostnameUse>,
  grants: ReadonlyMap<string, string>,
  name: string,
  change: "grant" | "revoke",
): void {
  for (const { hostname, region, routeId, workspaceId } of uses) {
    if (ownerOf(hostname, grants) === workspaceId) continue;
    const user = `route ${routeId} of workspace ${workspaceId} in region ${region}`;
    if (change === "grant")
      throw new StoreError("hostname_taken", `${name} cannot be granted: ${user} uses ${hostname}`);
    throw new StoreError(
      "in_use",
      `${name} cannot be revoked: ${user} uses ${hostname}; remove it there first`,
    );
  }
}

export function grantedToAnother({ name, workspaceId }: HostnameGrant): StoreError {
  return new StoreError(
    "hostname_taken",
    `${name} is granted to workspace ${workspaceId}; revoke that first`,
  );
}
