// Ports that nobody listens on, for `krane dev` with port 0: its agent is configured with a port and cannot
// take just any. Somebody else could take one in the moment between, which then is the usual error.
import { once } from "node:events";
import { type AddressInfo, createServer, type Server } from "node:net";

/** Every 0 becomes a free port, each another one. */
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
