// Builds what signs people in with a provider, from the configuration.

import { Secret } from "../../config/secret.ts";
import { createSecretSource } from "../../config/secret-source.ts";
import type { ProviderAccess } from "../admin-service/admin-auth.ts";
import type { OidcChoice } from "../config/server-config.ts";
import { serverSettings } from "../config/server-settings.ts";
import { parseGroupRole } from "./access.ts";
import { createProvider } from "./provider.ts";
import { SignIn, type SignInDeps } from "./sign-in.ts";

export interface CreatedSignIn {
  readonly signIn: SignIn;
  readonly people: ProviderAccess;
}

export function createSignIn(
  oidc: OidcChoice,
  deps: SignInDeps & { readTextFile(path: string, signal: AbortSignal): Promise<string> },
): CreatedSignIn {
  const { issuer, clientId, clientSecret, scopes, publicUrl, nameClaim, groupsClaim } = oidc;
  const source =
    clientSecret &&
    createSecretSource(
      clientSecret,
      {
        readTextFile: deps.readTextFile,
        nowMs: () => deps.clock.nowMs(),
        onFailure: (error) =>
          deps.log.warn("cannot reload the client secret; keeping the current one", { error }),
      },
      serverSettings.oidcClientSecret.kind,
    );
  const roles = oidc.roles.flatMap((line) => parseGroupRole(line) ?? []);
  // No token has a space, so no session of a token is ever bound to it.
  const anchor = new Secret(`oidc ${issuer} ${clientId}`);
  const provider = createProvider({ issuer, clientId, clientSecret: source, scopes });
  const providerName = new URL(issuer).host;
  return {
    signIn: new SignIn({ provider, providerName, publicUrl, nameClaim, groupsClaim, roles, anchor }, deps),
    people: { roles, anchor },
  };
}
