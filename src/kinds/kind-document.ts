// What a kind says about the documents that describe its objects, and what its documents share with others.
import type { DocumentSchema, EnvironmentSpec } from "../documents/document-kind.ts";
import type { KubeObject } from "../kube/types.ts";
import type { KindSettings } from "./kind-settings.ts";

export interface KindDocument<Name extends string, Message extends object, Spec> {
  /** The fields that people write. */
  readonly schema: DocumentSchema<ObjectContent<Name, Message>>;
  /** The environment whose owner it has to share. */
  belongsTo?(message: Message): EnvironmentSpec;
  /** Its manifests name the region. */
  readonly namesRegion?: true;
  /** What an agent would apply for each of them, where these are all of the kind. */
  manifestsOf(specs: readonly Spec[], settings: RenderSettings): readonly (readonly KubeObject[])[];
}

export interface ObjectContent<Name extends string, Message extends object> {
  readonly kind: Name;
  readonly spec: Message;
  /** The deployment that a policy belongs to and is deleted with; empty for none. */
  readonly deploymentId?: string;
}

export type RenderSettings = Omit<KindSettings, "networkPolicy">;

/** The fields of a message without those of the library. */
export type Plain<M> = Omit<M, "$typeName" | "$unknown">;

export const required = { isRequired: true } as const;

export const fallbacks = {
  replicas: { fallback: 1 },
  cpu: { fallback: 250n },
  memory: { fallback: 256n },
} as const;
