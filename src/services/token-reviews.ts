// Finds the owner of a token with TokenReviews, with as few calls to the API server as possible.
//
// - Concurrent callers with the same token share one review. The number of concurrent reviews is limited.
// - A good verdict is cached for ten seconds, but never past the token's expiry. It identifies the owner only; whether
//   the pod still exists is checked each time.
// - A bad verdict is not cached: unauthenticated callers could evict the good ones, and a pod whose token becomes valid
//   a moment later would still be rejected.
// - Tokens are stored as digests, so that a memory dump has no list of them (K7).
import { createHash } from "node:crypto";
import { withTimeout } from "../concurrency/abort.ts";
import { onAbort } from "../concurrency/abort-listener.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { KubeApi } from "../kube/api.ts";
import { tokenReviews } from "../kube/resources.ts";
import { CallSlots } from "./call-slots.ts";
import { expiryOf, judgeTokenReview, type TokenVerdict } from "./token-verdict.ts";

export interface TokenReviewsOptions {
  readonly audience: string;
  readonly acceptDefaultAudience: boolean;
  /** Cached verdicts. Default 2,000. */
  readonly verdictsMax?: number;
  /** Concurrent reviews. Default 8: half of the connections; the rest is for looking up pods. */
  readonly runningMax?: number;
  /** Tokens waiting for a review. Default 1,000: as many pods may start at once. */
  readonly waitingMax?: number;
  /** Default 5 s. */
  readonly timeoutMs?: number;
}

export interface TokenReviewsDeps {
  readonly api: KubeApi;
  readonly clock: Clock;
  /** Whether a caller may be a pod of the original, whose token is for the API server. */
  mayBeOriginal(): boolean;
}

const keptMs = 10_000;

interface SharedReview {
  readonly verdict: Promise<TokenVerdict>;
  readonly stop: AbortController;
  waiters: number;
}

interface KeptVerdict {
  readonly verdict: TokenVerdict;
  readonly untilMs: number;
}

export class TokenReviews {
  private readonly options: Required<TokenReviewsOptions>;
  private readonly api: KubeApi;
  private readonly clock: Clock;
  private readonly mayBeOriginal: () => boolean;
  private readonly slots: CallSlots;
  private readonly underWay = new Map<string, SharedReview>();
  private readonly kept = new Map<string, KeptVerdict>();

  constructor(options: TokenReviewsOptions, deps: TokenReviewsDeps) {
    this.options = { verdictsMax: 2_000, runningMax: 8, waitingMax: 1_000, timeoutMs: 5_000, ...options };
    this.api = deps.api;
    this.clock = deps.clock;
    this.mayBeOriginal = deps.mayBeOriginal;
    this.slots = new CallSlots(this.options);
  }

  /** Resolves with undefined when too many other tokens are waiting. Rejects when the API server cannot be reached. */
  async review(token: string, signal: AbortSignal): Promise<TokenVerdict | undefined> {
    signal.throwIfAborted();
    const key = createHash("sha256").update(token).digest("base64");
    const kept = this.kept.get(key);
    if (kept !== undefined && kept.untilMs > this.clock.nowMs()) return kept.verdict;
    const shared = this.underWay.get(key) ?? this.begin(key, token);
    return shared && this.wait(key, shared, signal);
  }

  private begin(key: string, token: string): SharedReview | undefined {
    const stop = new AbortController();
    const verdict = this.slots.run(() => this.ask(token, stop.signal), stop.signal);
    if (verdict === undefined) return undefined;
    const shared: SharedReview = { verdict, stop, waiters: 0 };
    this.underWay.set(key, shared);
    const forget = () => {
      if (this.underWay.get(key) === shared) this.underWay.delete(key);
    };
    verdict.then((value) => {
      forget();
      if (value.kind === "genuine") this.keep(key, value, token);
    }, forget);
    return shared;
  }

  /** Aborts the review when its last caller leaves. */
  private async wait(key: string, shared: SharedReview, signal: AbortSignal): Promise<TokenVerdict> {
    shared.waiters += 1;
    try {
      return await unlessAborted(shared.verdict, signal);
    } finally {
      shared.waiters -= 1;
      if (shared.waiters === 0 && this.underWay.get(key) === shared) {
        this.underWay.delete(key);
        shared.stop.abort();
      }
    }
  }

  private async ask(token: string, signal: AbortSignal): Promise<TokenVerdict> {
    const { audience, acceptDefaultAudience, timeoutMs } = this.options;
    return withTimeout(this.clock, timeoutMs, signal, async (inner) => {
      const asked = { spec: { token, audiences: [audience] } };
      const verdict = judgeTokenReview(
        (await this.api.create(tokenReviews, asked, {}, inner)).status,
        audience,
      );
      if (verdict.kind === "genuine") return verdict;
      const isForOthers =
        verdict.reason === "token not authenticated" || verdict.reason === "token is for another audience";
      if (!acceptDefaultAudience && !(isForOthers && this.mayBeOriginal())) return verdict;
      const again = await this.api.create(tokenReviews, { spec: { token } }, {}, inner);
      const other = judgeTokenReview(again.status, undefined);
      if (acceptDefaultAudience) return other;
      return other.kind === "genuine" ? { ...other, isForApiServer: true } : verdict;
    });
  }

  private keep(key: string, verdict: TokenVerdict, token: string): void {
    const leftMs = (expiryOf(token) ?? 0) - this.clock.wallMs();
    if (leftMs <= 0) return;
    const [oldest] = this.kept.keys();
    this.kept.delete(key);
    if (this.kept.size >= this.options.verdictsMax && oldest !== undefined) this.kept.delete(oldest);
    this.kept.set(key, { verdict, untilMs: this.clock.nowMs() + Math.min(keptMs, leftMs) });
  }
}

async function unlessAborted<T>(promise: Promise<T>, signal: AbortSignal): Promise<T> {
  let stopListening: (() => void) | undefined;
  const aborted = new Promise<never>((_, reject) => {
    stopListening = onAbort(signal, () => reject(signal.reason));
  });
  try {
    return await Promise.race([promise, aborted]);
  } finally {
    stopListening?.();
  }
}
