// The OpenID Connect provider, through `openid-client`: where to send somebody who signs in, and who they are when they come back.
// Everything that a provider signs is verified there: issuer, audience, signature, time, nonce, state and PKCE.
import type { Configuration } from "openid-client";
import type { Secret } from "../../config/secret.ts";
import type { SecretSource } from "../../config/secret-source.ts";

export interface ProviderOptions {
  readonly issuer: string;
  readonly clientId: string;
  /** Absent for a public client. */
  readonly clientSecret?: SecretSource | undefined;
  readonly scopes: readonly string[];
}

/** What only the browser that began to sign in, and this server, can compute. */
export interface SignInChecks {
  readonly state: string;
  readonly nonce: string;
  readonly codeVerifier: string;
}

export type Claims = Readonly<Record<string, unknown>>;

/** `denied`: the provider said no. `invalid`: what came back does not prove anything. `unavailable`: the provider does not answer. */
export type ProviderFailure = "denied" | "invalid" | "unavailable";

export class ProviderError extends Error {
  readonly failure: ProviderFailure;

  constructor(failure: ProviderFailure, message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "ProviderError";
    this.failure = failure;
  }
}

export interface Provider {
  authorizationUrl(redirectUri: string, checks: SignInChecks, signal: AbortSignal): Promise<URL>;
  /** Who came back to `url`; `wanted` are claims to look up if the ID token does not have them. */
  claims(url: URL, checks: SignInChecks, wanted: readonly string[], signal: AbortSignal): Promise<Claims>;
}

type Client = typeof import("openid-client");

const timeoutSeconds = 10;

export function createProvider({ issuer, clientId, clientSecret, scopes }: ProviderOptions): Provider {
  let known: { readonly secret: Secret | undefined; readonly configuration: Configuration } | undefined;
  /** Discovered when it is first needed, so that a server starts without its provider. */
  const configure = async (client: Client, signal: AbortSignal): Promise<Configuration> => {
    const secret = await clientSecret?.current(signal);
    if (known !== undefined && known.secret?.reveal() === secret?.reveal()) return known.configuration;
    const authentication = secret === undefined ? client.None() : client.ClientSecretBasic(secret.reveal());
    const url = new URL(issuer);
    const configuration = await client.discovery(url, clientId, undefined, authentication, {
      timeout: timeoutSeconds,
      execute: [
        // The ID token comes from the provider itself, over TLS. Its signature is verified as well.
        client.enableNonRepudiationChecks,
        // The settings allow it for a provider on this machine only.
        ...(url.protocol === "http:" ? [client.allowInsecureRequests] : []),
      ],
    });
    known = { secret, configuration };
    return configuration;
  };
  return {
    async authorizationUrl(redirectUri, { state, nonce, codeVerifier }, signal) {
      const client = await loadClient();
      const configuration = await configure(client, signal).catch((error: unknown) => {
        throw explain(error, "unavailable");
      });
      return client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: scopes.join(" "),
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(codeVerifier),
        code_challenge_method: "S256",
      });
    },
    async claims(url, { state, nonce, codeVerifier }, wanted, signal) {
      const client = await loadClient();
      const configuration = await configure(client, signal).catch((error: unknown) => {
        throw explain(error, "unavailable");
      });
      try {
        const tokens = await client.authorizationCodeGrant(configuration, url, {
          expectedState: state,
          expectedNonce: nonce,
          pkceCodeVerifier: codeVerifier,
          idTokenExpected: true,
        });
        const own: Claims & { readonly sub?: string } = tokens.claims() ?? {};
        const isComplete = wanted.every((name) => name in own);
        if (isComplete || configuration.serverMetadata().userinfo_endpoint === undefined) return own;
        const more = await client.fetchUserInfo(configuration, tokens.access_token, own.sub ?? "");
        return { ...more, ...own };
      } catch (error) {
        throw explain(error, "invalid");
      }
    },
  };
}

/** 100 KB that only a server with a provider needs. */
function loadClient(): Promise<Client> {
  return import("openid-client");
}

/** Without its cause, which may have the response of the provider with its tokens. */
function explain(error: unknown, otherwise: ProviderFailure): ProviderError {
  const { name, message } = error instanceof Error ? error : { name: "Error", message: String(error) };
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : undefined;
  const isNetwork = name === "TypeError" || inner?.name === "TypeError" || /timed out|timeout/i.test(message);
  if (name === "AuthorizationResponseError") {
    const code = (error as { readonly error?: unknown }).error;
    const failure = code === "server_error" || code === "temporarily_unavailable" ? "unavailable" : "denied";
    return new ProviderError(failure, `the provider answered ${printable(code)}`);
  }
  const detail = inner === undefined ? message : `${message}: ${inner.message}`;
  return new ProviderError(isNetwork ? "unavailable" : otherwise, printable(detail));
}

function printable(value: unknown): string {
  return String(value)
    .replace(/[^ -~]/g, "?")
    .slice(0, 300);
}
