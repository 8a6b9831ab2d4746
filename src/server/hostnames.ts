// Hostnames: which workspace may use one, and which routes do. Grants are of the whole store, so that no two workspaces can have
// the same name in different regions. A workspace may use a name in each region once.
//
// - A route is written only with hostnames that its workspace may use and that no other route of its region has, checked
//   in the transaction that writes it.
// - A change of the grants takes no hostname from a route that has it, or still had it in the cluster at the agent's last
//   report: its requests would go to somebody else.

export interface HostnameGrant {
  /** A name, or a wildcard for all names below one; see model/hostnames.ts. */
  readonly name: string;
  readonly workspaceId: string;
  readonly by: string;
  readonly atMs: number;
}

export interface HostnameStore {
  /** Resolves with the grant; with the earlier one if the workspace had it. Rejects with `hostname_taken`. */
  grant(grant: HostnameGrant): Promise<HostnameGrant>;
  /** False if there is no such grant. Rejects with `in_use` while a route needs it. */
  revoke(name: string): Promise<boolean>;
  /** Ordered by name, starting after the given one. With a workspace, only its own. */
  list(afterName: string, limit: number, workspaceId?: string): Promise<readonly HostnameGrant[]>;
}

/** A route that has a hostname, as it is wanted or as its agent reported it. */
export interface HostnameUse {
  readonly hostname: string;
  readonly region: string;
  readonly routeId: string;
  readonly workspaceId: string;
}
