// Errors of opening a port or loading its certificate. Each message begins with the setting to change. The class name
// predates this folder and is visible in logs, so it stays.
import { CodedError } from "../errors/coded-error.ts";

export class ServiceError extends CodedError<"ServiceError"> {
  override readonly name = "ServiceError";
}

export interface ListenPlace {
  /** The setting that has the port. */
  readonly setting: string;
  readonly port: number;
  readonly host?: string | undefined;
  /** The setting that has the address, if it is another one. */
  readonly hostSetting?: string;
}

// The address is not one of this machine, or the name is unknown.
const addressCodes: ReadonlySet<unknown> = new Set(["EADDRNOTAVAIL", "ENOTFOUND", "EAI_AGAIN", "EINVAL"]);

/** Explains in terms of the settings why a port could not be opened. */
export function explainListenFailure(
  { setting, port, host, hostSetting = setting }: ListenPlace,
  cause: NodeJS.ErrnoException,
): ServiceError {
  if (cause.code === "EADDRINUSE") {
    const message = `${setting}: port ${port} is already in use; choose another port or stop the process that uses it`;
    return new ServiceError("port_in_use", message, { cause });
  }
  if (cause.code === "EACCES" || cause.code === "EPERM") {
    const message = `${setting}: no permission to listen on port ${port}; choose a port above 1023`;
    return new ServiceError("port_forbidden", message, { cause });
  }
  if (host !== undefined && addressCodes.has(cause.code)) {
    const message = `${hostSetting}: cannot listen on ${host}: ${cause.message}`;
    return new ServiceError("port_unavailable", message, { cause });
  }
  const message = `${setting}: cannot listen on port ${port}: ${cause.message}`;
  return new ServiceError("port_unavailable", message, { cause });
}
