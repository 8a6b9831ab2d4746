// Authenticates agents by bearer tokens, each of which belongs to one region. A token listed
// for several regions is valid for all of them. A region may have several tokens, so that
// one can be replaced without an outage.
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  type Interceptor,
} from "@connectrpc/connect";
import type { Secret } from "../config/secret.ts";
import type { SecretSource } from "../config/secret-source.ts";
import { digestOf, matchBearer } from "../services/bearer-auth.ts";
import { createAdmission } from "../services/call-admission.ts";
import { readAgentTokens } from "./config/token-lines.ts";

interface TokenTable {
  readonly source: Secret;
  readonly digests: readonly Buffer[];
  /** In the same order as the digests. */
  readonly regions: readonly string[];
}

/** The source holds lines of region and token; see token-lines.ts. */
export function createAgentAuth(source: SecretSource): Interceptor {
  let table: TokenTable | undefined;
  return createAdmission(async ({ header, values, signal }) => {
    const secret = await source.current(signal);
    // With hundreds of regions it pays to keep the digests until the file changes.
    if (table?.source.reveal() !== secret.reveal()) table = createTable(secret);
    const { digests, regions } = table ?? createTable(secret);
    const matches = matchBearer(header, digests);
    allowRegions(values, new Set(matches.map((index) => regions[index] ?? "")));
  });
}

function createTable(source: Secret): TokenTable {
  const tokens = readAgentTokens(source);
  return {
    source,
    digests: tokens.map(({ token }) => digestOf(token)),
    regions: tokens.map(({ region }) => region),
  };
}

// Attached to the call when its token is checked. No value means all regions.
const allowedRegions = createContextKey<ReadonlySet<string> | undefined>(undefined, {
  description: "the regions that the caller may act for",
});

function allowRegions(values: ContextValues, regions: ReadonlySet<string>): void {
  values.set(allowedRegions, regions);
}

/** Throws `permission_denied` for every region that is not the caller's, whether it exists or not. */
export function assertMaySpeakFor(region: string, values: ContextValues): void {
  const regions = values.get(allowedRegions);
  if (regions !== undefined && !regions.has(region)) {
    throw new ConnectError("this token is for another region", Code.PermissionDenied);
  }
}
