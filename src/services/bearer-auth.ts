// Authenticates callers by bearer token. Tokens are compared as SHA-256 digests, which have the equal length that a
// constant-time comparison needs. Every known token is compared, so that the time taken reveals neither how much of a
// guess was right nor which token matched.
import { createHash, timingSafeEqual } from "node:crypto";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Secret } from "../config/secret.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { type Admit, createAdmission } from "./call-admission.ts";

const scheme = "Bearer ";

/** Rejects every call without one of the tokens as `unauthenticated`; without any tokens, all calls. */
export function createBearerAuth(tokens: readonly Secret[]): Interceptor {
  const known = tokens.map(digestOf);
  return createAdmission(({ header }) => void matchBearer(header, known));
}

/** The same for one token that may rotate while krane runs. */
export function createRotatingBearerAuth(token: SecretSource): Interceptor {
  return createAdmission(admitBearer(token));
}

/** Admits calls that carry the current token. */
export function admitBearer(token: SecretSource): Admit {
  return async ({ header, signal }) => {
    matchBearer(header, [digestOf(await token.current(signal))]);
  };
}

/** Returns the indexes of the known tokens that match. Throws `unauthenticated` when none does. */
export function matchBearer(header: Headers, known: readonly Buffer[]): readonly number[] {
  const presented = header.get("authorization") ?? "";
  const guess = digest(presented.slice(scheme.length));
  const matches = known.flatMap((token, index) => (timingSafeEqual(token, guess) ? [index] : []));
  if (!presented.startsWith(scheme) || matches.length === 0) {
    throw new ConnectError("a valid bearer token is needed", Code.Unauthenticated);
  }
  return matches;
}

/** The digest of a token, for comparison. */
export function digestOf(token: Secret): Buffer {
  const text = token.reveal();
  if (text === "") throw new TypeError("an empty bearer token would let everybody in");
  return digest(text);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
