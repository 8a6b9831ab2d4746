// The grants of hostnames in memory, and the routes that use them. Nothing awaits between reading and writing.
import type { ApplyRoute } from "../gen/ctrl/v1/route_pb.ts";
import { covers } from "../model/hostnames.ts";
import { checkHostnames, checkUses, grantedToAnother } from "./hostname-rules.ts";
import type { HostnameGrant, HostnameStore, HostnameUse } from "./hostnames.ts";
import type { Region } from "./memory-region.ts";

export class MemoryHostnames implements HostnameStore {
  private readonly grants = new Map<string, HostnameGrant>();
  private readonly regions: ReadonlyMap<string, Region>;

  constructor(regions: ReadonlyMap<string, Region>) {
    this.regions = regions;
  }

  async grant(grant: HostnameGrant): Promise<HostnameGrant> {
    const before = this.grants.get(grant.name);
    if (before !== undefined && before.workspaceId !== grant.workspaceId) throw grantedToAnother(before);
    if (before !== undefined) return before;
    checkUses(this.uses(), this.owners().set(grant.name, grant.workspaceId), grant.name, "grant");
    this.grants.set(grant.name, grant);
    return grant;
  }

  async revoke(name: string): Promise<boolean> {
    if (!this.grants.has(name)) return false;
    const left = this.owners();
    left.delete(name);
    checkUses(this.uses(), left, name, "revoke");
    return this.grants.delete(name);
  }

  async list(afterName: string, limit: number, workspaceId?: string): Promise<readonly HostnameGrant[]> {
    return [...this.grants.values()]
      .filter((grant) => grant.name > afterName && (workspaceId ?? grant.workspaceId) === grant.workspaceId)
      .sort((a, b) => (a.name < b.name ? -1 : 1))
      .slice(0, limit);
  }

  /** Throws if a route that is to be written in the region cannot have its hostnames. */
  check({ tables }: Region, route: ApplyRoute): void {
    const { hostnames } = route;
    const covering = [...this.owners()].filter(([name]) => hostnames.some((each) => covers(name, each)));
    const holders = tables.route
      .current()
      .flatMap(({ id, spec, desired }) =>
        desired === "stopped" ? [] : spec.hostnames.map((hostname) => [hostname, id] as const),
      );
    checkHostnames(route, { grants: new Map(covering), holders: new Map(holders) });
  }

  private owners(): Map<string, string> {
    return new Map([...this.grants].map(([name, { workspaceId }]) => [name, workspaceId]));
  }

  private *uses(): IterableIterator<HostnameUse> {
    for (const [region, { tables, reports }] of this.regions) {
      for (const { id: routeId, spec, desired } of tables.route.current()) {
        const report = reports.get("route", routeId);
        const wanted = desired === "stopped" ? [] : spec.hostnames;
        const reported = report?.exists === true ? report.gateway.hostnames : [];
        for (const hostname of new Set([...wanted, ...reported]))
          yield { hostname, region, routeId, workspaceId: spec.workspaceId };
      }
    }
  }
}
