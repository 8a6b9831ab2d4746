// The URL of a server as seen from its own machine.
import { isIPv6 } from "node:net";

export interface OwnAddress {
  readonly scheme: "http" | "https";
  /** The address it listens on; undefined for all addresses of the machine. */
  readonly host?: string | undefined;
  readonly port: number;
}

/** The name that certificates for a local machine are issued for. */
const localName = "localhost";
const reachedLocally = [localName, "0.0.0.0", "::", "127.0.0.1", "::1"];

export function ownUrl({ scheme, host = localName, port }: OwnAddress): string {
  const name = reachedLocally.includes(host) ? localName : host;
  return `${scheme}://${isIPv6(name) ? `[${name}]` : name}:${port}`;
}
