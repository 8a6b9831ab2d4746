// What the texts of the store contract have in common.
import { kinds, type SpecInit } from "../../src/server/kinds.ts";
import { StoreError, type StoreErrorCode } from "../../src/server/store.ts";
import type { OpenTarget } from "./store-target.ts";

export type Holds = (
  name: string,
  check: (open: OpenTarget & { readonly region: string }) => Promise<void>,
) => void;

export const deployment = (id: string, more: SpecInit<"deployment"> = {}) =>
  kinds.deployment.createSpec({ deploymentId: id, k8sName: `app-${id}`, k8sNamespace: "one", ...more });
export const sentinel = (id: string) => kinds.sentinel.createSpec({ sentinelId: id, k8sName: `app-${id}` });
export const policy = (id: string, k8sNamespace: string) =>
  kinds.policy.createSpec({ ciliumNetworkPolicyId: id, k8sName: "rule", k8sNamespace });
export const hasCode = (code: StoreErrorCode) => (error: unknown) =>
  error instanceof StoreError && error.code === code;
