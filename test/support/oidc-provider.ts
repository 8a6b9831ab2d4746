// A real OpenID Connect provider on this machine (`oidc-provider`, which is certified), with people and groups that a test can change,
// and ID tokens that it can forge with the provider's own key.
import { createHash, generateKeyPairSync, type KeyObject, sign } from "node:crypto";
import { once } from "node:events";
import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import Provider, { type Configuration } from "oidc-provider";

export interface TestClient {
  readonly clientId: string;
  readonly clientSecret: string;
  readonly redirectUri: string;
}

export interface Person {
  readonly email: string;
  readonly email_verified: boolean;
  readonly groups: readonly string[];
}

export interface IdToken {
  readonly header: Readonly<Record<string, unknown>>;
  readonly claims: Readonly<Record<string, unknown>>;
  /** Default: the provider's. */
  readonly key?: KeyObject;
}

export interface RunningProvider {
  readonly issuer: string;
  /** By login. */
  readonly people: Map<string, Person>;
  /** Changes the ID tokens that it hands out from now on; undefined leaves the token out. */
  forge: ((token: IdToken) => IdToken | undefined) | undefined;
  /** While true, claims of scopes are only at its userinfo endpoint, as OpenID Connect has it. */
  readonly tokens: readonly string[];
  stop(): Promise<void>;
}

/** On `localhost`, so that for a browser it is another site than 127.0.0.1. */
export async function startOidcProvider(
  port: number,
  client: TestClient,
  { conformIdTokenClaims = false } = {},
): Promise<RunningProvider> {
  const issuer = `http://localhost:${port}`;
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  const people = new Map<string, Person>();
  const tokens: string[] = [];
  const configuration: Configuration = {
    clients: [
      {
        client_id: client.clientId,
        client_secret: client.clientSecret,
        redirect_uris: [client.redirectUri],
        grant_types: ["authorization_code"],
        response_types: ["code"],
      },
    ],
    jwks: {
      keys: [{ ...privateKey.export({ format: "jwk" }), kid: "own", alg: "RS256", use: "sig" } as never],
    },
    claims: { openid: ["sub"], email: ["email", "email_verified"], groups: ["groups"] },
    scopes: ["openid", "email", "groups"],
    conformIdTokenClaims,
    cookies: { keys: ["of the test"] },
    ttl: { AccessToken: 60, AuthorizationCode: 60, Grant: 60, IdToken: 60, Interaction: 600, Session: 600 },
    findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id, ...people.get(id) }) }),
    // Nobody is asked whether krane may know them.
    async loadExistingGrant({ oidc }) {
      const grant = new oidc.provider.Grant({
        clientId: oidc.client?.clientId ?? "",
        accountId: oidc.session?.accountId ?? "",
      });
      grant.addOIDCScope("openid email groups");
      await grant.save();
      return grant;
    },
  };
  const provider = new Provider(issuer, configuration);
  const handle = provider.callback();
  const running: { forge: RunningProvider["forge"] } = { forge: undefined };
  const server = createServer((request: IncomingMessage, response: ServerResponse) => {
    if (request.url === "/token") alterTokens(response, running, privateKey, tokens);
    void handle(request, response);
  });
  server.listen(port, "localhost");
  await once(server, "listening");
  return Object.assign(running, {
    issuer,
    people,
    tokens,
    async stop() {
      server.closeAllConnections();
      server.close();
      await once(server, "close");
    },
  });
}

/** The provider writes its whole answer at once. */
function alterTokens(
  response: ServerResponse,
  running: { readonly forge: RunningProvider["forge"] },
  key: KeyObject,
  tokens: string[],
): void {
  const end = response.end.bind(response) as (body: string) => ServerResponse;
  response.end = ((body: unknown) => {
    const answer = JSON.parse(String(body)) as { id_token?: string; access_token?: string };
    if (answer.id_token !== undefined && running.forge !== undefined) {
      const [header, claims] = answer.id_token
        .split(".")
        .slice(0, 2)
        .map((part) => JSON.parse(Buffer.from(part, "base64url").toString()) as Record<string, unknown>);
      const forged = running.forge({ header: header ?? {}, claims: claims ?? {} });
      if (forged === undefined) delete answer.id_token;
      else answer.id_token = signed(forged, key);
    }
    for (const token of [answer.id_token, answer.access_token]) if (token !== undefined) tokens.push(token);
    const text = JSON.stringify(answer);
    response.setHeader("content-length", Buffer.byteLength(text));
    return end(text);
  }) as ServerResponse["end"];
}

function signed({ header, claims, key: own }: IdToken, key: KeyObject): string {
  const text = [header, claims]
    .map((part) => Buffer.from(JSON.stringify(part)).toString("base64url"))
    .join(".");
  if (header["alg"] === "none") return `${text}.`;
  if (header["alg"] === "HS256")
    // With the public key as the secret: a verifier that lets the token choose would accept it.
    return `${text}.${createHash("sha256").update(text).digest("base64url")}`;
  return `${text}.${sign("sha256", Buffer.from(text), own ?? key).toString("base64url")}`;
}
