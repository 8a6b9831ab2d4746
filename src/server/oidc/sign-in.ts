// Signs browsers in with an OpenID Connect provider: sends them there, and makes the session of whoever comes back.
//
// Who begins gets a cookie with a secret. State, nonce and the verifier of PKCE are digests of it, so that a response is accepted only
// from the browser that asked for it, and what is stored signs nobody in. A sign-in is stored until it is completed or expires, and is
// completed once, on any server.
//
// The cookie of the way there is SameSite=Lax: the way back begins at the provider, so a strict one would not be sent. The session is
// SameSite=Strict. A browser does not send it with the redirect to the page, which needs none; the page's own calls have it.
import { createHash } from "node:crypto";
import type { Writable } from "node:stream";
import type { Clock } from "../../concurrency/clock.ts";
import type { Secret } from "../../config/secret.ts";
import type { HttpHandler, HttpRequest, HttpResponse } from "../../http/http-handler.ts";
import { RateLimit } from "../../http/rate-limit.ts";
import type { Log } from "../../telemetry/log.ts";
import {
  type CookieKind,
  createStoredSession,
  idOfSecret,
  isOverTls,
  renderCookie,
  secretInCookies,
  sessionCookie,
} from "../admin-service/session-secrets.ts";
import type { SessionStore } from "../sessions.ts";
import { accessOf, type GroupRole } from "./access.ts";
import { type Claims, type Provider, ProviderError, type SignInChecks } from "./provider.ts";

const signInPath = "/dashboard/sign-in";
const signedInPath = "/dashboard/signed-in";
const providerPath = "/dashboard/provider";
const pagePath = "/dashboard/";

/** Beside the session, whose name it must not have. */
const signInCookie = "krane-sign-in";
const signInLifetimeMs = 10 * 60_000;
/** A group that somebody loses at the provider is lost here after this time at the latest. */
const oidcSessionLifetimeMs = 60 * 60_000;
// Two requests for each sign-in. For each address.
const requestsLimit = { burst: 40, perSecond: 40 / 60, keysMax: 10_000 };

export interface SignInOptions {
  readonly provider: Provider;
  /** Shown on the button. */
  readonly providerName: string;
  /** Where browsers reach this server: scheme, host and port. */
  readonly publicUrl: string;
  readonly nameClaim: string;
  readonly groupsClaim: string;
  readonly roles: readonly GroupRole[];
  /** Ties the sessions to the provider and to the client of these settings. */
  readonly anchor: Secret;
}

export interface SignInDeps {
  readonly sessions: SessionStore;
  readonly clock: Clock;
  readonly log: Log;
  readonly servesTls: boolean;
  /** Generates unguessable text. */
  createToken(): string;
}

/** Why nobody was signed in. The page has the words for each. */
export type SignInProblem = "busy" | "denied" | "expired" | "invalid" | "unavailable" | "name" | "access";

class Refusal extends Error {
  readonly problem: SignInProblem;

  constructor(problem: SignInProblem, message: string) {
    super(message);
    this.name = "Refusal";
    this.problem = problem;
  }
}

export class SignIn {
  private readonly options: SignInOptions;
  private readonly deps: SignInDeps;
  private readonly requests: RateLimit;
  private readonly stopping = new AbortController();

  constructor(options: SignInOptions, deps: SignInDeps) {
    this.options = options;
    this.deps = deps;
    this.requests = new RateLimit(requestsLimit, deps);
  }

  routes(): ReadonlyMap<string, HttpHandler> {
    return new Map([
      [providerPath, (request, response) => this.showProvider(request, response)],
      [
        signInPath,
        (request, response) => this.answer(request, response, (header) => this.begin(request, header)),
      ],
      [
        signedInPath,
        (request, response) => this.answer(request, response, (header) => this.complete(request, header)),
      ],
    ]);
  }

  /** Ends calls to the provider. */
  close(): void {
    this.stopping.abort();
  }

  /** What the page asks before anybody is signed in. */
  private showProvider(request: HttpRequest, response: HttpResponse): void {
    response.setHeader("content-type", "application/json");
    response.setHeader("cache-control", "no-store");
    const output: Writable = response;
    if (request.method === "HEAD") output.end();
    else output.end(JSON.stringify({ name: this.options.providerName }));
  }

  /** A problem leads to the page, which says what to do. */
  private async answer(
    request: HttpRequest,
    response: HttpResponse,
    handle: (header: Headers) => Promise<Redirect>,
  ): Promise<void> {
    const header = new Headers();
    for (const name of ["cookie", "x-forwarded-proto", "sec-fetch-site"])
      if (typeof request.headers[name] === "string") header.set(name, request.headers[name]);
    let redirect: Redirect;
    try {
      if (request.method !== "GET") throw new Refusal("invalid", "only GET signs in");
      if (!this.requests.take(request.socket.remoteAddress ?? ""))
        throw new Refusal("busy", "too many attempts");
      redirect = await handle(header);
    } catch (error) {
      // The sign-in is over, so its cookie is useless.
      const over = renderCookie("", this.signInCookie(header), 0);
      redirect = { to: `${pagePath}?sign-in=${this.problemOf(error)}`, cookies: [over] };
    }
    response.statusCode = 303;
    response.setHeader("location", redirect.to);
    response.setHeader("content-length", "0");
    response.setHeader("cache-control", "no-store");
    if (redirect.cookies.length > 0) response.setHeader("set-cookie", [...redirect.cookies]);
    const output: Writable = response;
    output.end();
  }

