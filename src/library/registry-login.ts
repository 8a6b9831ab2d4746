// The login of a registry, out of reach of logs from the moment it is handed over (K7).
import { Secret } from "../config/secret.ts";

export interface RegistryLogin {
  /** Host, and port if it is not that of HTTPS. */
  readonly host: string;
  readonly username: string;
  readonly password: string;
}

export function registryCredentials({ host, username, password }: RegistryLogin) {
  return { host, username, password: new Secret(password) };
}
