// Where a server is found from its own machine.
import { isIPv6 } from "node:net";

export interface OwnAddress {
  readonly scheme: "http" | "https";
  /** The address that it listens on; undefined for every one that the machine has. */
  readonly host?: string | undefined;
  readonly port: number;
}

/** The name that certificates for a machine of one's own are made for. */
const localName = "localhost";
const reachedLocally = [localName, "0.0.0.0", "::", "127.0.0.1", "::1"];

export function ownUrl({ scheme, host = localName, port }: OwnAddress): string {
  const name = reachedLocally.includes(host) ? localName : host;
  return `${scheme}://${isIPv6(name) ? `[${name}]` : name}:${port}`;
}
