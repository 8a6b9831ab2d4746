// What an agent sends back with the lines that it was asked for: which server asked, for which of its readers, and how to seal
// the lines for it if another server gets them.
export interface LogTicket {
  readonly server: string;
  readonly id: string;
  readonly publicKey: Buffer;
}

const form = /^([a-z0-9]{8,40})\.([a-z0-9]{8,64})\.([A-Za-z0-9_-]{20,100})$/;

export function encodeTicket({ server, id, publicKey }: LogTicket): Uint8Array {
  return Buffer.from(`${server}.${id}.${publicKey.toString("base64url")}`);
}

/** Undefined for anything else. */
export function parseTicket(ticket: Uint8Array): LogTicket | undefined {
  const [, server, id, key] = form.exec(Buffer.from(ticket).toString("latin1")) ?? [];
  if (server === undefined || id === undefined || key === undefined) return undefined;
  return { server, id, publicKey: Buffer.from(key, "base64url") };
}
