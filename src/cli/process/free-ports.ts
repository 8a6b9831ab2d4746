// Picks free ports for `krane dev` with port 0: its agent needs fixed port numbers in its configuration. Another process
// may take a port in between; the start then fails with the usual error.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Replaces every 0 with a different free port. */
export async function chooseFreePorts<T extends Readonly<Record<string, number>>>(ports: T): Promise<T> {
  const held: Server[] = [];
  const chosen: Record<string, number> = {};
  try {
    for (const [name, port] of Object.entries(ports)) {
      chosen[name] = port === 0 ? await holdPort(held) : port;
    }
  } finally {
    for (const server of held) {
      server.close();
      await once(server, "close");
    }
  }
  return chosen as T;
}

async function holdPort(held: Server[]): Promise<number> {
  const server = createServer().listen(0);
  await once(server, "listening");
  held.push(server);
  return (server.address() as AddressInfo).port;
}
