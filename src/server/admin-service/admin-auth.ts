// Authenticates callers of the admin API: by tokens with a name and a role, or by the session of a browser that signed in with
// one. History records the name with every change. A session has the name and the role that its token has now, and ends with it.
import {
  Code,
  ConnectError,
  type ContextValues,
  createContextKey,
  type Interceptor,
} from "@connectrpc/connect";
import type { Clock } from "../../concurrency/clock.ts";
import type { Secret } from "../../config/secret.ts";
import type { SecretSource } from "../../config/secret-source.ts";
import type { AdminService } from "../../gen/krane/admin/v1/admin_pb.ts";
import { RateLimit } from "../../http/rate-limit.ts";
import { digestOf, matchBearer } from "../../services/bearer-auth.ts";
import { createAdmission } from "../../services/call-admission.ts";
import type { Log } from "../../telemetry/log.ts";
import { type AdminToken, mayReadLogs, mayWrite } from "../config/token-lines.ts";
import { type Access, accessOf, type GroupRole, type RegionSet } from "../oidc/access.ts";
import type { SessionStore, StoredSession } from "../sessions.ts";
import { tokensApart } from "../tokens-apart.ts";
import {
  idOfSecret,
  isBoundTo,
  isOverTls,
  isOwnPage,
  secretInCookies,
  sessionCookie,
} from "./session-secrets.ts";

/** Who makes a call. */
export interface Caller {
  readonly name: string;
  readonly canWrite: boolean;
  readonly canReadLogs: boolean;
  /** Absent for callers within the process, and for people of a provider. */
  readonly token?: Secret;
  /** Absent for callers who may act in every region. */
  readonly access?: Access;
  /** Present for a call that is made with a session. */
  readonly session?: StoredSession;
  /** Who the session makes of it now, which a stream asks while it runs; undefined once the session has ended. */
  renew?(signal: AbortSignal): Promise<Caller | undefined>;
}

const callerKey = createContextKey<Caller>(
  { name: "", canWrite: false, canReadLogs: false },
  { description: "the call's caller" },
);

export function callerOf(values: ContextValues): Caller {
  return values.get(callerKey);
}

