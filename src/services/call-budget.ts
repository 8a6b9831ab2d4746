// How much of the memory the calls of one service may hold before anybody has looked at what they say (K10).
// A call is charged for the request that it sends, or has announced, until it is answered; none is charged
// more than the largest message, because no more than one is in memory at a time.
//
// One address gets a share, so that it cannot shut out the others. The share is large, because a proxy or a
// node with many pods is one address too.
import { Code, ConnectError } from "@connectrpc/connect";

/** What a call holds besides its message; it limits calls that send nothing. */
const callBytes = 1024;
const largestMessages = 32;
const totalBytesMin = 8 * 1024 * 1024;
const addressPart = 1 / 4;

/** What one call holds. */
export interface CallCharge {
  /** Throws `resource_exhausted`, and charges nothing more, where there is no room. */
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

  /** Throws `resource_exhausted` where there is no room for another call. */
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

  /** Held at the moment, by everybody. */
  get heldBytes(): number {
    return this.bytes;
  }

  private take(address: string, bytes: number): void {
    const ofAddress = (this.bytesByAddress.get(address) ?? 0) + bytes;
    if (ofAddress > this.bytesMax * addressPart)
      throw new ConnectError(
        "too many calls of this address at a time; try again later",
        Code.ResourceExhausted,
      );
    if (this.bytes + bytes > this.bytesMax)
      throw new ConnectError("too many calls at a time; try again later", Code.ResourceExhausted);
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
