import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { TokenReviewStatus } from "kubernetes-types/authentication/v1.js";
import { expiryOf, findTokenFlaw, judgeTokenReview } from "./token-verdict.ts";

const extra = {
  "authentication.kubernetes.io/pod-name": ["web-1"],
  "authentication.kubernetes.io/pod-uid": ["uid-1"],
};
const good: TokenReviewStatus = {
  authenticated: true,
  audiences: ["krane"],
  user: { username: "system:serviceaccount:acme:default", extra },
};
const reasonOf = (status: TokenReviewStatus | undefined, audience: string | undefined = "krane") => {
  const verdict = judgeTokenReview(status, audience);
  return verdict.kind === "refused" ? verdict.reason : verdict.kind;
};
const withUser = (user: object) => ({ ...good, user: { ...good.user, ...user } });

describe("the verdict on a token review", () => {
  test("a pod's token is genuine, and identifies the pod", () => {
    assert.deepEqual(judgeTokenReview(good, "krane"), {
      kind: "genuine",
      subject: { namespace: "acme", serviceAccount: "default", podName: "web-1", podUid: "uid-1" },
    });
  });

  test("anything that is not stated explicitly is refused", () => {
    const { authenticated: _, ...silent } = good;
    for (const status of [
      undefined,
      {},
      silent,
      { ...good, authenticated: false },
      { ...good, error: "but" },
    ])
      assert.equal(reasonOf(status), "token not authenticated");
  });

  test("a response without our audience is refused", () => {
    const { audiences: _, ...without } = good;
    for (const status of [without, { ...good, audiences: [] }, { ...good, audiences: ["kran", "krane2"] }])
      assert.equal(reasonOf(status), "token is for another audience");
    assert.equal(reasonOf({ ...good, audiences: ["other", "krane"] }), "genuine");
  });

  test("the API server's own audience is accepted under any name, but never no audience", () => {
    assert.equal(judgeTokenReview({ ...good, audiences: ["https://kube"] }, undefined).kind, "genuine");
    assert.equal(judgeTokenReview({ ...good, audiences: [] }, undefined).kind, "refused");
  });

  test("only names of service accounts are accepted, and they must be safe in a path", () => {
    const account = "system:serviceaccount";
    const names = [
      "",
      "admin",
      account,
      `${account}:a`,
      `${account}:a:`,
      `${account}::b`,
      `${account}:a:b:c`,
    ];
    for (const username of [...names, `${account}:..:b`, `${account}:a/b:c`, `x:serviceaccount:a:b`])
      assert.equal(reasonOf(withUser({ username })), "token does not belong to a service account", username);
  });

  test("a token must be bound to exactly one pod", () => {
    const pod = (names: string[] | undefined, uids: string[] | undefined) =>
      withUser({
        extra: {
          ...(names && { "authentication.kubernetes.io/pod-name": names }),
          ...(uids && { "authentication.kubernetes.io/pod-uid": uids }),
        },
      });
    const names = [undefined, [], [""], ["a", "b"], ["../secrets/x"], ["a/b"], ["A"], ["a".repeat(300)]];
    for (const name of names) assert.equal(reasonOf(pod(name, ["u"])), "token is not bound to a pod");
    for (const uid of [undefined, [], [""], ["a", "b"]])
      assert.equal(reasonOf(pod(["web-1"], uid)), "token is not bound to a pod");
  });
});

describe("a token before its review", () => {
  test("must look like a JWT and have a plausible size", () => {
    assert.equal(findTokenFlaw("eyJh.eyJi._-9"), undefined);
    assert.equal(findTokenFlaw(""), "token missing");
    for (const text of ["a", "a.b", "a..c", "a.b.c.d", "a.b.c\n", " a.b.c", "a.b=.c", "ä.b.c"])
      assert.equal(findTokenFlaw(text), "token is not a JWT", text);
    assert.equal(findTokenFlaw(`a.b.${"c".repeat(2 ** 20)}`), "token too large");
  });

  test("has an expiry, or undefined", () => {
    const token = (claims: string) => `h.${Buffer.from(claims).toString("base64url")}.s`;
    assert.equal(expiryOf(token('{"exp":1700000000}')), 1_700_000_000_000);
    for (const claims of ["{}", "null", '{"exp":"soon"}', "no json", ""])
      assert.equal(expiryOf(token(claims)), undefined, claims);
  });
});
