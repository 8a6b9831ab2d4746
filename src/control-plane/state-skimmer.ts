// Reads a state message that is too large to be kept, as its bytes arrive, and keeps only what identifies it: its version,
// its size, and the short fields of its spec. Of a control plane that does not know `too_large`, the result is what it
// would have sent.
//
// The fields have the same numbers in the states of all kinds; a test compares them with the contract. Bytes that are not
// such a message are an error: with a version that was guessed, the cursor could skip other versions permanently (K2).
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { Code, ConnectError } from "@connectrpc/connect";

const stateFields = { apply: 1, version: 3, tooLarge: 10 };
const tooLargeFields = { spec: 1, bytes: 2, bytesMax: 3 };

// Names and ids are shorter than this, and have the lowest numbers, so they come first.
const keptFieldBytesMax = 300;
const keptBytesMax = 16 * 1024;

const varintBitsMax = 64;
const varintBits = 7;

export class StateSkimmer {
  private position = 0;
  private version = 0n;
  private readonly spec = new BinaryWriter();
  private specBytes = 0;
  /** Where the spec ends; 0 before it begins. */
  private specEnd = 0;
  /** Where the message that the current field belongs to ends. */
  private fieldEnd = Number.POSITIVE_INFINITY;
  private expected: "tag" | "value" | "length" = "tag";
  private tag = 0;
  private varint = 0n;
  private varintShift = 0;
  /** How many bytes of the current field are missing. */
  private missing = 0;
  /** The bytes of the current field, if it is kept. */
  private field: Uint8Array[] | undefined;

  /** How many bytes were taken. */
  get size(): number {
    return this.position;
  }

  take(bytes: Uint8Array): void {
    let offset = 0;
    while (offset < bytes.byteLength) {
      if (this.missing > 0) {
        const part = bytes.subarray(offset, offset + this.missing);
        offset += part.byteLength;
        this.takeContent(part);
      } else {
        this.takeVarint(bytes[offset] ?? 0);
        offset += 1;
      }
    }
  }

  /** The state with `too_large`, after the last byte was taken. */
  finish(bytesMax: number): Uint8Array {
    const isWhole = this.expected === "tag" && this.varintShift === 0 && this.missing === 0;
    if (!isWhole || this.position < this.specEnd) throw unreadable();
    const writer = new BinaryWriter();
    writer.tag(stateFields.version, WireType.Varint).uint64(this.version);
    writer.tag(stateFields.tooLarge, WireType.LengthDelimited).fork();
    if (this.specEnd > 0) writer.tag(tooLargeFields.spec, WireType.LengthDelimited).bytes(this.spec.finish());
    writer.tag(tooLargeFields.bytes, WireType.Varint).uint64(this.size);
    writer.tag(tooLargeFields.bytesMax, WireType.Varint).uint64(bytesMax);
    return writer.join().finish();
  }

  private get isInSpec(): boolean {
    return this.fieldEnd !== Number.POSITIVE_INFINITY;
  }

  private takeVarint(byte: number): void {
    if (this.expected === "tag" && this.varintShift === 0)
      this.fieldEnd = this.position < this.specEnd ? this.specEnd : Number.POSITIVE_INFINITY;
    this.position += 1;
    if (this.varintShift === 0 && byte < 0x80) {
      // Most numbers have one byte; a bigint for each would take ten times as long.
      if (this.position > this.fieldEnd) throw unreadable();
      this.takeNumber(byte);
      return;
    }
    this.varint |= BigInt(byte & 0x7f) << BigInt(this.varintShift);
    this.varintShift += varintBits;
    if (this.position > this.fieldEnd) throw unreadable();
    if ((byte & 0x80) !== 0) {
      if (this.varintShift >= varintBitsMax) throw unreadable();
      return;
    }
    const value = BigInt.asUintN(varintBitsMax, this.varint);
    this.varint = 0n;
    this.varintShift = 0;
    this.takeNumber(value);
  }

  private takeNumber(value: number | bigint): void {
    const { expected } = this;
    this.expected = "tag";
    if (expected === "tag") this.beginField(Number(value));
    else if (expected === "length") this.beginContent(Number(value));
    else if (!this.isInSpec && this.fieldNumber === stateFields.version) this.version = BigInt(value);
  }

  private get fieldNumber(): number {
    return Math.floor(this.tag / 8);
  }

  private beginField(tag: number): void {
    this.tag = tag;
    if (this.fieldNumber === 0) throw unreadable();
    switch (tag % 8) {
      case WireType.Varint:
        this.expected = "value";
        return;
      case WireType.LengthDelimited:
        this.expected = "length";
        return;
      case WireType.Bit64:
        this.skip(8);
        return;
      case WireType.Bit32:
        this.skip(4);
        return;
      default:
        throw unreadable();
    }
  }

  private beginContent(length: number): void {
    if (!this.isInSpec && this.fieldNumber === stateFields.apply) {
      // The state of another spec would have to be merged with this one.
      if (this.specEnd > 0) throw unreadable();
      this.specEnd = this.position + length;
      return;
    }
    this.skip(length);
    const isKept = this.isInSpec && length <= keptFieldBytesMax && this.specBytes + length <= keptBytesMax;
    this.field = isKept ? [] : undefined;
    if (length === 0) this.endContent();
  }

  private skip(length: number): void {
    if (this.position + length > this.fieldEnd) throw unreadable();
    this.missing = length;
    this.field = undefined;
  }

  private takeContent(bytes: Uint8Array): void {
    this.position += bytes.byteLength;
    this.missing -= bytes.byteLength;
    // A copy, because the part belongs to a large chunk.
    this.field?.push(Uint8Array.from(bytes));
    if (this.missing === 0) this.endContent();
  }

  private endContent(): void {
    if (this.field === undefined) return;
    const content = Buffer.concat(this.field);
    this.specBytes += content.byteLength;
    this.spec.tag(this.fieldNumber, WireType.LengthDelimited).bytes(content);
    this.field = undefined;
  }
}

function unreadable(): ConnectError {
  return new ConnectError("a message that is too large is also damaged", Code.Internal);
}
