// What each call does, as one list: a method that is missing here is one that nobody
// thought about, and the types do not let it pass.
import type { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";

export type AdminMethod = keyof typeof AdminService.method;

export const methodEffects: Readonly<Record<AdminMethod, "reads" | "writes">> = {
  listAgents: "reads",
  applyObject: "writes",
  scaleObject: "writes",
  deleteObject: "writes",
  getObject: "reads",
  listObjects: "reads",
  listEvents: "reads",
  watchEvents: "reads",
  releaseDeletion: "writes",
  applyEnvironment: "writes",
  deleteEnvironment: "writes",
  listEnvironments: "reads",
  setSecret: "writes",
  unsetSecret: "writes",
};

/** Whatever is not known to read alone needs the right to write. */
export function onlyReads(method: string): boolean {
  return Object.hasOwn(methodEffects, method) && methodEffects[method as AdminMethod] === "reads";
}
