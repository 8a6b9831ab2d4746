// What the texts of the store contract have in common.
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ReportAgentStateRequestSchema } from "../../src/gen/ctrl/v1/cluster_service_pb.ts";
import type { ApplyInit, KindName, ReportOf } from "../../src/kinds/kinds.ts";
import { createSpec } from "../../src/server/kind-messages.ts";
import { type NumberedEntry, type Store, StoreError, type StoreErrorCode } from "../../src/server/store.ts";
import type { OpenTarget } from "./store-target.ts";

export type Holds = (
  name: string,
  check: (open: OpenTarget & { readonly region: string }) => Promise<void>,
) => void;

export const deployment = (id: string, more: ApplyInit<"deployment"> = {}) =>
  createSpec("deployment", { deploymentId: id, k8sName: `app-${id}`, k8sNamespace: "one", ...more });
export const sentinel = (id: string, more: ApplyInit<"sentinel"> = {}) =>
  createSpec("sentinel", { sentinelId: id, k8sName: `app-${id}`, ...more });
export const policy = (id: string, k8sNamespace: string) =>
  createSpec("policy", { ciliumNetworkPolicyId: id, k8sName: "rule", k8sNamespace });
export const hasCode = (code: StoreErrorCode) => (error: unknown) =>
  error instanceof StoreError && error.code === code;

export type StateInit = Exclude<
  MessageInitShape<typeof ReportAgentStateRequestSchema>,
  { $typeName: string }
>;
export const stateAt = (atMs: number, init: StateInit = {}) => ({
  report: create(ReportAgentStateRequestSchema, { state: { instanceId: "ins_1" }, ...init }),
  atMs,
});

/** The oldest first. */
export async function historyLines(store: Store, region: string): Promise<readonly string[]> {
  const text = ({ by, event, kind, id, version, outcome }: NumberedEntry) =>
    `${by} ${event} ${kind} ${id} v${version} ${outcome}`.trim();
  return (await store.history(region, { limit: 100 })).map(text).reverse();
}

/** The last report on an object; undefined before the first. */
export async function reportOf<K extends KindName>(
  store: Store,
  region: string,
  kind: K,
  id: string,
): Promise<ReportOf<K> | undefined> {
  return (await store.object(region, kind, id))?.report;
}
