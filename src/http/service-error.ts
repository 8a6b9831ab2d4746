// Errors of opening and keeping a port. Each message begins with the setting to change.

export type ServiceErrorCode =
  /** Another program listens there already. */
  | "port_in_use"
  /** The user may not listen there. */
  | "port_forbidden"
  /** Listening failed for another reason. */
  | "port_unavailable"
  /** The certificate or its key cannot be read, or they do not belong together. */
  | "certificate_unusable";

export class ServiceError extends Error {
  override readonly name = "ServiceError";
  readonly code: ServiceErrorCode;

  constructor(code: ServiceErrorCode, message: string, options?: { readonly cause: unknown }) {
    super(message, options);
    this.code = code;
  }
}

/** Explains in terms of the setting why a port could not be opened. */
export function explainListenFailure(
  setting: string,
  port: number,
  cause: NodeJS.ErrnoException,
): ServiceError {
  if (cause.code === "EADDRINUSE") {
    const message = `${setting}: port ${port} is already in use; choose another or stop what holds it`;
    return new ServiceError("port_in_use", message, { cause });
  }
  if (cause.code === "EACCES" || cause.code === "EPERM") {
    const message = `${setting}: no permission to listen on port ${port}; choose one above 1023`;
    return new ServiceError("port_forbidden", message, { cause });
  }
  const message = `${setting}: cannot listen on port ${port}: ${cause.message}`;
  return new ServiceError("port_unavailable", message, { cause });
}
