import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TokenReview } from "kubernetes-types/authentication/v1.js";
import { FakeClock } from "../../test/support/fake-clock.ts";
import type { KubeApi } from "../kube/api.ts";
import { KubeApiError } from "../kube/errors.ts";
import { TokenReviews, type TokenReviewsOptions } from "./token-reviews.ts";

const never = new AbortController().signal;

function tokenEndingAt(wallMs: number, name = "x"): string {
  const claims = Buffer.from(JSON.stringify({ exp: wallMs / 1_000, name })).toString("base64url");
  return `h.${claims}.s`;
}

/** An API server that accepts every token whose name does not begin with "bad", and responds when the test says so. */
function world(options: Partial<TokenReviewsOptions> = {}) {
  const clock = new FakeClock();
  const asked: { readonly spec: TokenReview["spec"]; readonly signal: AbortSignal }[] = [];
  let hold: Promise<void> = Promise.resolve();
  let failure: Error | undefined;
  const api = {
    async create(_kind: unknown, { spec }: TokenReview, _options: unknown, signal: AbortSignal) {
      asked.push({ spec, signal });
      await hold;
      if (failure) throw failure;
      const claims = Buffer.from(spec.token?.split(".")[1] ?? "", "base64url").toString("utf8");
      const audiences = spec.audiences ?? ["kube"];
      if (claims.includes('"bad') || (spec.audiences && claims.includes('"default')))
        return { spec, status: {} };
      const extra = {
        "authentication.kubernetes.io/pod-name": ["web"],
        "authentication.kubernetes.io/pod-uid": ["uid"],
      };
      const user = { username: "system:serviceaccount:acme:default", extra };
      return { spec, status: { authenticated: true, audiences, user } };
    },
  } as unknown as KubeApi;
  const reviews = new TokenReviews(
    { audience: "krane", acceptDefaultAudience: false, ...options },
    { mayBeOriginal: () => false, api, clock },
  );
  const ask = async (token: string, signal = never) => (await reviews.review(token, signal))?.kind ?? "full";
  return {
    clock,
    asked,
    ask,
    /** Responses are delayed until the returned function is called. */
    holdAnswers() {
      let release = () => undefined as unknown;
      hold = new Promise((resolve) => {
        release = resolve as () => unknown;
      });
      return () => release();
    },
    failWith: (error: Error | undefined) => {
      failure = error;
    },
  };
}

const hourMs = 3_600_000;

describe("TokenReviews", () => {
  test("a good verdict is cached for ten seconds, and a bad one not at all", async () => {
    const { clock, asked, ask } = world();
    const good = tokenEndingAt(clock.wallMs() + hourMs);
    const bad = tokenEndingAt(clock.wallMs() + hourMs, "bad");
    assert.equal(await ask(good), "genuine");
    await clock.advance(9_999);
    assert.equal(await ask(good), "genuine");
    assert.equal(asked.length, 1);
    await clock.advance(1);
    await ask(good);
    assert.equal(asked.length, 2);
    assert.deepEqual([await ask(bad), await ask(bad)], ["refused", "refused"]);
    assert.equal(asked.length, 4);
  });

  test("no verdict is cached past the token's expiry, nor when the expiry is unknown", async () => {
    const { clock, asked, ask } = world();
    const short = tokenEndingAt(clock.wallMs() + 3_000);
    await ask(short);
    await clock.advance(2_999);
    await ask(short);
    assert.equal(asked.length, 1);
    await clock.advance(1);
    await ask(short);
    assert.equal(asked.length, 2);
    await ask("h.e30.s");
    await ask("h.e30.s");
    assert.equal(asked.length, 4);
  });

  test("the number of cached verdicts is limited", async () => {
    const { clock, asked, ask } = world({ verdictsMax: 2 });
    const tokens = ["a", "b", "c"].map((name) => tokenEndingAt(clock.wallMs() + hourMs, name));
    for (const token of tokens) await ask(token);
    for (const token of tokens.slice(1)) await ask(token);
    assert.equal(asked.length, 3);
    await ask(tokens[0] ?? "");
    assert.equal(asked.length, 4);
  });

  test("callers with the same token share one review, which continues when one of them leaves", async () => {
    const { clock, asked, ask, holdAnswers } = world();
    const release = holdAnswers();
    const token = tokenEndingAt(clock.wallMs() + hourMs);
    const leaving = new AbortController();
    const left = ask(token, leaving.signal);
    const others = [ask(token), ask(token)];
    leaving.abort(new Error("gone"));
    await assert.rejects(left, /gone/);
    assert.equal(asked[0]?.signal.aborted, false);
    release();
    assert.deepEqual(await Promise.all(others), ["genuine", "genuine"]);
    assert.equal(asked.length, 1);
  });

  test("a review without callers is aborted, and the next caller starts a new one", async () => {
    const { clock, asked, ask, holdAnswers } = world();
    holdAnswers();
    const token = tokenEndingAt(clock.wallMs() + hourMs);
    const leaving = new AbortController();
    const left = ask(token, leaving.signal);
    leaving.abort(new Error("gone"));
    await assert.rejects(left, /gone/);
    await clock.settle();
    assert.equal(asked[0]?.signal.aborted, true);
    const release = holdAnswers();
    const next = ask(token);
    release();
    assert.equal(await next, "genuine");
    assert.equal(clock.timerCount, 0);
  });

  test("when the queue is full there is no review, and the waiting tokens are not affected", async () => {
    const { clock, asked, ask, holdAnswers } = world({ runningMax: 2, waitingMax: 1 });
    const release = holdAnswers();
    const tokens = ["a", "b", "c", "d"].map((name) => tokenEndingAt(clock.wallMs() + hourMs, name));
    const answers = tokens.map((token) => ask(token));
    assert.equal(await answers[3], "full");
    assert.equal(asked.length, 2);
    release();
    assert.deepEqual(await Promise.all(answers), ["genuine", "genuine", "genuine", "full"]);
  });

  test("a failure reaches all callers, and is not cached", async () => {
    const { clock, ask, failWith } = world();
    const token = tokenEndingAt(clock.wallMs() + hourMs);
    failWith(new KubeApiError("network", "no route"));
    const outcomes = await Promise.allSettled([ask(token), ask(token)]);
    assert.deepEqual(
      outcomes.map(({ status }) => status),
      ["rejected", "rejected"],
    );
    failWith(undefined);
    assert.equal(await ask(token), "genuine");
  });

  test("a review times out when the API server never responds", async () => {
    const { clock, ask, holdAnswers } = world({ timeoutMs: 5_000 });
    holdAnswers();
    const outcome = assert.rejects(ask(tokenEndingAt(clock.wallMs() + hourMs)), /5000 ms/);
    await clock.advance(5_000);
    await outcome;
    assert.equal(clock.timerCount, 0);
  });

  test("the default audience is tried second, and only if accepted", async () => {
    const strict = world();
    const token = tokenEndingAt(strict.clock.wallMs() + hourMs, "default");
    assert.equal(await strict.ask(token), "refused");
    assert.deepEqual(
      strict.asked.map(({ spec }) => spec.audiences),
      [["krane"]],
    );
    const lenient = world({ acceptDefaultAudience: true });
    assert.equal(await lenient.ask(token), "genuine");
    assert.deepEqual(
      lenient.asked.map(({ spec }) => spec.audiences),
      [["krane"], undefined],
    );
  });
});
