// HTTP/1.1 (kubelets, plain clients) and HTTP/2 without TLS (gRPC) on one port: an
// HTTP/2 client opens with a fixed preface that is no HTTP/1.1 request, so the first
// bytes decide. node:http2 alone would refuse every HTTP/1.1 client.
import type { Socket } from "node:net";
import type { Clock, Timer } from "../concurrency/clock.ts";

export type Protocol = "http/1.1" | "h2";

const http2Preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

/** Undefined as long as the bytes are only the beginning of a preface. */
export function protocolOf(firstBytes: Buffer): Protocol | undefined {
  const length = Math.min(firstBytes.length, http2Preface.length);
  if (firstBytes.compare(http2Preface, 0, length, 0, length) !== 0) return "http/1.1";
  return length === http2Preface.length ? "h2" : undefined;
}

export class ProtocolChoice {
  private readonly timeoutMs: number;
  private readonly clock: Clock;
  private readonly handOver: (socket: Socket, protocol: Protocol) => void;
  private readonly undecided = new Map<Socket, Timer>();

  constructor(
    options: { readonly timeoutMs: number },
    deps: { readonly clock: Clock; handOver(socket: Socket, protocol: Protocol): void },
  ) {
    this.timeoutMs = options.timeoutMs;
    this.clock = deps.clock;
    this.handOver = deps.handOver;
  }

  /** Hands the socket over, with nothing consumed, once the first bytes have decided. */
  accept(socket: Socket): void {
    let firstBytes: Buffer = Buffer.alloc(0);
    // One deadline for the whole decision: a timeout that every byte renews could be
    // kept from firing by a client that sends one byte now and then.
    const timer = this.clock.setTimer(this.timeoutMs, giveUp);
    const onReadable = () => {
      const chunk: Buffer | null = socket.read();
      if (chunk === null) return;
      firstBytes = Buffer.concat([firstBytes, chunk]);
      const protocol = protocolOf(firstBytes);
      if (protocol === undefined) return;
      release();
      socket.unshift(firstBytes);
      this.handOver(socket, protocol);
    };
    const release = () => {
      timer.cancel();
      this.undecided.delete(socket);
      socket.off("readable", onReadable).off("end", giveUp).off("error", giveUp).off("close", release);
    };
    function giveUp() {
      socket.destroy();
    }
    this.undecided.set(socket, timer);
    socket.on("readable", onReadable).on("end", giveUp).on("error", giveUp).on("close", release);
  }

  destroyUndecided(): void {
    for (const socket of this.undecided.keys()) socket.destroy();
  }
}
