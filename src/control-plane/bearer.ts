// The token of the control plane: asked for at every call, so that a rotated one is used
// from the next call on, and taken out of every text that goes further than this folder.
import type { SecretSource } from "../config/secret-source.ts";

const redacted = "[redacted]";
// While a token rotates, answers to the old one still arrive.
const rememberedMax = 2;

export interface Bearer {
  /** The value of the header field, with the token as it is now. */
  authorization(signal: AbortSignal): Promise<string>;
  /** The server refused the token: the next call reads it anew. */
  refused(): void;
  /** The text without the tokens that were sent. */
  redact(text: string): string;
}

export function createBearer(token: SecretSource): Bearer {
  let sent: readonly string[] = [];
  return {
    async authorization(signal) {
      const value = (await token.current(signal)).reveal();
      if (sent[0] !== value) sent = [value, ...sent.filter((each) => each !== value)].slice(0, rememberedMax);
      return `Bearer ${value}`;
    },
    refused: () => token.refresh(),
    redact: (text) => sent.reduce((clean, value) => clean.replaceAll(value, redacted), text),
  };
}
