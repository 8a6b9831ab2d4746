// The sets of objects of the store in memory.
import type { Region } from "./memory-region.ts";
import type { SetMember, SetStore } from "./sets.ts";

export function memorySets(regionOf: (name: string) => Region): SetStore {
  const isDesired = ({ apps, environments, tables }: Region, { kind, id }: SetMember) => {
    if (kind === "app") return apps.has(id);
    return kind === "environment"
      ? environments.get(id) !== undefined
      : tables[kind].get(id)?.desired === "running";
  };
  return {
    async join(name, set, members) {
      const region = regionOf(name);
      for (const member of members) if (isDesired(region, member)) region.sets.join(set, member);
    },
    members: async (name, set) => regionOf(name).sets.members(set),
  };
}
