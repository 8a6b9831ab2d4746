// Who may call. Tokens are compared as SHA-256 digests: these have one length, as a
// comparison in constant time needs, and every known token is compared, so that the
// time taken tells neither how much of a guess was right nor which token it was.
import { createHash, timingSafeEqual } from "node:crypto";
import { Code, ConnectError, type Interceptor } from "@connectrpc/connect";
import type { Secret } from "../config/secret.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { type Admit, createAdmission } from "./call-admission.ts";

const scheme = "Bearer ";

/** Answers `unauthenticated` to every call without one of the tokens; without tokens, to all. */
export function createBearerAuth(tokens: readonly Secret[]): Interceptor {
  const known = tokens.map(digestOf);
  return createAdmission(({ header }) => void matchBearer(header, known));
}

/** The same for one token that may be replaced while krane runs. */
export function createRotatingBearerAuth(token: SecretSource): Interceptor {
  return createAdmission(admitBearer(token));
}

/** Lets in who has the token of the moment. */
export function admitBearer(token: SecretSource): Admit {
  return async ({ header, signal }) => {
    matchBearer(header, [digestOf(await token.current(signal))]);
  };
}

/** The places of the known tokens that the call carries; `unauthenticated` when it carries none of them. */
export function matchBearer(header: Headers, known: readonly Buffer[]): readonly number[] {
  const presented = header.get("authorization") ?? "";
  const guess = digest(presented.slice(scheme.length));
  const matches = known.flatMap((token, index) => (timingSafeEqual(token, guess) ? [index] : []));
  if (!presented.startsWith(scheme) || matches.length === 0) {
    throw new ConnectError("a valid bearer token is needed", Code.Unauthenticated);
  }
  return matches;
}

/** A token in the form in which it is compared. */
export function digestOf(token: Secret): Buffer {
  const text = token.reveal();
  if (text === "") throw new TypeError("an empty bearer token would let everybody in");
  return digest(text);
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
