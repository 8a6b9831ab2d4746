// The connections of one port, at most so many. When all places are taken, a newcomer
// gets that of the oldest connection without a request in flight: otherwise a client that
// opens connections and stays silent would lock out the probes, and krane would be
// restarted for it. Who never asked anything goes before who is between two requests.
//
// One address gets no more than its share, and makes room among its own connections when it
// wants more: with requests that it never ends it would otherwise take all places for good.
//
// With TLS a request knows the encrypted socket and the listener the one below it, so a
// connection is found by the address of its client.
import type { Socket } from "node:net";
import type { Clock } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import type { HttpLimits } from "./http-limits.ts";
import { RateLimit } from "./rate-limit.ts";

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  inFlight: number;
  hasAsked: boolean;
}

export type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

type ConnectionLimits = Pick<HttpLimits, "connectionsMax" | "connectionsPerAddressMax">;

export class HttpAdmission {
  private readonly limits: ConnectionLimits;
  private readonly log: Log;
  private readonly byPeer = new Map<string, Connection>();
  private readonly countByAddress = new Map<string, number>();
  /** Strangers choose how often they are refused, and must not choose how much is written about it. */
  private readonly tellings: RateLimit;

  constructor(limits: ConnectionLimits, deps: { readonly log: Log; readonly clock: Clock }) {
    this.limits = limits;
    this.log = deps.log;
    this.tellings = new RateLimit({ burst: 1, perSecond: 1 / 60, keysMax: 1 }, deps);
  }

  /** False after closing the socket, when every place that it could have has a request in flight. */
  admit(socket: Socket): boolean {
    const { remoteAddress = "" } = socket;
    if (!this.hasRoomFor(remoteAddress)) {
      const { connectionsMax: limit } = this.limits;
      if (this.tellings.take(""))
        this.log.warn("connections refused, all are in use", { limit, host: remoteAddress });
      socket.destroy();
      return false;
    }
    const peer = peerOf(socket);
    this.byPeer.set(peer, { socket, address: remoteAddress, inFlight: 0, hasAsked: false });
    this.countByAddress.set(remoteAddress, this.countOf(remoteAddress) + 1);
    socket.once("close", () => {
      if (this.byPeer.get(peer)?.socket === socket) this.forget(peer, remoteAddress);
    });
    return true;
  }

  /** Keeps the connection until the returned function is called. */
  begin(peer: Peer): () => void {
    const connection = this.byPeer.get(peerOf(peer));
    if (!connection) return () => undefined;
    connection.hasAsked = true;
    connection.inFlight++;
    return () => {
      connection.inFlight--;
    };
  }

  /** Ends a connection whose client does not. */
  hangUp(peer: Peer): void {
    this.byPeer.get(peerOf(peer))?.socket.destroy();
  }

  /** Ends what is left, and tells how many that were. */
  destroyAll(): number {
    const { size } = this.byPeer;
    for (const { socket } of this.byPeer.values()) socket.destroy();
    return size;
  }

  private hasRoomFor(address: string): boolean {
    if (this.countOf(address) >= this.limits.connectionsPerAddressMax) return this.makeRoom(address);
    return this.byPeer.size < this.limits.connectionsMax || this.makeRoom();
  }

  private countOf(address: string): number {
    return this.countByAddress.get(address) ?? 0;
  }

  /** Among the connections of one address, or of all. */
  private makeRoom(address?: string): boolean {
    const victim = this.oldestIdle(address);
    if (victim === undefined) return false;
    const [peer, connection] = victim;
    // At once, and not with its `close`: its place must not be given away twice.
    this.forget(peer, connection.address);
    connection.socket.destroy();
    return true;
  }

  private forget(peer: string, address: string): void {
    this.byPeer.delete(peer);
    const left = this.countOf(address) - 1;
    if (left > 0) this.countByAddress.set(address, left);
    else this.countByAddress.delete(address);
  }

  private oldestIdle(address: string | undefined): [peer: string, connection: Connection] | undefined {
    let betweenRequests: [string, Connection] | undefined;
    for (const entry of this.byPeer) {
      const [, connection] = entry;
      if (connection.inFlight > 0 || (address !== undefined && connection.address !== address)) continue;
      if (!connection.hasAsked) return entry;
      betweenRequests ??= entry;
    }
    return betweenRequests;
  }
}

function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
