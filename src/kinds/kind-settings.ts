// What an agent has to tell the controllers of its kinds.
import type { RegistryCredentials } from "../model/image-reference.ts";

/** What an agent tells every kind's controller. */
export interface KindSettings {
  /** Name and platform joined: "us-east-1.aws". */
  readonly region: string;
  readonly networkPolicy: "required" | "best-effort";
  /** For pods with encrypted variables: whom their token is for, and where they reach krane. */
  readonly secrets: { readonly audience: string; readonly endpoint?: string };
  readonly registry?: RegistryCredentials;
  /** The namespace that krane fetches documents from, where it does; its pods are let in. */
  readonly scraperNamespace?: string;
}
