// A server that is busy can say when to come back: as a google.rpc.RetryInfo beside the
// error, or as a Retry-After header, which is what proxies send. Of the header only the
// form in seconds is read; a date would have to trust that both clocks agree.
import { fromBinary } from "@bufbuild/protobuf";
import { BinaryReader, WireType } from "@bufbuild/protobuf/wire";
import { DurationSchema, durationMs } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { clampRetryAfterMs } from "../concurrency/backoff.ts";

const retryInfoType = "google.rpc.RetryInfo";
const retryDelayField = 1;

/** The wait that the server asked for, kept within sane limits; undefined when it asked for none. */
export function retryHintMs(error: ConnectError): number | undefined {
  const hintMs = fromDetails(error) ?? fromHeader(error.metadata.get("retry-after"));
  return hintMs === undefined ? undefined : clampRetryAfterMs(hintMs);
}

function fromDetails(error: ConnectError): number | undefined {
  for (const detail of error.details) {
    if (!("type" in detail) || detail.type !== retryInfoType) continue;
    const delayMs = parseRetryInfo(detail.value);
    if (delayMs !== undefined) return delayMs;
  }
  return undefined;
}

function parseRetryInfo(bytes: Uint8Array): number | undefined {
  try {
    const reader = new BinaryReader(bytes);
    while (reader.pos < reader.len) {
      const [field, wireType] = reader.tag();
      if (field === retryDelayField && wireType === WireType.LengthDelimited)
        return durationMs(fromBinary(DurationSchema, reader.bytes()));
      reader.skip(wireType, field);
    }
  } catch {
    // A hint that cannot be read is no hint; the error it came with still counts.
  }
  return undefined;
}

function fromHeader(value: string | null): number | undefined {
  const seconds = /^\s*(\d{1,9})\s*(?:,|$)/.exec(value ?? "")?.[1];
  return seconds === undefined ? undefined : Number(seconds) * 1_000;
}
