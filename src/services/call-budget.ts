// Limits the memory that the requests of one service may hold (K10). A call is charged for the request bytes that it
// has sent or announced, until it gets its response. No call is charged more than the largest message, because only one
// message is in memory at a time.
//
// One address gets only a share, so that it cannot lock out the others. The share is large, because a proxy or a node
// with many pods is one address too.
import { Code, ConnectError } from "@connectrpc/connect";

/** Charged for each call in addition to its message, so that calls that send nothing are limited too. */
const callBytes = 1024;
const largestMessages = 32;
const totalBytesMin = 8 * 1024 * 1024;
const addressPart = 1 / 4;

/** The charge of one call. */
export interface CallCharge {
  /** Throws `resource_exhausted`, and leaves the charge as it is, when the limit is reached. */
  raiseTo(messageBytes: number): void;
  release(): void;
}

export class CallBudget {
  private readonly messageBytesMax: number;
  private readonly bytesMax: number;
  private readonly bytesByAddress = new Map<string, number>();
  private bytes = 0;

  constructor(messageBytesMax: number) {
    this.messageBytesMax = messageBytesMax;
    this.bytesMax = Math.max(largestMessages * messageBytesMax, totalBytesMin);
  }

  /** Throws `resource_exhausted` when the limit is reached. */
  begin(address: string): CallCharge {
    this.take(address, callBytes);
    let held = callBytes;
    return {
      raiseTo: (messageBytes) => {
        const wanted = callBytes + Math.min(messageBytes, this.messageBytesMax);
        if (wanted <= held) return;
        this.take(address, wanted - held);
        held = wanted;
      },
      release: () => {
        this.give(address, held);
        held = 0;
      },
    };
  }

  /** The current total of all callers. */
  get heldBytes(): number {
    return this.bytes;
  }

  private take(address: string, bytes: number): void {
    const ofAddress = (this.bytesByAddress.get(address) ?? 0) + bytes;
    if (ofAddress > this.bytesMax * addressPart)
      throw new ConnectError(
        "too many concurrent calls from this address; try again later",
        Code.ResourceExhausted,
      );
    if (this.bytes + bytes > this.bytesMax)
      throw new ConnectError("too many concurrent calls; try again later", Code.ResourceExhausted);
    this.bytesByAddress.set(address, ofAddress);
    this.bytes += bytes;
  }

  private give(address: string, bytes: number): void {
    const left = (this.bytesByAddress.get(address) ?? 0) - bytes;
    if (left > 0) this.bytesByAddress.set(address, left);
    else this.bytesByAddress.delete(address);
    this.bytes -= bytes;
  }
}