  private problemOf(error: unknown): SignInProblem {
    const isExpected = error instanceof Refusal || error instanceof ProviderError;
    const problem = error instanceof Refusal ? error.problem : undefined;
    const failure = error instanceof ProviderError ? error.failure : "unavailable";
    if (isExpected) this.deps.log.warn("sign-in refused", { reason: problem ?? failure, error });
    else this.deps.log.error("sign-in failed", { error });
    return problem ?? failure;
  }

  private async begin(request: HttpRequest, header: Headers): Promise<Redirect> {
    // A link elsewhere could otherwise sign somebody in who only meant to look at that page.
    if (header.get("sec-fetch-site") === "cross-site") return { to: pagePath, cookies: [] };
    const secret = this.deps.createToken();
    const url = await this.options.provider.authorizationUrl(
      this.redirectUri(),
      checksOf(secret),
      this.stopping.signal,
    );
    const nowMs = this.deps.clock.wallMs();
    const returnTo = returnPathOf(new URL(request.url ?? "/", this.options.publicUrl).searchParams.get("to"));
    await this.deps.sessions.beginSignIn(
      { id: idOfSecret(secret), returnTo, expiresAtMs: nowMs + signInLifetimeMs },
      nowMs,
    );
    return { to: url.href, cookies: [renderCookie(secret, this.signInCookie(header), signInLifetimeMs)] };
  }

  private async complete(request: HttpRequest, header: Headers): Promise<Redirect> {
    const kind = this.signInCookie(header);
    const secret = secretInCookies(header.get("cookie"), kind);
    const nowMs = this.deps.clock.wallMs();
    const begun = secret === undefined ? undefined : await this.deps.sessions.takeSignIn(idOfSecret(secret));
    if (secret === undefined || begun === undefined || begun.expiresAtMs <= nowMs)
      throw new Refusal(
        "expired",
        "this browser has not begun to sign in, or too long ago, or was signed in",
      );
    const { provider, nameClaim, groupsClaim, roles, anchor } = this.options;
    const url = new URL(this.redirectUri());
    url.search = new URL(request.url ?? "/", this.options.publicUrl).search;
    const claims = await provider.claims(
      url,
      checksOf(secret),
      [nameClaim, groupsClaim],
      this.stopping.signal,
    );
    const name = nameOf(claims, nameClaim);
    const groups = groupsOf(claims, groupsClaim);
    if (accessOf(groups, roles) === undefined)
      throw new Refusal("access", `no group of ${name} has a role (${groups.length} groups)`);
    // Always a new one: a secret that somebody planted before is worth nothing.
    const sessionSecret = this.deps.createToken();
    const session = createStoredSession(
      sessionSecret,
      { name, token: anchor, groups },
      { nowMs, lifetimeMs: oidcSessionLifetimeMs },
    );
    await this.deps.sessions.add(session);
    this.deps.log.info("signed in", { name });
    const cookies = [
      renderCookie(sessionSecret, sessionCookie(kind.isSecure), oidcSessionLifetimeMs),
      renderCookie("", kind, 0),
    ];
    return { to: begun.returnTo, cookies };
  }

  private signInCookie(header: Headers): CookieKind {
    return { name: signInCookie, sameSite: "Lax", isSecure: isOverTls(header, this.deps.servesTls) };
  }

  private redirectUri(): string {
    return `${this.options.publicUrl}${signedInPath}`;
  }
}

interface Redirect {
  readonly to: string;
  readonly cookies: readonly string[];
}

function checksOf(secret: string): SignInChecks {
  const derive = (purpose: string) => createHash("sha256").update(`${purpose} ${secret}`).digest("base64url");
  return { state: derive("state"), nonce: derive("nonce"), codeVerifier: derive("verifier") };
}

/** A view of the dashboard, and never another site. */
function returnPathOf(to: string | null): string {
  const isView =
    to !== null &&
    to.length <= 2_000 &&
    /^\/dashboard\/(?!\/)[\w.~!$&'()*+,;=:@%/?-]*$/.test(to) &&
    !to.includes("//");
  const isOwn = isView && [signInPath, signedInPath, providerPath].every((path) => !to.startsWith(path));
  return isOwn && new URL(to, "http://krane").pathname.startsWith(pagePath) ? to : pagePath;
}

/** With a prefix that no name of a token has, so that history never takes one for the other. */
function nameOf(claims: Claims, claim: string): string {
  const value = claims[claim];
  if (typeof value !== "string" || !/^[\p{L}\p{N}._@+-]{1,128}$/u.test(value))
    throw new Refusal("name", `the claim ${claim} is missing, or is not a name`);
  // Anybody may write any address into some providers.
  if (claim === "email" && claims["email_verified"] === false)
    throw new Refusal("name", "the provider has not verified the address");
  return `oidc:${value}`;
}

const groupsMax = 1_000;

function groupsOf(claims: Claims, claim: string): readonly string[] {
  const value = claims[claim];
  const groups = Array.isArray(value) ? value : [value];
  return groups.filter((group) => typeof group === "string" && group.length <= 256).slice(0, groupsMax);
}
