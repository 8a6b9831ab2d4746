// Lets a stream go on behind a message that is too large, whatever the control plane: the message is replaced by one that
// carries its id, version and size, as krane's own server sends it. Nothing of it is kept in memory but that.
//
// Used only after a message was refused for its size, because compressed messages have to be decompressed once more to
// know their size.
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { Code, ConnectError } from "@connectrpc/connect";
import { StateSkimmer } from "./state-skimmer.ts";

const headerBytes = 5;
const lengthOffset = 1;
const flags = { compressed: 1, endOfStream: 2 };

// A few kilobytes can decompress to gigabytes. Beyond this, the message is refused as before, and the stream is stuck.
const skimmedBytesMax = 64 * 1024 * 1024;

/** Whether the RPC library refused a message of a stream for its size. Its code alone can come from a server as well. */
export function isTooLarge(error: unknown): boolean {
  return (
    error instanceof ConnectError &&
    error.code === Code.ResourceExhausted &&
    error.rawMessage.includes("readMaxBytes")
  );
}

/** The bytes of a Connect stream without messages above the limit. */
export async function* replaceLargeMessages(
  body: AsyncIterable<Uint8Array>,
  bytesMax: number,
): AsyncIterable<Uint8Array> {
  const reader = new BodyReader(body);
  for (;;) {
    const header = await reader.read(headerBytes);
    if (header.byteLength < headerBytes) {
      yield header;
      return;
    }
    const flag = header.readUInt8(0);
    const length = header.readUInt32BE(lengthOffset);
    const isCompressed = (flag & flags.compressed) !== 0;
    const mayBeLarge = (flag & flags.endOfStream) === 0 && (isCompressed || length > bytesMax);
    if (!mayBeLarge) {
      yield header;
      yield* reader.pieces(length);
    } else if (length > bytesMax) {
      const skimmer = await skim(reader.pieces(length), isCompressed);
      // A message that is cut off may have lost its version.
      if (!isCompressed && skimmer.size < length) return;
      yield envelopeOf(skimmer.finish(bytesMax));
    } else {
      const message = await reader.read(length);
      // If it is damaged, the library says so.
      const skimmer = await skim([message], isCompressed).catch(() => undefined);
      const isLarge = skimmer !== undefined && skimmer.size > bytesMax;
      yield isLarge ? envelopeOf(skimmer.finish(bytesMax)) : Buffer.concat([header, message]);
    }
  }
}

async function skim(
  pieces: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  isCompressed: boolean,
): Promise<StateSkimmer> {
  const skimmer = new StateSkimmer();
  const take = async (source: AsyncIterable<Uint8Array> | Iterable<Uint8Array>) => {
    for await (const piece of source) {
      skimmer.take(piece);
      if (skimmer.size > skimmedBytesMax)
        throw new ConnectError(`a message of more than ${skimmedBytesMax} bytes`, Code.ResourceExhausted);
    }
  };
  if (isCompressed) await pipeline(pieces, createGunzip(), take).catch(rethrowConnectError);
  else await take(pieces);
  return skimmer;
}

/** An error of the decompression has a code like one of the system, and would pass for a failed connection. */
function rethrowConnectError(error: unknown): never {
  if (error instanceof ConnectError) throw error;
  throw new ConnectError("a message that is too large cannot be decompressed", Code.Internal);
}

function envelopeOf(message: Uint8Array): Uint8Array {
  const header = Buffer.alloc(headerBytes);
  header.writeUInt32BE(message.byteLength, lengthOffset);
  return Buffer.concat([header, message]);
}

class BodyReader {
  private readonly chunks: AsyncIterator<Uint8Array>;
  private chunk: Uint8Array = new Uint8Array();

  constructor(body: AsyncIterable<Uint8Array>) {
    this.chunks = body[Symbol.asyncIterator]();
  }

  /** Fewer bytes at the end of the body. */
  async read(count: number): Promise<Buffer> {
    const pieces: Uint8Array[] = [];
    for await (const piece of this.pieces(count)) pieces.push(piece);
    return Buffer.concat(pieces);
  }

  async *pieces(count: number): AsyncGenerator<Uint8Array, void> {
    let missing = count;
    while (missing > 0) {
      if (this.chunk.byteLength === 0) {
        const next = await this.chunks.next();
        if (next.done === true) return;
        this.chunk = next.value;
        continue;
      }
      const piece = this.chunk.subarray(0, missing);
      this.chunk = this.chunk.subarray(piece.byteLength);
      missing -= piece.byteLength;
      yield piece;
    }
  }
}
