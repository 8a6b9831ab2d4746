// The secrets of sessions: the cookie that carries one, what is stored of it, and how a session is bound to the token that it was
// made with. Pure.
//
// Only the browser has the secret. What is stored is its digest, and a digest of secret and token together: without the secret, nobody
// can use either to sign in, or to guess a token.
import { createHash, timingSafeEqual } from "node:crypto";
import type { Secret } from "../../config/secret.ts";
import type { StoredSession } from "../sessions.ts";

export const sessionLifetimeMs = 8 * 3_600_000;

/** Somebody who signed in with a token, or with groups at a provider, which then has a token of its own. */
export interface SignedIn {
  readonly name: string;
  readonly token: Secret;
  readonly groups?: readonly string[];
}

export function createStoredSession(
  secret: string,
  { name, token, groups }: SignedIn,
  { nowMs, lifetimeMs }: { readonly nowMs: number; readonly lifetimeMs: number },
): StoredSession {
  return {
    id: idOfSecret(secret),
    name,
    binding: bindingOf(secret, token),
    ...(groups !== undefined && { groups }),
    createdAtMs: nowMs,
    expiresAtMs: nowMs + lifetimeMs,
  };
}

export function idOfSecret(secret: string): string {
  return digest(`id ${secret}`);
}

/** Whether this is the token that the session was made with. */
export function isBoundTo({ binding }: StoredSession, secret: string, token: Secret): boolean {
  const [stored, expected] = [Buffer.from(binding), Buffer.from(bindingOf(secret, token))];
  return stored.length === expected.length && timingSafeEqual(stored, expected);
}

function bindingOf(secret: string, token: Secret): string {
  return digest(`binding ${secret} ${token.reveal()}`);
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

export interface CookieKind {
  readonly name: string;
  readonly sameSite: "Strict" | "Lax";
  /** The browser reaches the server over TLS. */
  readonly isSecure: boolean;
}

export function sessionCookie(isSecure: boolean): CookieKind {
  return { name: "krane-session", sameSite: "Strict", isSecure };
}

export function renderCookie(secret: string, kind: CookieKind, lifetimeMs = sessionLifetimeMs): string {
  const parts = [
    `${cookieName(kind)}=${secret}`,
    "Path=/",
    `Max-Age=${Math.trunc(lifetimeMs / 1_000)}`,
    "HttpOnly",
    `SameSite=${kind.sameSite}`,
    ...(kind.isSecure ? ["Secure"] : []),
  ];
  return parts.join("; ");
}

/** Undefined without a cookie, or with several: another site of the same domain may have added one. */
export function secretInCookies(
  cookies: string | null,
  kind: Pick<CookieKind, "name" | "isSecure">,
): string | undefined {
  const name = `${cookieName(kind)}=`;
  const own = (cookies ?? "").split(/; */).filter((each) => each.startsWith(name));
  const [first] = own;
  return own.length === 1 && first !== undefined ? first.slice(name.length) : undefined;
}

/** With the prefix, browsers accept the cookie from this very host over TLS only. */
function cookieName({ name, isSecure }: Pick<CookieKind, "name" | "isSecure">): string {
  return isSecure ? `__Host-${name}` : name;
}

/** A proxy in front may do the TLS. A caller who makes this up only gets a cookie that its own browser does not send. */
export function isOverTls(header: Headers, servesTls: boolean): boolean {
  return servesTls || header.get("x-forwarded-proto") === "https";
}

/**
 * Whether the request comes from a page of this server. Browsers set both headers, and pages cannot change them. Over plain HTTP they
 * only send `Origin`, except to this machine.
 */
export function isOwnPage(header: Headers): boolean {
  const site = header.get("sec-fetch-site");
  if (site !== null) return site === "same-origin";
  const [origin, host] = [header.get("origin"), header.get("host")];
  return origin !== null && host !== null && URL.canParse(origin) && new URL(origin).host === host;
}
