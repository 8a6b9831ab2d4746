// A TCP proxy on the loopback that can do what networks do: forget a connection without
// telling either side, or cut it in the middle of anything.
import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";

export interface FaultProxy {
  readonly url: string;
  /** From now on nothing passes on the connections there are; they stay open. New ones are not touched. */
  freeze(): void;
  /** Resets every connection. */
  cut(): void;
}

export async function startFaultProxy(t: TestContext, targetPort: number): Promise<FaultProxy> {
  const sockets = new Set<Socket>();
  const track = (socket: Socket) => {
    sockets.add(socket);
    socket.on("error", () => undefined);
    socket.on("close", () => sockets.delete(socket));
  };
  const server = createServer((near) => {
    const far = connect(targetPort, "127.0.0.1");
    track(near);
    track(far);
    near.pipe(far);
    far.pipe(near);
    near.on("close", () => far.destroy());
    far.on("close", () => near.destroy());
  });
  server.listen(0, "127.0.0.1");
  await once(server, "listening");
  const cut = () => {
    for (const socket of sockets) socket.resetAndDestroy();
  };
  t.after(async () => {
    cut();
    await new Promise<void>((resolve) => server.close(() => resolve()));
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    freeze() {
      for (const socket of sockets) {
        socket.unpipe();
        socket.pause();
      }
    },
    cut,
  };
}
