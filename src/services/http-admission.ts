// The connections of one port, at most so many. When all places are taken, a newcomer
// gets that of the oldest connection without a request in flight: otherwise a client that
// opens connections and stays silent would lock out the probes, and krane would be
// restarted for it. Who never asked anything goes before who is between two requests.
//
// With TLS a request knows the encrypted socket and the listener the one below it, so a
// connection is found by the address of its client.
import type { Socket } from "node:net";
import type { Log } from "../telemetry/log.ts";

interface Connection {
  readonly socket: Socket;
  inFlight: number;
  hasAsked: boolean;
}

type Peer = Pick<Socket, "remoteAddress" | "remotePort">;

export class HttpAdmission {
  private readonly connectionsMax: number;
  private readonly log: Log;
  private readonly byPeer = new Map<string, Connection>();
  private isRefusing = false;

  constructor(options: { readonly connectionsMax: number }, deps: { readonly log: Log }) {
    this.connectionsMax = options.connectionsMax;
    this.log = deps.log;
  }

  /** False after closing the socket, when every place is taken by a request in flight. */
  admit(socket: Socket): boolean {
    if (this.byPeer.size >= this.connectionsMax && !this.makeRoom()) {
      if (!this.isRefusing)
        this.log.warn("connections refused, all are in use", { limit: this.connectionsMax });
      this.isRefusing = true;
      socket.destroy();
      return false;
    }
    const peer = peerOf(socket);
    this.byPeer.set(peer, { socket, inFlight: 0, hasAsked: false });
    socket.once("close", () => {
      if (this.byPeer.get(peer)?.socket === socket) this.byPeer.delete(peer);
      this.isRefusing = false;
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

  /** Ends what is left, and tells how many that were. */
  destroyAll(): number {
    const { size } = this.byPeer;
    for (const { socket } of this.byPeer.values()) socket.destroy();
    return size;
  }

  private makeRoom(): boolean {
    const victim = this.oldestIdle();
    if (victim === undefined) return false;
    const [peer, { socket }] = victim;
    // At once, and not with its `close`: its place must not be given away twice.
    this.byPeer.delete(peer);
    socket.destroy();
    return true;
  }

  private oldestIdle(): [peer: string, connection: Connection] | undefined {
    let betweenRequests: [string, Connection] | undefined;
    for (const entry of this.byPeer) {
      const [, { inFlight, hasAsked }] = entry;
      if (inFlight > 0) continue;
      if (!hasAsked) return entry;
      betweenRequests ??= entry;
    }
    return betweenRequests;
  }
}

function peerOf({ remoteAddress, remotePort }: Peer): string {
  return `${remoteAddress} ${remotePort}`;
}
