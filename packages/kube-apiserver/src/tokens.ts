// Issues and reviews service account tokens. A token is issued for an audience, optionally bound to a pod, and valid only
// while the account and the pod exist. Tokens are JWTs with the real server's claims, signed with a key of this process.
import { createHmac, timingSafeEqual } from "node:crypto";
import type { ApiServerDeps } from "./clock.ts";
import { createUid } from "./identifiers.ts";
import { isObject, type Json, type JsonObject, listAt, stringAt, valueAt } from "./json.ts";
import type { User } from "./resource.ts";
import type { ObjectStore } from "./store.ts";

export const issuer = "https://kubernetes.default.svc";

export interface TokenSubject {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  readonly pod?: {
    readonly name: string;
    readonly uid: string;
    readonly node?: { readonly name: string; readonly uid?: string };
  };
}

export type TokenVerdict =
  | { readonly kind: "authenticated"; readonly user: User; readonly audiences: readonly string[] }
  | { readonly kind: "refused"; readonly error: string };

export interface TokenIssuerDeps extends ApiServerDeps {
  readonly store: ObjectStore;
  /** Fixed tokens and their users, for example the administrator's. */
  readonly staticTokens: ReadonlyMap<string, User>;
}

export class TokenIssuer {
  private readonly deps: TokenIssuerDeps;
  private readonly key: string;

  constructor(deps: TokenIssuerDeps) {
    this.deps = deps;
    this.key = createUid(deps.random);
  }

  issue(subject: TokenSubject, audiences: readonly string[], expirySeconds: number): string {
    const issued = Math.floor(this.deps.clock.wallMs() / 1000);
    const { namespace, name, uid, pod } = subject;
    const claims: JsonObject = {
      aud: [...audiences],
      exp: issued + expirySeconds,
      iat: issued,
      iss: issuer,
      jti: createUid(this.deps.random),
      "kubernetes.io": {
        namespace,
        ...(pod?.node === undefined ? {} : { node: { ...pod.node } }),
        ...(pod === undefined ? {} : { pod: { name: pod.name, uid: pod.uid } }),
        serviceaccount: { name, uid },
      },
      nbf: issued,
      sub: `system:serviceaccount:${namespace}:${name}`,
    };
    const payload = `${encode({ alg: "HS256", kid: "embedded" })}.${encode(claims)}`;
    return `${payload}.${this.sign(payload)}`;
  }

  review(token: string, audiences: readonly string[]): TokenVerdict {
    const known = this.deps.staticTokens.get(token);
    if (known !== undefined) return { kind: "authenticated", user: known, audiences: [issuer] };
    const claims = this.verify(token);
    const refused = (error: string): TokenVerdict => ({ kind: "refused", error });
    if (claims === undefined) return refused("invalid bearer token");
    const asked = audiences.length > 0 ? audiences : [issuer];
    const own = listAt(claims, "aud").map(String);
    const shared = asked.filter((audience) => own.includes(audience));
    if (shared.length === 0) {
      const list = (names: readonly string[]) => `[${names.map((name) => JSON.stringify(name)).join(" ")}]`;
      return refused(
        `[invalid bearer token, token audiences ${list(own)} is invalid for the target audiences ${list(asked)}]`,
      );
    }
    const wrong = this.findWrong(claims);
    if (wrong !== undefined) return refused(`[invalid bearer token, ${wrong}]`);
    return { kind: "authenticated", user: userOf(claims), audiences: shared };
  }

  private findWrong(claims: JsonObject): string | undefined {
    if (Number(claims["exp"]) * 1000 <= this.deps.clock.wallMs()) return "service account token has expired";
    const bound = valueAt(claims, "kubernetes.io");
    const namespace = stringAt(bound, "namespace") ?? "";
    const isLive = (plural: string, part: Json | undefined): boolean => {
      const name = stringAt(part, "name") ?? "";
      const live = this.deps.store.get({ group: "", plural, namespace, name });
      return stringAt(live, "metadata", "uid") === stringAt(part, "uid");
    };
    if (!isLive("serviceaccounts", valueAt(bound, "serviceaccount")))
      return "service account token has been invalidated";
    const pod = valueAt(bound, "pod");
    if (pod !== undefined && !isLive("pods", pod)) return "service account token has been invalidated";
    return undefined;
  }

  private verify(token: string): JsonObject | undefined {
    const parts = token.split(".");
    const [header, payload, signature] = parts;
    if (parts.length !== 3 || header === undefined || payload === undefined || signature === undefined)
      return undefined;
    const expected = Buffer.from(this.sign(`${header}.${payload}`));
    const given = Buffer.from(signature);
    if (expected.length !== given.length || !timingSafeEqual(expected, given)) return undefined;
    const claims: unknown = JSON.parse(Buffer.from(payload, "base64url").toString());
    return isObject(claims) ? claims : undefined;
  }

  private sign(payload: string): string {
    return createHmac("sha256", this.key).update(payload).digest("base64url");
  }
}

function encode(part: JsonObject): string {
  return Buffer.from(JSON.stringify(part)).toString("base64url");
}

function userOf(claims: JsonObject): User {
  const bound = valueAt(claims, "kubernetes.io");
  const extra: Record<string, readonly string[]> = {
    "authentication.kubernetes.io/credential-id": [`JTI=${stringAt(claims, "jti")}`],
  };
  for (const part of ["node", "pod"]) {
    for (const field of ["name", "uid"]) {
      const value = stringAt(bound, part, field);
      if (value !== undefined) extra[`authentication.kubernetes.io/${part}-${field}`] = [value];
    }
  }
  return {
    username: stringAt(claims, "sub") ?? "",
    uid: stringAt(bound, "serviceaccount", "uid") ?? "",
    groups: [
      "system:serviceaccounts",
      `system:serviceaccounts:${stringAt(bound, "namespace")}`,
      "system:authenticated",
    ],
    extra,
  };
}
