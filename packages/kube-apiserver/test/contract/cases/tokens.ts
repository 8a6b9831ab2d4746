// Tokens of service accounts, and the reviews that say whose they are and what they may do.
import assert from "node:assert/strict";
import { contractCase } from "../contract-case.ts";
import { eventually } from "../eventually.ts";
import {
  boundPod,
  pendingPod,
  pods,
  selfSubjectAccessReviews,
  serviceAccounts,
  subjectAccessReviews,
  tokenRequests,
  tokenReviews,
} from "../fixtures.ts";
import { at, type Manifest } from "../manifest.ts";
import { invalid, refused } from "../refusal.ts";
import type { Trial } from "../trial.ts";

const audience = "contract.example";
const extras = "authentication.kubernetes.io";

function requestToken(trial: Trial, spec: object = {}, account = "default"): Promise<Manifest> {
  const body = { metadata: {}, spec: { audiences: [audience], ...spec } };
  const options = { subresource: "token", ref: trial.ref(serviceAccounts, account) };
  return trial.create(tokenRequests, body, options);
}

async function tokenOf(trial: Trial, spec: object = {}, account = "default"): Promise<string> {
  return String(at(await requestToken(trial, spec, account), "status.token"));
}

function review(trial: Trial, token: string, audiences: readonly string[] = [audience]): Promise<Manifest> {
  return trial.create(tokenReviews, { spec: { token, audiences } });
}

function claimsOf(token: string): unknown {
  return JSON.parse(Buffer.from(token.split(".")[1] ?? "", "base64url").toString("utf8"));
}

async function boundToken(trial: Trial): Promise<{ readonly pod: Manifest; readonly token: string }> {
  const pod = await trial.create(pods, pendingPod("a"));
  const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "a", uid: pod.metadata?.uid };
  return { pod, token: await tokenOf(trial, { boundObjectRef }) };
}

