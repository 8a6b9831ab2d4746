// A TCP proxy on the loopback interface that does to connections what networks do: it cuts them,
// stops carrying bytes without closing, refuses new ones, and chops what it carries into pieces.

import type { AddressInfo } from "node:net";
import { connect as connectTcp, createServer, type Socket } from "node:net";
import type { TestContext } from "node:test";

export interface FaultProxy {
  readonly port: number;
  readonly url: string;
  readonly connectionCount: () => number;
  /** Ends every connection with a reset. */
  cut(): void;
  /** Bytes vanish in both directions on the connections that are open now; nobody is told. */
  stall(): void;
  /** The same, but nobody takes the bytes either: who sends more than the buffers hold has to wait. */
  freeze(): void;
  /**
   * A partition: bytes wait, in both directions and on new connections too, until deliver(). Those of a connection that
   * a side has given up by then are lost, as a kernel that has sent a reset delivers nothing more.
   */
  hold(): HeldConnections;
  deliver(): void;
  /** New connections are reset as soon as they are made. */
  refuse(refusing: boolean): void;
  /** Bytes come in pieces of at most this size. */
  chop(pieceBytes: number): void;
  /** New connections go to this port, as behind a load balancer. */
  target(port: number): void;
}

export interface HeldConnections {
  /** Whether all that were open when the partition began have been given up. */
  areGivenUp(): boolean;
}

export async function startFaultProxy(t: TestContext, firstTarget: number): Promise<FaultProxy> {
  let targetPort = firstTarget;
  const pairs = new Set<readonly [Socket, Socket]>();
  let refusing = false;
  let pieceBytes = Number.POSITIVE_INFINITY;
  let isHolding = false;
  const held: (() => void)[] = [];

  const carry = (from: Socket, to: Socket) => {
    const send = (bytes: Buffer) => {
      for (let start = 0; start < bytes.length; start += pieceBytes) {
        to.write(bytes.subarray(start, Math.min(start + pieceBytes, bytes.length)));
      }
    };
    const whenDelivered = (deliver: () => void) => {
      if (!isHolding) deliver();
      else held.push(() => !from.destroyed && !to.destroyed && deliver());
    };
    from.on("data", (bytes: Buffer) => whenDelivered(() => send(bytes)));
    from.on("end", () => whenDelivered(() => to.end()));
    // A reset on one side is the fault that was asked for; the other side gets its own.
    from.on("error", () => to.destroy());
    from.on("close", () => to.destroy());
  };
  const server = createServer((inside) => {
    if (refusing) {
      inside.resetAndDestroy();
      return;
    }
    const outside = connectTcp(targetPort, "127.0.0.1");
    const pair = [inside, outside] as const;
    for (const socket of pair) socket.setNoDelay(true);
    pairs.add(pair);
    inside.on("close", () => pairs.delete(pair));
    carry(inside, outside);
    carry(outside, inside);
  });
  const cut = () => {
    for (const [inside, outside] of pairs) {
      // A reset of a socket that is just ending fails, and Node then never closes its handle: the process would not exit.
      if (inside.writableEnded) inside.destroy();
      else inside.resetAndDestroy();
      outside.destroy();
    }
  };
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  t.after(() => {
    cut();
    server.close();
  });
  const { port } = server.address() as AddressInfo;
  return {
    port,
    url: `http://127.0.0.1:${port}`,
    connectionCount: () => pairs.size,
    cut,
    stall() {
      for (const pair of pairs) for (const socket of pair) socket.removeAllListeners("data").resume();
    },
    freeze() {
      for (const pair of pairs) for (const socket of pair) socket.removeAllListeners("data").pause();
    },
    hold() {
      isHolding = true;
      const open = [...pairs];
      return { areGivenUp: () => open.every((pair) => !pairs.has(pair)) };
    },
    deliver() {
      isHolding = false;
      for (const deliver of held.splice(0)) deliver();
    },
    refuse(now) {
      refusing = now;
    },
    chop(bytes) {
      pieceBytes = bytes;
    },
    target(next) {
      targetPort = next;
    },
  };
}
