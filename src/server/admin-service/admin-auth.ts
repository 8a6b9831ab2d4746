// Authenticates callers of the admin API by tokens with a name and a role. History records
// the name with every change made with the token.
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  type Interceptor,
} from "@connectrpc/connect";
import type { Secret } from "../../config/secret.ts";
import type { SecretSource } from "../../config/secret-source.ts";
import type { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import { digestOf, matchBearer } from "../../services/bearer-auth.ts";
import { createAdmission } from "../../services/call-admission.ts";
import type { Log } from "../../telemetry/log.ts";
import type { AdminToken } from "../config/token-lines.ts";
import { tokensApart } from "../tokens-apart.ts";

const callerName = createContextKey("", { description: "the name of the call's token" });

/** The name that a call is made in. */
export function callerOf(values: ContextValues): string {
  return values.get(callerName);
}

/** Accepts every call, under one name; for in-process callers. */
export function createCaller(name: string): Interceptor {
  return (next) => (request) => {
    request.contextValues.set(callerName, name);
    return next(request);
  };
}

interface TokenTable {
  /** The lists that it was built from. */
  readonly people: Secret;
  readonly agents: Secret | undefined;
  readonly digests: readonly Buffer[];
  /** In the same order as the digests. */
  readonly tokens: readonly AdminToken[];
}

export interface AdminAuthSources {
  /** Lines of name, role and token; see token-lines.ts. */
  readonly tokens: SecretSource;
  /** Lines of region and token. These tokens are only accepted by the agents' API. */
  readonly agentTokens?: SecretSource | undefined;
}

export function createAdminAuth(
  { tokens: people, agentTokens: agents }: AdminAuthSources,
  { log }: { readonly log: Log },
): Interceptor {
  let table: TokenTable | undefined;
  const currentTable = async (signal: AbortSignal): Promise<TokenTable> => {
    const now = { people: await people.current(signal), agents: await agents?.current(signal) };
    const isSame =
      table?.people.reveal() === now.people.reveal() && table.agents?.reveal() === now.agents?.reveal();
    if (table === undefined || !isSame) table = createTable(now, log);
    return table;
  };
  return createAdmission(async ({ method, header, values, signal }) => {
    const { digests, tokens } = await currentTable(signal);
    const matches = matchBearer(header, digests).flatMap((index) => tokens[index] ?? []);
    const caller = matches.find(({ role }) => role === "read-write") ?? matches[0];
    if (caller?.role !== "read-write" && !onlyReads(method.localName)) {
      const message = `the token ${caller?.name ?? ""} is read-only; use one with the role read-write`;
      throw new ConnectError(message, Code.PermissionDenied);
    }
    values.set(callerName, caller?.name ?? "");
  });
}

function createTable(lists: Pick<TokenTable, "people" | "agents">, log: Log): TokenTable {
  const { tokens, problems } = tokensApart(lists.people, lists.agents);
  for (const error of problems) log.error("a token is not accepted by the admin API", { error });
  return { ...lists, digests: tokens.map(({ token }) => digestOf(token)), tokens };
}

// Lists whether each method reads or writes. The types require an entry for every method,
// so that none is added without a decision.

type AdminMethod = keyof typeof AdminService.method;

export const methodEffects: Readonly<Record<AdminMethod, "reads" | "writes">> = {
  listAgents: "reads",
  applyObject: "writes",
  scaleObject: "writes",
  deleteObject: "writes",
  getObject: "reads",
  listObjects: "reads",
  listEvents: "reads",
  watchEvents: "reads",
  releaseDeletion: "writes",
  listStrangers: "reads",
  adoptObjects: "writes",
  applyEnvironment: "writes",
  deleteEnvironment: "writes",
  listEnvironments: "reads",
  setSecret: "writes",
  unsetSecret: "writes",
  applyApp: "writes",
  deleteApp: "writes",
  getApp: "reads",
  listApps: "reads",
  releaseApp: "writes",
  pauseApp: "writes",
};

/** Any method not listed as reading requires the right to write. */
function onlyReads(method: string): boolean {
  return Object.hasOwn(methodEffects, method) && methodEffects[method as AdminMethod] === "reads";
}