/** Accepts every call, under one name; for in-process callers. */
export function createCaller(name: string): Interceptor {
  return (next) => (request) => {
    request.contextValues.set(callerKey, { name, canWrite: true, canReadLogs: true });
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
  /** Without it, only tokens are accepted. */
  readonly sessions?: SessionAuth | undefined;
}

export interface SessionAuth {
  readonly store: SessionStore;
  /** What people of a provider may do; absent without a provider. */
  readonly people?: ProviderAccess | undefined;
  /** Whether the port itself does TLS. */
  readonly servesTls: boolean;
}

export interface ProviderAccess {
  readonly roles: readonly GroupRole[];
  /** What their sessions are bound to. */
  readonly anchor: Secret;
}

// A token cannot be guessed, and a password that somebody uses as one should not be. For each address.
const signInsLimit = { burst: 20, perSecond: 20 / 60, keysMax: 10_000 };

export function createAdminAuth(
  { tokens: people, agentTokens: agents, sessions }: AdminAuthSources,
  { clock, log }: { readonly clock: Clock; readonly log: Log },
): Interceptor {
  const signIns = new RateLimit(signInsLimit, { clock });
  let table: TokenTable | undefined;
  const currentTable = async (signal: AbortSignal): Promise<TokenTable> => {
    const now = { people: await people.current(signal), agents: await agents?.current(signal) };
    const isSame =
      table?.people.reveal() === now.people.reveal() && table.agents?.reveal() === now.agents?.reveal();
    if (table === undefined || !isSame) table = createTable(now, log);
    return table;
  };
  const ofSession = async (header: Headers, signal: AbortSignal): Promise<Caller | undefined> => {
    const kind = sessions && sessionCookie(isOverTls(header, sessions.servesTls));
    const secret = kind && secretInCookies(header.get("cookie"), kind);
    if (secret === undefined) return undefined;
    const session = await sessions?.store.find(idOfSecret(secret));
    if (session === undefined || session.expiresAtMs <= clock.wallMs()) return undefined;
    const found =
      session.groups === undefined
        ? (await currentTable(signal)).tokens
            .filter(({ name, token }) => name === session.name && isBoundTo(session, secret, token))
            .map(callerWith)[0]
        : callerOfProvider(session, secret, sessions?.people);
    if (found === undefined) return undefined;
    return { ...found, session, renew: (asking) => ofSession(header, asking) };
  };
  return createAdmission(async ({ method, header, peer, values, signal }) => {
    if (method.localName === "createSession" && !signIns.take(peer))
      throw new ConnectError("too many attempts to sign in; wait a minute", Code.ResourceExhausted);
    const isBrowser = sessions !== undefined && !header.has("authorization") && header.has("cookie");
    // The cookie comes along with requests that other sites make in the user's name.
    if (isBrowser && !isOwnPage(header))
      throw new ConnectError("the request does not come from a page of this server", Code.PermissionDenied);
    const caller = isBrowser ? await ofSession(header, signal) : ofBearer(header, await currentTable(signal));
    if (caller === undefined)
      throw new ConnectError("the session has ended; sign in again", Code.Unauthenticated);
    checkRole(caller, method.localName);
    values.set(callerKey, caller);
  });
}

/** Throws if the caller may not call the method. */
export function checkRole({ name, token, canWrite, canReadLogs }: Caller, method: string): void {
  const effect = effectOf(method);
  const refuse = (ofPeople: string, ofToken: string) => {
    const message =
      token === undefined ? `the groups of ${name} may ${ofPeople}` : `the token ${name} ${ofToken}`;
    throw new ConnectError(message, Code.PermissionDenied);
  };
  if (effect === "writes" && !canWrite)
    refuse(
      "only read; ask for one with the role read-write",
      "is read-only; use one with the role read-write",
    );
  if (effect === "logs" && !canReadLogs)
    refuse(
      "not read logs; ask for one with the role logs",
      "may not read logs; use one with the role logs or read-write+logs",
    );
}

function ofBearer(header: Headers, { digests, tokens }: TokenTable): Caller | undefined {
  const matches = matchBearer(header, digests).flatMap((index) => tokens[index] ?? []);
  const found = matches.find(({ role }) => mayWrite(role)) ?? matches[0];
  // A token that is listed twice may do what either line allows.
  return found && { ...callerWith(found), canReadLogs: matches.some(({ role }) => mayReadLogs(role)) };
}

function callerWith({ name, role, token }: AdminToken): Caller {
  return { name, canWrite: mayWrite(role), canReadLogs: mayReadLogs(role), token };
}

/** With the roles that the groups have now. */
function callerOfProvider(
  session: StoredSession,
  secret: string,
  people: ProviderAccess | undefined,
): Caller | undefined {
  if (people === undefined || !isBoundTo(session, secret, people.anchor)) return undefined;
  const access = accessOf(session.groups ?? [], people.roles);
  if (access === undefined) return undefined;
  const isAny = (regions: RegionSet) => regions === "all" || regions.size > 0;
  const may = { canWrite: isAny(access.writes), canReadLogs: isAny(access.logs) };
  return { name: session.name, ...may, access };
}

function createTable(lists: Pick<TokenTable, "people" | "agents">, log: Log): TokenTable {
  const { tokens, problems } = tokensApart(lists.people, lists.agents);
  for (const error of problems) log.error("a token is not accepted by the admin API", { error });
  return { ...lists, digests: tokens.map(({ token }) => digestOf(token)), tokens };
}

export type MethodEffect = "reads" | "writes" | "logs";

/** Any method not listed requires the right to write. */
export function effectOf(method: string): MethodEffect {
  return Object.hasOwn(methodEffects, method) ? methodEffects[method as AdminMethod] : "writes";
}

// Lists whether each method reads or writes, or reads the logs of pods. The types require an entry for every method,
// so that none is added without a decision.

type AdminMethod = keyof typeof AdminService.method;

export const methodEffects: Readonly<Record<AdminMethod, MethodEffect>> = {
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
  joinSet: "writes",
  listSet: "reads",
  grantHostname: "writes",
  revokeHostname: "writes",
  listHostnames: "reads",
  explainObject: "reads",
  planDocuments: "reads",
  renderObject: "reads",
  streamLogs: "logs",
  watchFleet: "reads",
  // They change nothing but the caller's own session.
  createSession: "reads",
  getSession: "reads",
  endSession: "reads",
};
