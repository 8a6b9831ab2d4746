// The bearer token for the control plane. It is read for every call, so that a rotated token is used from the next call
// on, and removed from every text that leaves this folder.
import type { SecretSource } from "../config/secret-source.ts";

const redacted = "[redacted]";
// While a token rotates, responses to calls with the old one still arrive.
const rememberedMax = 2;

export interface Bearer {
  /** The value of the Authorization header, with the current token. */
  authorization(signal: AbortSignal): Promise<string>;
  /** The server rejected the token: the next call reads it again. */
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
