// What the groups of a person may do: each role of `server.oidc.roles` gives one group the right to read, to write as well, or to
// read logs, in all regions or in those that it names. Pure.
import { type AdminRole, mayReadLogs, mayWrite, parseRole, rolePattern } from "../config/token-lines.ts";

export interface GroupRole {
  readonly group: string;
  readonly role: AdminRole;
  readonly regions: RegionSet;
}

export type RegionSet = "all" | ReadonlySet<string>;

/** The regions in which somebody may read, and in which they may also write, or read the logs of pods. */
export interface Access {
  readonly reads: RegionSet;
  readonly writes: RegionSet;
  readonly logs: RegionSet;
}

const rolesLine = new RegExp(
  `^([!-~]{1,256})[ \\t]+(${rolePattern})((?:[ \\t]+[A-Za-z0-9*][A-Za-z0-9._-]{0,127})+)$`,
);

/** Undefined for a line that is not of the form "group role region..."; `*` is every region. */
export function parseGroupRole(line: string): GroupRole | undefined {
  const [, group, role, rest] = rolesLine.exec(line) ?? [];
  if (group === undefined || rest === undefined) return undefined;
  const names = rest.trim().split(/[ \t]+/);
  if (names.some((name) => name.includes("*") && (name !== "*" || names.length > 1))) return undefined;
  return {
    group,
    role: parseRole(role),
    regions: names[0] === "*" ? "all" : new Set(names),
  };
}

/** Undefined if none of the groups has a role. */
export function accessOf(groups: readonly string[], roles: readonly GroupRole[]): Access | undefined {
  const own = roles.filter(({ group }) => groups.includes(group));
  if (own.length === 0) return undefined;
  return {
    reads: union(own),
    writes: union(own.filter(({ role }) => mayWrite(role))),
    logs: union(own.filter(({ role }) => mayReadLogs(role))),
  };
}

export function includesRegion(regions: RegionSet, region: string): boolean {
  return regions === "all" || regions.has(region);
}

function union(roles: readonly GroupRole[]): RegionSet {
  const all = new Set<string>();
  for (const { regions } of roles) {
    if (regions === "all") return "all";
    for (const region of regions) all.add(region);
  }
  return all;
}
