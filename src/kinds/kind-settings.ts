// The settings that an agent passes to the controllers of all kinds.
import type { RegistryCredentials } from "../model/image-reference.ts";

export interface KindSettings {
  /** Name and platform joined: "us-east-1.aws". */
  readonly region: string;
  readonly networkPolicy: "required" | "best-effort";
  /** Of the pods of deployments. Empty: they run without a sandbox, so only trusted code may run. */
  readonly runtimeClass: "gvisor" | "";
  /** For pods with encrypted variables: the audience of their token, and where they reach krane. */
  readonly secrets: { readonly audience: string; readonly endpoint?: string };
  readonly registry?: RegistryCredentials;
  /** The Gateway that routes are exposed on; absent if there is none. */
  readonly gateway?: GatewaySettings;
  /** The namespace that krane runs in, if it fetches documents from deployments; its pods are admitted. */
  readonly scraperNamespace?: string;
}

export interface GatewaySettings {
  readonly namespace: string;
  readonly name: string;
  /** One of its listeners; absent for all. */
  readonly listener?: string;
  /** Where its requests come from: from the pods of a namespace, or from the proxy that is part of Cilium. */
  readonly proxies: { readonly namespace: string } | "cilium";
}
