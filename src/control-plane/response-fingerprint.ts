// Recognising an answer by its bytes. A resync asks thousands of questions whose answers are the same as a minute
// ago; what is recognised need not be read, checked and compared once more. The bytes themselves are not kept:
// they would be as much memory as the state, and they hold secrets.
import { hash } from "node:crypto";
import { type ContextValues, createContextKey, createContextValues } from "@connectrpc/connect";

/** Travels with a call, and comes back with the print of its answer. */
export class ResponseFingerprint {
  private readonly known: string | undefined;
  private taken: string | undefined;

  /** `known` is the print of an answer that the caller remembers. */
  constructor(known: string | undefined) {
    this.known = known;
  }

  /** Of the answer; undefined as long as there is none, and on roads where no bytes travel. */
  get value(): string | undefined {
    return this.taken;
  }

  /** Whether the answer is the known one, byte by byte: its message is empty then. */
  get isKnown(): boolean {
    return this.taken !== undefined && this.taken === this.known;
  }

  take(bytes: Uint8Array): void {
    this.taken = hash("sha256", bytes, "base64");
  }
}

const printKey = createContextKey<ResponseFingerprint | undefined>(undefined);

export function contextWith(print: ResponseFingerprint): ContextValues {
  return createContextValues().set(printKey, print);
}

export function printOf(context: ContextValues): ResponseFingerprint | undefined {
  return context.get(printKey);
}
