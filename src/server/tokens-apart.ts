// One token for both lists would let every agent do what people may. The start refuses it; the
// lists may change afterwards, and then the token opens the API of the agents alone.
import type { Secret } from "../config/secret.ts";
import { type AdminToken, readAdminTokens, readAgentTokens } from "./config/token-lines.ts";
import { ServerError } from "./server-error.ts";

export interface TokensApart {
  readonly tokens: readonly AdminToken[];
  /** One for each token of people that was left out. */
  readonly problems: readonly ServerError[];
}

/** The tokens of people that are not also those of agents. */
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
  const message = `the token of ${name} is also that of the agents of ${region}; give each its own`;
  return new ServerError("tokens_shared", `server.admin_tokens: ${message}`);
}
