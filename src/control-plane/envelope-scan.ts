// Finds the boundaries of messages in the bytes of a Connect stream, where each message follows a header of five bytes:
// flags, and the length in four.
const headerBytes = 5;
const lengthOffset = 1;

export class EnvelopeScan {
  private readonly header = Buffer.alloc(headerBytes);
  /** How much of the next header is known; 0 between two messages. */
  private headerFilled = 0;
  /** How much of the current message is missing. */
  private missing = 0;

  /** Whether the first byte of a message was taken, but not its last. */
  get isInMessage(): boolean {
    return this.headerFilled > 0 || this.missing > 0;
  }

  /** Takes the next bytes; returns whether a message ended in them. */
  take(bytes: Uint8Array): boolean {
    let hasEnded = false;
    let offset = 0;
    while (offset < bytes.byteLength) {
      if (this.missing > 0) {
        const taken = Math.min(this.missing, bytes.byteLength - offset);
        this.missing -= taken;
        offset += taken;
        hasEnded ||= this.missing === 0;
        continue;
      }
      const taken = bytes.subarray(offset, offset + headerBytes - this.headerFilled);
      this.header.set(taken, this.headerFilled);
      this.headerFilled += taken.byteLength;
      offset += taken.byteLength;
      if (this.headerFilled < headerBytes) continue;
      this.headerFilled = 0;
      this.missing = this.header.readUInt32BE(lengthOffset);
      hasEnded ||= this.missing === 0;
    }
    return hasEnded;
  }
}
