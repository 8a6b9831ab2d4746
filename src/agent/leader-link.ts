// A standby's connection to the leader, for the calls that it forwards.
//
// - The address comes from the Lease, and is used only if it names the current holder. It is an IP address and a port.
// - Before the first call on a connection the leader proves, with the keys of the seal, that it is that holder and that the
//   address is its own. Otherwise a pod that got the address of a dead leader, or anybody who can write the Lease, would get the
//   token of a caller.
// - A certificate is not checked by its name, which is that of a Service, but as a part of that proof.
import { randomBytes } from "node:crypto";
import type { DescMessage, DescMethodUnary, MessageShape } from "@bufbuild/protobuf";
import { Code, ConnectError, type HandlerContext } from "@connectrpc/connect";
import { DeadlineError, withTimeout } from "../concurrency/abort.ts";
import type { Clock } from "../concurrency/clock.ts";
import { exchange } from "../control-plane/http-exchange.ts";
import { type LiveSession, openSession } from "../control-plane/live-session.ts";
import { createUnary } from "../control-plane/unary-calls.ts";
import { type ForwardCall, forwardedHeader } from "../services/leader-calls.ts";
import { challengeHeader, type LeaderProof, leaderProofPath } from "./leader-proof.ts";

export interface Leader {
  /** As the Lease has it. */
  readonly identity: string;
  /** For people. */
  readonly name: string;
  readonly url: URL;
}

export interface LeaderLinkDeps {
  readonly clock: Clock;
  /** The leader, or why it cannot be called. */
  leader(): Leader | string;
  /** Undefined until the keys are loaded. */
  proof(): LeaderProof | undefined;
  onCall?(result: "answered" | "failed"): void;
}

interface OpenLink {
  readonly leader: Leader;
  readonly session: LiveSession;
  readonly proved: Promise<void>;
  readonly unary: ReturnType<typeof createUnary>;
}

// A little longer than the leader lets a call wait.
const callMaxMs = 65_000;
const connectTimeoutMs = 3_000;
const proofTimeoutMs = 3_000;
const proofBytesMax = 1_024;
const challengeBytes = 32;
/** As much as any request of these services may have, and more than any response. */
const messageBytesMax = 512 * 1024;
const ping = { pingIntervalMs: 5_000, pingTimeoutMs: 5_000 };

export class LeaderLink {
  private readonly deps: LeaderLinkDeps;
  private readonly closing = new AbortController();
  private open: OpenLink | undefined;

  constructor(deps: LeaderLinkDeps) {
    this.deps = deps;
  }

  readonly forward: ForwardCall = async (method, request, context) => {
    try {
      const response = await this.call(method, request, context);
      this.deps.onCall?.("answered");
      return response;
    } catch (error) {
      const isAnswer = error instanceof LeaderAnswer;
      this.deps.onCall?.(isAnswer ? "answered" : "failed");
      throw isAnswer ? error.refusal : error;
    }
  };

  async close(): Promise<void> {
    this.closing.abort(new ConnectError("krane is stopping", Code.Unavailable));
    const { open } = this;
    this.drop(open);
    await open?.session.ended;
  }

  private async call<I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    request: MessageShape<I>,
    { requestHeader, signal, timeoutMs }: HandlerContext,
  ): Promise<MessageShape<O>> {
    const { clock } = this.deps;
    const leader = this.deps.leader();
    if (typeof leader === "string") throw notForwarded(leader);
    const limitMs = Math.min(timeoutMs() ?? callMaxMs, callMaxMs);
    const untilMs = clock.nowMs() + limitMs;
    let isSent = false;
    try {
      return await withTimeout(clock, limitMs, [signal, this.closing.signal], async (limited) => {
        const { proved, unary } = this.linkTo(leader);
        await proved;
        limited.throwIfAborted();
        const header = {
          authorization: requestHeader.get("authorization") ?? "",
          [forwardedHeader]: leader.identity,
          "Connect-Timeout-Ms": String(Math.max(1, Math.floor(untilMs - clock.nowMs()))),
        };
        isSent = true;
        // The request is a whole message, which the types of an initializer do not say.
        return (await unary(method, limited, undefined, header, request as never)).message;
      });
    } catch (error) {
      signal.throwIfAborted();
      throw explain(error, leader, isSent);
    }
  }

  /** The open connection to this leader, or a new one. */
  private linkTo(leader: Leader): OpenLink {
    const { open } = this;
    const isSame = open?.leader.identity === leader.identity && open.leader.url.href === leader.url.href;
    if (isSame && open.session.takesRequests) return open;
    this.drop(open);
    const limits = { connectTimeoutMs, ...ping };
    const session = openSession({ url: leader.url, acceptsAnyCertificate: true, ...limits }, this.deps.clock);
    const sessions = {
      request: async (method: string, path: string, headers: object) =>
        session.request({ ...headers, ":method": method, ":path": path }),
      notifyResponseByteRead: (stream: Parameters<LiveSession["heard"]>[0]) => session.heard(stream),
    };
    const unary = createUnary({ baseUrl: leader.url.origin, sessions, interceptors: [], messageBytesMax });
    const link: OpenLink = { leader, session, unary, proved: this.prove(leader, session) };
    link.proved.catch(() => this.drop(link));
    this.open = link;
    return link;
  }

  private drop(link: OpenLink | undefined): void {
    if (link === undefined) return;
    if (this.open === link) this.open = undefined;
    link.session.destroy(new ConnectError("the connection to the leader was closed", Code.Unavailable));
  }

  private prove({ identity, url: { origin } }: Leader, session: LiveSession): Promise<void> {
    const { clock } = this.deps;
    return withTimeout(clock, proofTimeoutMs, this.closing.signal, async (signal) => {
      await session.connected;
      const challenge = randomBytes(challengeBytes).toString("base64url");
      const stream = session.request({
        ":method": "POST",
        ":path": leaderProofPath,
        [challengeHeader]: challenge,
      });
      const judge = (headers: { readonly ":status"?: number }) => headers[":status"] === 200;
      const body = new Uint8Array();
      const { verdict, bytes } = await exchange(stream, { body, bytesMax: proofBytesMax, judge }, signal);
      const { certificate } = session;
      const text = Buffer.from(bytes).toString().trim();
      const connection = { identity, origin, certificate, challenge };
      const isProved = verdict && this.deps.proof()?.isMadeBy(connection, text);
      if (!isProved) throw new Error("the process at its address did not prove that it is the leader");
    });
  }
}

/** The leader's own refusal of a call. */
class LeaderAnswer extends Error {
  readonly refusal: ConnectError;

  constructor(refusal: ConnectError) {
    super(refusal.message, { cause: refusal });
    this.refusal = refusal;
  }
}

function explain(error: unknown, { name }: Leader, isSent: boolean): Error {
  // Errors of the connection have no headers.
  if (isSent && error instanceof ConnectError && [...error.metadata.keys()].length > 0)
    return new LeaderAnswer(new ConnectError(error.rawMessage, error.code));
  const reason = error instanceof ConnectError ? error.rawMessage : String((error as Error).message);
  if (!isSent) return notForwarded(`${name} leads, and cannot be reached: ${reason}`);
  const code = error instanceof DeadlineError ? Code.DeadlineExceeded : Code.Unavailable;
  return new ConnectError(`forwarded to ${name}, which may have accepted it: ${reason}`, code);
}

function notForwarded(reason: string): ConnectError {
  return new ConnectError(`not done: this agent is a standby; ${reason}`, Code.Unavailable);
}
