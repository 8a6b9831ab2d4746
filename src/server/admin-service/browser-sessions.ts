// The calls that sign a browser in and out.
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import type { Clock } from "../../concurrency/clock.ts";
import { type EndSessionRequest, type Session, SessionSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { allKinds } from "../../kinds/kinds.ts";
import type { SessionStore } from "../sessions.ts";
import { type Caller, callerOf } from "./admin-auth.ts";
import {
  createStoredSession,
  isOverTls,
  renderCookie,
  sessionCookie,
  sessionLifetimeMs,
} from "./session-secrets.ts";

export interface BrowserSessionsDeps {
  readonly store: SessionStore;
  readonly clock: Clock;
  /** Whether the port itself does TLS. */
  readonly servesTls: boolean;
  /** Generates unguessable text. */
  createToken(): string;
}

export async function createSession(deps: BrowserSessionsDeps | undefined, context: HandlerContext) {
  const caller = callerOf(context.values);
  const { name, token, session: own } = caller;
  if (deps === undefined) throw new ConnectError("this server has no sessions", Code.Unimplemented);
  // Otherwise a session that somebody got hold of could be extended for ever.
  if (own !== undefined || token === undefined)
    throw new ConnectError("a session is made with a token, not with a session", Code.PermissionDenied);
  const secret = deps.createToken();
  const session = createStoredSession(
    secret,
    { name, token },
    { nowMs: deps.clock.wallMs(), lifetimeMs: sessionLifetimeMs },
  );
  await deps.store.add(session);
  setCookie(context, renderCookie(secret, sessionCookie(isOverTls(context.requestHeader, deps.servesTls))));
  return { session: shown({ ...caller, session }) };
}

export function getSession({ values }: HandlerContext) {
  return { session: shown(callerOf(values)), kinds: [...kindWords] };
}

const kindWords = allKinds.map(({ objectKind, name, plural, controller, makesPods }) => ({
  kind: objectKind,
  name,
  plural,
  controller,
  hasPods: makesPods,
}));

export async function endSession(
  deps: BrowserSessionsDeps | undefined,
  { all }: EndSessionRequest,
  context: HandlerContext,
) {
  const { name, session } = callerOf(context.values);
  if (deps === undefined) return { count: 0 };
  setCookie(context, renderCookie("", sessionCookie(isOverTls(context.requestHeader, deps.servesTls)), 0));
  if (all) return { count: await deps.store.end({ name }) };
  return { count: session === undefined ? 0 : await deps.store.end({ id: session.id }) };
}

function setCookie({ responseHeader }: HandlerContext, cookie: string): void {
  responseHeader.append("set-cookie", cookie);
}

function shown({ name, canWrite, canReadLogs, access, session }: Caller): Session {
  const { writes = "all", logs = "all" } = access ?? {};
  return create(SessionSchema, {
    name,
    canWrite,
    isLimited: writes !== "all",
    writableRegions: writes === "all" ? [] : [...writes],
    canReadLogs,
    logRegions: logs === "all" ? [] : [...logs],
    expiresAtMs: BigInt(Math.trunc(session?.expiresAtMs ?? 0)),
  });
}
