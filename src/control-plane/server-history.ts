// Follows the incarnation of the control plane on one connection, and rejects what comes from an older one.
//
// - A response of an older incarnation is never used, not even a `not_found`: it comes from a server that a failover
//   left behind. The call fails with `unavailable`.
// - When the first response of a newer incarnation arrives, the follower voids everything that it knows by number before
//   that response is used.
// - A response that names no incarnation comes from an older control plane, and changes nothing here.
import { ConnectError, type Interceptor } from "@connectrpc/connect";
import { callHeadersOf } from "./call-headers.ts";
import { ControlPlaneError } from "./error.ts";
import {
  compareIncarnations,
  formatIncarnation,
  type Incarnation,
  incarnationHeader,
  parseIncarnation,
  versionSeenHeader,
} from "./incarnation.ts";

/** What named an incarnation. */
export type HistorySource = "stream" | "response";

export interface HistoryChange {
  readonly from: Incarnation | undefined;
  readonly to: Incarnation;
  /** A stream whose request named an incarnation begins at version 0. */
  readonly startsAtZero: boolean;
}

export interface HistoryFollower {
  /** The highest version seen of the known incarnation. */
  seen(): bigint;
  /** Every version known so far is void. */
  onNewIncarnation(change: HistoryChange): void;
  /** A response of an older incarnation was ignored. */
  onIgnored(ignored: Incarnation, current: Incarnation): void;
}

type HistoryHeaders = Readonly<Record<string, string>>;

export class ServerHistory {
  private known: Incarnation | undefined;
  private knownText = "";
  private hasUnnamed = false;
  private follower: HistoryFollower | undefined;
  private ignored = 0;
  private named = false;

  /** The incarnation that everything known by number belongs to. */
  get current(): Incarnation | undefined {
    return this.known;
  }

  /** Whether the control plane names its incarnation, as far as the last response tells. */
  get isNamed(): boolean {
    return this.named;
  }

  /** How many responses of older incarnations were ignored. */
  get ignoredCount(): number {
    return this.ignored;
  }

  follow(follower: HistoryFollower): void {
    this.follower = follower;
  }

  requestHeaders(): HistoryHeaders {
    if (this.known === undefined) return {};
    const seen = this.follower?.seen() ?? 0n;
    return { [incarnationHeader]: this.knownText, [versionSeenHeader]: String(seen) };
  }

  /** Takes the header of a response before anything of the response is used. Throws if the response must be ignored. */
  take(text: string | null | undefined, source: HistorySource): void {
    if (text === this.knownText && this.known !== undefined) {
      this.named = true;
      return;
    }
    const incarnation = parseIncarnation(text);
    this.named = incarnation !== undefined;
    if (incarnation === undefined) this.hasUnnamed = true;
    else this.turnTo(incarnation, source);
  }

  private turnTo(incarnation: Incarnation, source: HistorySource): void {
    const from = this.known;
    if (from !== undefined && compareIncarnations(incarnation, from) < 0) {
      this.ignored += 1;
      this.follower?.onIgnored(incarnation, from);
      throw new ControlPlaneError("unavailable", ignoredReason(incarnation, from));
    }
    this.known = incarnation;
    this.knownText = formatIncarnation(incarnation);
    if (from?.id === incarnation.id) return;
    // The first one named: there is nothing to void, unless an older control plane has sent versions before.
    if (from === undefined && !this.hasUnnamed) return;
    const startsAtZero = source === "stream" && from !== undefined;
    this.follower?.onNewIncarnation({ from, to: incarnation, startsAtZero });
  }
}

function ignoredReason(ignored: Incarnation, current: Incarnation): string {
  return `the response is from incarnation ${ignored.ordinal} of the control plane, which ${current.ordinal} replaced: ignored`;
}

/** For calls through the RPC library's own transport. Runs before the response is used. */
export function createHistoryInterceptor(history: ServerHistory): Interceptor {
  return (next) => async (request) => {
    const headers = callHeadersOf(request.contextValues);
    for (const [name, value] of Object.entries(headers)) request.header.set(name, value);
    try {
      const response = await next(request);
      history.take(response.header.get(incarnationHeader), request.stream ? "stream" : "response");
      return response;
    } catch (error) {
      // A proxy's error names no incarnation, which says nothing about the control plane.
      if (error instanceof ConnectError && error.metadata.has(incarnationHeader))
        history.take(error.metadata.get(incarnationHeader), "response");
      throw error;
    }
  };
}
