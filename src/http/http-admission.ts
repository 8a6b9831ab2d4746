// Limits the connections of one port. When the limit is reached, a new connection replaces the oldest idle one:
// otherwise a client that opens connections and stays silent would lock out the probes, and Kubernetes would restart
// krane. Connections that never sent a request are closed before those that are between two requests.
//
// One address gets only a share of the connections; beyond it, its new connections replace its own idle ones. Otherwise
// an address with requests that never end could hold all connections forever.
//
// With TLS a request has the encrypted socket and the listener the raw one below it, so connections are looked up by the
// client's address and port.
import type { Socket } from "node:net";
import type { Clock } from "../concurrency/clock.ts";
import type { Log } from "../telemetry/log.ts";
import type { HttpLimits } from "./http-limits.ts";
import { RateLimit } from "./rate-limit.ts";

interface Connection {
  readonly socket: Socket;
  readonly address: string;
  inFlight: number;
  hasSentRequest: boolean;
}

export type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

type ConnectionLimits = Pick<HttpLimits, "connectionsMax" | "connectionsPerAddressMax">;

export class HttpAdmission {
  private readonly limits: ConnectionLimits;
  private readonly log: Log;
  private readonly byPeer = new Map<string, Connection>();
  private readonly countByAddress = new Map<string, number>();
  /** Limits log lines about rejected connections, because clients decide how many there are. */
  private readonly logLines: RateLimit;

  constructor(limits: ConnectionLimits, deps: { readonly log: Log; readonly clock: Clock }) {
    this.limits = limits;
    this.log = deps.log;
    this.logLines = new RateLimit({ burst: 1, perSecond: 1 / 60, keysMax: 1 }, deps);
  }

  /** Closes the socket and returns false when every connection that it could replace has a request in flight. */
  admit(socket: Socket): boolean {
    const { remoteAddress = "" } = socket;
    if (!this.hasRoomFor(remoteAddress)) {
      const { connectionsMax: limit } = this.limits;
      if (this.logLines.take(""))
        this.log.warn("connections rejected: limit reached", { limit, host: remoteAddress });
      socket.destroy();
      return false;
    }
    const peer = peerOf(socket);
    this.byPeer.set(peer, { socket, address: remoteAddress, inFlight: 0, hasSentRequest: false });
    this.countByAddress.set(remoteAddress, this.countOf(remoteAddress) + 1);
    socket.once("close", () => {
      if (this.byPeer.get(peer)?.socket === socket) this.forget(peer, remoteAddress);
    });
    return true;
  }

  /** Marks the connection as in use until the returned function is called. */
  begin(peer: Peer): () => void {
    const connection = this.byPeer.get(peerOf(peer));
    if (!connection) return () => undefined;
    connection.hasSentRequest = true;
    connection.inFlight++;
    return () => {
      connection.inFlight--;
    };
  }

  /** Closes the connection of a client that does not close it. */
  hangUp(peer: Peer): void {
    this.byPeer.get(peerOf(peer))?.socket.destroy();
  }

  /** Closes all remaining connections and returns their number. */
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

  /** Closes the oldest idle connection of one address, or of all. */
  private makeRoom(address?: string): boolean {
    const oldest = this.oldestIdle(address);
    if (oldest === undefined) return false;
    const [peer, connection] = oldest;
    // Now, not on `close`: its place must not be given away twice.
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
      if (!connection.hasSentRequest) return entry;
      betweenRequests ??= entry;
    }
    return betweenRequests;
  }
}

function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
