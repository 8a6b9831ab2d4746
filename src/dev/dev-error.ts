// What keeps `krane dev` from starting or an action from being done, in words for the person at the keyboard.

export type DevErrorCode =
  /** The cluster holds objects of a krane that is not this one. */
  | "cluster_in_use"
  /** The cluster did not answer, or does not let us look. */
  | "cluster_unusable"
  /** The kubeconfig for kubectl, or the contexts file for krane, cannot be written. */
  | "file_unusable"
  /** There is nothing that the action could be done to. */
  | "nothing_to_do";

export class DevError extends Error {
  override readonly name = "DevError";
  readonly code: DevErrorCode;

  constructor(code: DevErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}
