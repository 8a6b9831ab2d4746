// Lists whether each method reads or writes. The types require an entry for every method,
// so that none is added without a decision.
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

/** Any method not listed as reading requires the right to write. */
export function onlyReads(method: string): boolean {
  return Object.hasOwn(methodEffects, method) && methodEffects[method as AdminMethod] === "reads";
}
