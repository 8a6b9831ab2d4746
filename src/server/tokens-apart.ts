// Keeps the tokens of agents and people apart: a token on both lists would give every agent the
// rights of a person. The server does not start with one; if the lists change later, such a token
// only works for the agents' API.
import type { Secret } from "../config/secret.ts";
import { type AdminToken, readAdminTokens, readAgentTokens } from "./config/token-lines.ts";
import { ServerError } from "./server-error.ts";

export interface TokensApart {
  readonly tokens: readonly AdminToken[];
  /** One for each token of people that was left out. */
  readonly problems: readonly ServerError[];
}

/** The tokens of people that are not also agents' tokens. */
export function tokensApart(people: Secret, agents: Secret | undefined): TokensApart {
  const ofAgents = agents === undefined ? [] : readAgentTokens(agents);
  const regionsByToken = new Map(ofAgents.map(({ region, token }) => [token.reveal(), region]));
  const tokens: AdminToken[] = [];
  const problems: ServerError[] = [];
  for (const each of readAdminTokens(people)) {
    const region = regionsByToken.get(each.token.reveal());
    if (region === undefined) tokens.push(each);
    else problems.push(sharedToken(each.name, region));
  }
  return { tokens, problems };
}

function sharedToken(name: string, region: string): ServerError {
  const message = `the token of ${name} is also an agent token of region ${region}; use different tokens`;
  return new ServerError("tokens_shared", `server.admin_tokens: ${message}`);
}
