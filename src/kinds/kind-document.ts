// How a kind defines the documents that describe its objects, and what the documents of several kinds share.
import type { DocumentSchema, EnvironmentSpec } from "../documents/document-kind.ts";
import type { KubeObject } from "../kube/types.ts";
import type { KindSettings } from "./kind-settings.ts";

export interface KindDocument<Name extends string, Message extends object, Spec> {
  /** The fields that users write. */
  readonly schema: DocumentSchema<ObjectContent<Name, Message>>;
  /** The environment that it belongs to, with the owner that the two must share. */
  belongsTo?(message: Message): EnvironmentSpec;
  /** Its manifests contain the region. */
  readonly namesRegion?: true;
  /** What an agent would apply for each spec, if there are no others of this kind. */
  manifestsOf(specs: readonly Spec[], settings: RenderSettings): readonly (readonly KubeObject[])[];
}

export interface ObjectContent<Name extends string, Message extends object> {
  readonly kind: Name;
  readonly spec: Message;
  /** The deployment that a policy belongs to and is deleted with; empty if it belongs to no deployment. */
  readonly deploymentId?: string;
}

export type RenderSettings = Omit<KindSettings, "networkPolicy">;

/** The fields of a message without those of the protobuf library. */
export type Plain<M> = Omit<M, "$typeName" | "$unknown">;

export const required = { isRequired: true } as const;

export const fallbacks = {
  replicas: { fallback: 1 },
  cpu: { fallback: 250n },
  memory: { fallback: 256n },
} as const;
