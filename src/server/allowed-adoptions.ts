// The adoptions that wait for the agent of one region. Each is for one uid, and ends with the
// first report that no longer lists its object, or after ten minutes.
import type { ReportAgentStateRequest } from "../gen/ctrl/v1/cluster_service_pb.ts";
import type { Stranger } from "../gen/krane/v1/agent_pb.ts";
import { releaseAgeMaxMs } from "./held-releases.ts";
import type { AgentReport, StrangerRef } from "./store.ts";

export interface AllowedAdoption extends StrangerRef {
  readonly atMs: number;
}

/** The adoptions that the agent still needs, according to the report that it just sent. */
export function adoptionsFor<A extends AllowedAdoption>(
  adoptions: readonly A[],
  { report, atMs }: AgentReport,
): A[] {
  const listed = adoptableOf(report);
  return adoptions.filter((each) => atMs - each.atMs <= releaseAgeMaxMs && listed.has(strangerKey(each)));
}

/** Which of the objects the last report lists as adoptable, each once. */
export function acceptedOf(
  objects: readonly StrangerRef[],
  report: ReportAgentStateRequest | undefined,
): readonly Stranger[] {
  const listed = adoptableOf(report);
  const keys = new Set(objects.map(strangerKey));
  return [...keys].flatMap((key) => listed.get(key) ?? []);
}

/** By key. */
function adoptableOf(report: ReportAgentStateRequest | undefined): ReadonlyMap<string, Stranger> {
  const adoptable = (report?.strangers ?? []).filter((each) => each.adoptable);
  return new Map(adoptable.map((each) => [strangerKey(each), each]));
}

export function strangerKey({ controller, kind, namespace, name, uid }: StrangerRef): string {
  return JSON.stringify([controller, kind, namespace, name, uid]);
}

export function refOf({ controller, kind, namespace, name, uid }: StrangerRef): StrangerRef {
  return { controller, kind, namespace, name, uid };
}

/** What history says of an adoption. */
export function adoptedText({
  kind,
  namespace,
  name,
}: Pick<StrangerRef, "kind" | "namespace" | "name">): string {
  return `${kind} ${namespace}/${name}`;
}
