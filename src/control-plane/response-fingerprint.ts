// Recognizes a response by a hash of its bytes. Most of the thousands of responses to a resync are the same as a minute
// ago, and need not be parsed, validated and compared again. The bytes themselves are not kept: they would take as much
// memory as the state, and they contain secrets.
import { hash } from "node:crypto";
import { type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";

/** Passed along with a call, and holds the fingerprint of its response afterwards. */
export class ResponseFingerprint {
  private readonly known: string | undefined;
  private taken: string | undefined;

  /** `known` is the fingerprint of an earlier response. */
  constructor(known: string | undefined) {
    this.known = known;
  }

  /** Undefined before the response, and on transports without bytes. */
  get value(): string | undefined {
    return this.taken;
  }

  /** Whether the response equals the known one, byte for byte. Its message is empty then. */
  get isKnown(): boolean {
    return this.taken !== undefined && this.taken === this.known;
  }

  take(bytes: Uint8Array): void {
    this.taken = hash("sha256", bytes, "base64");
  }
}

const fingerprintKey = createContextKey<ResponseFingerprint | undefined>(undefined);

export function contextWith(fingerprint: ResponseFingerprint): ContextValues {
  return createContextValues().set(fingerprintKey, fingerprint);
}

export function fingerprintOf(context: ContextValues): ResponseFingerprint | undefined {
  return context.get(fingerprintKey);
}
