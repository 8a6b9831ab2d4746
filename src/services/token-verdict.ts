// Interprets the response to a TokenReview. Accepts only what it states explicitly: `authenticated` is absent, not
// false, for a bad token, and an API server without support for audiences returns none.
import type { TokenReviewStatus } from "kubernetes-types/authentication/v1.js";

/** Why a token does not identify its sender. */
export type TokenRefusal =
  | "token missing"
  | "token too large"
  | "token is not a JWT"
  | "token not authenticated"
  | "token is for another audience"
  | "token does not belong to a service account"
  | "token is not bound to a pod";

/** The pod that a token was issued for, according to the API server. */
export interface TokenSubject {
  readonly namespace: string;
  readonly serviceAccount: string;
  readonly podName: string;
  readonly podUid: string;
}

export type TokenVerdict =
  | {
      readonly kind: "genuine";
      readonly subject: TokenSubject;
      /** It is for the API server, and the settings do not allow that: it counts only for a pod of the original. */
      readonly isForApiServer?: true;
    }
  | { readonly kind: "refused"; readonly reason: TokenRefusal };

const podName = "authentication.kubernetes.io/pod-name";
const podUid = "authentication.kubernetes.io/pod-uid";

/** Without an audience, the token must be for the API server itself. */
export function judgeTokenReview(
  status: TokenReviewStatus | undefined,
  audience: string | undefined,
): TokenVerdict {
  if (status?.authenticated !== true || status.error) return refused("token not authenticated");
  const audiences = status.audiences ?? [];
  const isForUs = audience === undefined ? audiences.length > 0 : audiences.includes(audience);
  if (!isForUs) return refused("token is for another audience");
  const [system, kind, namespace, serviceAccount, ...rest] = (status.user?.username ?? "").split(":");
  const isAccount = system === "system" && kind === "serviceaccount" && rest.length === 0;
  if (!isAccount || !isName(namespace) || !isName(serviceAccount))
    return refused("token does not belong to a service account");
  const name = only(status.user?.extra?.[podName]);
  const uid = only(status.user?.extra?.[podUid]);
  if (!isName(name) || !uid) return refused("token is not bound to a pod");
  return { kind: "genuine", subject: { namespace, serviceAccount, podName: name, podUid: uid } };
}

function refused(reason: TokenRefusal): TokenVerdict {
  return { kind: "refused", reason };
}

function only(values: readonly string[] | undefined): string | undefined {
  return values?.length === 1 ? values[0] : undefined;
}

// The name becomes part of a request path.
function isName(text: string | undefined): text is string {
  return text !== undefined && /^[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?$/.test(text);
}

// A Kubernetes token is one to two KiB, and far below this limit even with all possible claims.
const tokenBytesMax = 16 * 1024;

const jwt = /^[\w-]+\.[\w-]+\.[\w-]+$/;

/** Why a text cannot be a token, checked without a request. */
export function findTokenFlaw(token: string): TokenRefusal | undefined {
  if (token === "") return "token missing";
  if (token.length > tokenBytesMax) return "token too large";
  return jwt.test(token) ? undefined : "token is not a JWT";
}

/** When a token expires, in milliseconds since 1970. Only for tokens that the API server has accepted. */
export function expiryOf(token: string): number | undefined {
  try {
    const claims: unknown = JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
    const exp = typeof claims === "object" && claims !== null && "exp" in claims ? claims.exp : undefined;
    return typeof exp === "number" ? exp * 1_000 : undefined;
  } catch {
    return undefined;
  }
}