export const tokenCases = [
  contractCase("token: is a JWT for the account and the audience", async (trial) => {
    const answer = await requestToken(trial);
    const claims = claimsOf(String(at(answer, "status.token")));
    assert.deepEqual(at(claims, "aud"), [audience]);
    assert.equal(at(claims, "sub"), `system:serviceaccount:${trial.namespace}:default`);
    const account = await trial.read(serviceAccounts, "default");
    const kubernetes = (claims as Record<string, unknown>)["kubernetes.io"];
    assert.equal(at(kubernetes, "namespace"), trial.namespace);
    assert.deepEqual(at(kubernetes, "serviceaccount"), { name: "default", uid: account.metadata?.uid });
  }),
  contractCase("token: the answer says when it ends", async (trial) => {
    const answer = await requestToken(trial, { expirationSeconds: 1200 });
    assert.equal(at(answer, "spec.expirationSeconds"), 1200);
    const claims = claimsOf(String(at(answer, "status.token")));
    const endsAt = Date.parse(String(at(answer, "status.expirationTimestamp"))) / 1000;
    assert.equal(at(claims, "exp"), endsAt);
    assert.equal(Number(at(claims, "exp")) - Number(at(claims, "iat")), 1200);
  }),
  contractCase("token: without a wish it lasts an hour", async (trial) => {
    assert.equal(at(await requestToken(trial), "spec.expirationSeconds"), 3600);
  }),
  contractCase("token: less than ten minutes is refused", async (trial) => {
    await invalid(
      requestToken(trial, { expirationSeconds: 599 }),
      ["FieldValueInvalid spec.expirationSeconds"],
      /may not specify a duration less than 10 minutes/,
    );
  }),
  contractCase("token: of an account that is not there is not found", async (trial) => {
    await refused(requestToken(trial, {}, "nobody"), {
      status: 404,
      reason: "NotFound",
      message: /serviceaccounts "nobody" not found/,
    });
  }),
  contractCase("token: bound to a pod names the pod", async (trial) => {
    const { pod, token } = await boundToken(trial);
    const kubernetes = (claimsOf(token) as Record<string, unknown>)["kubernetes.io"];
    assert.deepEqual(at(kubernetes, "pod"), { name: "a", uid: pod.metadata?.uid });
  }),
  contractCase("token: bound to a pod that is not there is not found", async (trial) => {
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "none" };
    await refused(requestToken(trial, { boundObjectRef }), {
      status: 404,
      reason: "NotFound",
      message: /pods "none" not found/,
    });
  }),
  contractCase("token: bound to another uid than the pod's is refused", async (trial) => {
    await trial.create(pods, pendingPod("a"));
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "a", uid: "another" };
    await refused(requestToken(trial, { boundObjectRef }), { status: 409, reason: "Conflict" });
  }),
  contractCase("token: bound to a pod of another account is refused", async (trial) => {
    await trial.create(serviceAccounts, { metadata: { name: "other" } });
    await trial.create(pods, pendingPod("a"));
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "a" };
    await refused(requestToken(trial, { boundObjectRef }, "other"), {
      status: 400,
      reason: "BadRequest",
      message:
        /cannot bind token for serviceaccount "other" to pod running with different serviceaccount name/,
    });
  }),
  contractCase("token review: names the user, the groups and the audience", async (trial) => {
    const account = await trial.read(serviceAccounts, "default");
    const { status } = (await review(trial, await tokenOf(trial))) as { status?: unknown };
    assert.equal(at(status, "authenticated"), true);
    assert.deepEqual(at(status, "audiences"), [audience]);
    assert.equal(at(status, "user.username"), `system:serviceaccount:${trial.namespace}:default`);
    assert.equal(at(status, "user.uid"), account.metadata?.uid);
    assert.deepEqual(at(status, "user.groups"), [
      "system:serviceaccounts",
      `system:serviceaccounts:${trial.namespace}`,
      "system:authenticated",
    ]);
    assert.equal(at(status, "error"), undefined);
  }),
  contractCase("token review: of a token bound to a pod has the pod's name and uid", async (trial) => {
    const { pod, token } = await boundToken(trial);
    const extra = at(await review(trial, token), "status.user.extra") as Record<string, unknown>;
    assert.deepEqual(extra[`${extras}/pod-name`], ["a"]);
    assert.deepEqual(extra[`${extras}/pod-uid`], [pod.metadata?.uid]);
  }),
  contractCase("token review: of a token without a pod has no pod", async (trial) => {
    const extra = at(await review(trial, await tokenOf(trial)), "status.user.extra") ?? {};
    assert.equal((extra as Record<string, unknown>)[`${extras}/pod-name`], undefined);
  }),
  contractCase("token review: of a pod on a node has the node's name", async (trial) => {
    const pod = await trial.create(pods, boundPod("a"));
    trial.after(() => trial.delete(pods, "a", { gracePeriodSeconds: 0 }));
    const boundObjectRef = { apiVersion: "v1", kind: "Pod", name: "a", uid: pod.metadata?.uid };
    const token = await tokenOf(trial, { boundObjectRef });
    const extra = at(await review(trial, token), "status.user.extra") as Record<string, unknown>;
    assert.deepEqual(extra[`${extras}/node-name`], ["no-such-node"]);
  }),
  contractCase(
    "token review: another audience is not authenticated, and says nothing about who",
    async (trial) => {
      const { status } = (await review(trial, await tokenOf(trial), ["other"])) as { status?: unknown };
      assert.equal(at(status, "authenticated"), undefined);
      assert.deepEqual(at(status, "user"), {});
      assert.match(String(at(status, "error")), /token audiences .* is invalid for the target audiences/);
    },
  ),
  contractCase("token review: of several audiences, those that the token has are returned", async (trial) => {
    const token = await tokenOf(trial, { audiences: ["one", "two"] });
    const answer = await review(trial, token, ["two", "three"]);
    assert.deepEqual(at(answer, "status.audiences"), ["two"]);
  }),
  contractCase(
    "token review: a text that is no token has authenticated absent and an error",
    async (trial) => {
      const { status } = (await review(trial, "nonsense")) as { status?: unknown };
      assert.equal(at(status, "authenticated"), undefined);
      assert.ok(at(status, "error"));
    },
  ),
  contractCase("token review: a token that was tampered with is not authenticated", async (trial) => {
    const [head, , signature] = (await tokenOf(trial)).split(".");
    const claims = { ...(claimsOf(await tokenOf(trial)) as object), sub: "system:admin" };
    const forged = [head, Buffer.from(JSON.stringify(claims)).toString("base64url"), signature].join(".");
    assert.equal(at(await review(trial, forged), "status.authenticated"), undefined);
  }),
  contractCase("token review: without audiences the API server's own is meant", async (trial) => {
    const own = await tokenOf(trial, { audiences: [] });
    const accepted = await trial.create(tokenReviews, { spec: { token: own } });
    assert.equal(at(accepted, "status.authenticated"), true);
    assert.equal((at(accepted, "status.audiences") as unknown[]).length, 1);
    const other = await trial.create(tokenReviews, { spec: { token: await tokenOf(trial) } });
    assert.equal(at(other, "status.authenticated"), undefined);
  }),
  contractCase("token review: an empty token is a bad request", async (trial) => {
    await refused(review(trial, ""), { status: 400, reason: "BadRequest" });
  }),
  contractCase("token review: the token of a deleted pod is no longer authenticated", async (trial) => {
    const { token } = await boundToken(trial);
    await trial.delete(pods, "a", { gracePeriodSeconds: 0 });
    await eventually("the token is refused", async () => {
      assert.equal(at(await review(trial, token), "status.authenticated"), undefined);
    });
  }),
  contractCase("token review: a new pod of the same name does not make the old token good", async (trial) => {
    const { token } = await boundToken(trial);
    await trial.delete(pods, "a", { gracePeriodSeconds: 0 });
    await trial.create(pods, pendingPod("a"));
    await eventually("the token is refused", async () => {
      assert.equal(at(await review(trial, token), "status.authenticated"), undefined);
    });
  }),
  contractCase("token review: the token of a deleted account is no longer authenticated", async (trial) => {
    await trial.create(serviceAccounts, { metadata: { name: "short" } });
    const token = await tokenOf(trial, {}, "short");
    await trial.delete(serviceAccounts, "short");
    await eventually("the token is refused", async () => {
      assert.equal(at(await review(trial, token), "status.authenticated"), undefined);
    });
  }),
  contractCase("service accounts: the default one comes back when it is deleted", async (trial) => {
    const before = await trial.read(serviceAccounts, "default");
    await trial.delete(serviceAccounts, "default");
    await eventually("there is a new one", async () => {
      assert.notEqual((await trial.read(serviceAccounts, "default")).metadata?.uid, before.metadata?.uid);
    });
  }),
  contractCase("access review: masters may do everything", async (trial) => {
    const resourceAttributes = { verb: "delete", resource: "pods", namespace: trial.namespace };
    const spec = { user: "somebody", groups: ["system:masters"], resourceAttributes };
    const answer = await trial.create(subjectAccessReviews, { spec });
    assert.equal(at(answer, "status.allowed"), true);
  }),
  contractCase("access review: a user without rights may not", async (trial) => {
    const resourceAttributes = { verb: "delete", resource: "pods", namespace: trial.namespace };
    const answer = await trial.create(subjectAccessReviews, { spec: { user: "nobody", resourceAttributes } });
    assert.equal(at(answer, "status.allowed"), false);
  }),
  contractCase("access review: one about nobody is refused", async (trial) => {
    const resourceAttributes = { verb: "get", resource: "pods" };
    await invalid(trial.create(subjectAccessReviews, { spec: { resourceAttributes } }), [
      "FieldValueInvalid spec.user",
    ]);
  }),
  contractCase("access review: one about everything at once is refused", async (trial) => {
    await invalid(trial.create(subjectAccessReviews, { spec: { user: "nobody" } }), [
      "FieldValueInvalid spec.resourceAttributes",
    ]);
  }),
  contractCase("access review: about oneself", async (trial) => {
    const resourceAttributes = { verb: "create", group: "apps", resource: "replicasets" };
    const answer = await trial.create(selfSubjectAccessReviews, { spec: { resourceAttributes } });
    assert.equal(at(answer, "status.allowed"), true);
  }),
];
