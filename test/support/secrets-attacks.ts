// Everything that somebody without a right to them may try in order to get secrets. Each attempt is made on a
// Kubernetes, the embedded one and a real one, and ends in the same sentence and an entry in the audit.
import assert from "node:assert/strict";
import { describe, type TestContext, test } from "node:test";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Pod } from "kubernetes-types/core/v1.js";
import { KubeApiError } from "../../src/kube/errors.ts";
import { replicaSets } from "../../src/kube/resources.ts";
import { annotationKeys, labelKeys } from "../../src/model/labels.ts";
import type { NotGiven } from "../../src/services/secrets-decision.ts";
import { forgedOrder } from "./forged-order.ts";
import { environmentId, otherEnvironmentId, type SecretSeekers, variables } from "./secret-seekers.ts";
import { type ServedSecrets, sealedBlob } from "./served-secrets.ts";

const never = new AbortController().signal;

export interface AttackedWorld {
  readonly seekers: SecretSeekers;
  readonly served: ServedSecrets;
  /** Somebody with every right in a namespace of their own. */
  readonly thief: SecretSeekers;
  /** A token of the pod that is right in everything and ended a minute ago. */
  expiredToken(pod: Pod): Promise<string>;
}

interface Attempt {
  readonly token: string;
  readonly deploymentId?: string;
  readonly environmentId?: string;
}

interface Attack {
  readonly name: string;
  /** More than one where it depends on whether the API server has noticed already. */
  readonly reasons: readonly Extract<NotGiven, { kind: "unauthenticated" | "denied" }>["reason"][];
  /** Without ids of its own the attempt names the victim's. */
  attempt(world: AttackedWorld, victim: Pod, t: TestContext): Promise<Attempt>;
}

interface UnprovenAttack extends Pick<Attack, "name" | "attempt"> {
  readonly reason: Extract<NotGiven, { kind: "undecided" }>["reason"];
}

const attacks: readonly Attack[] = [
  {
    name: "another deployment's id",
    reasons: ["asked for another deployment"],
    attempt: async ({ seekers }) => ({ token: await seekers.tokenOf(await seekers.deploy("thief")) }),
  },
  {
    name: "another environment's id",
    reasons: ["asked for another environment"],
    attempt: async ({ seekers }, victim) => ({
      token: await seekers.tokenOf(victim),
      environmentId: otherEnvironmentId,
    }),
  },
  {
    name: "another environment's label put onto the own pod",
    reasons: ["ReplicaSet belongs to another environment"],
    async attempt({ seekers }) {
      const pod = await seekers.deploy("relabelled");
      await seekers.patch(pod, { labels: { [labelKeys.environmentId]: otherEnvironmentId } });
      const token = await seekers.tokenOf(pod);
      return { token, deploymentId: "d_relabelled", environmentId: otherEnvironmentId };
    },
  },
  {
    name: "an annotation that names another deployment than the label",
    reasons: ["pod's deployment label and annotation differ"],
    async attempt({ seekers }) {
      const pod = await seekers.deploy("annotated");
      await seekers.patch(pod, { annotations: { [annotationKeys.deploymentId]: "d_victim" } });
      return { token: await seekers.tokenOf(pod), deploymentId: "d_annotated" };
    },
  },
  {
    name: "a pod that is not krane's",
    reasons: ["pod is not managed by krane"],
    attempt: async ({ seekers }) => ({ token: await seekers.tokenOf(await seekers.create("stranger")) }),
  },
  {
    name: "labels copied onto a pod without an owner",
    reasons: ["pod is not controlled by a ReplicaSet"],
    async attempt({ seekers }, victim) {
      // With the victim's own id its ReplicaSet would adopt the pod, and end it as one too many.
      const pod = await seekers.deploy("emptied");
      await orphan(pod, seekers);
      const copied = { ...victim.metadata?.labels, [labelKeys.deploymentId]: "d_emptied" };
      await seekers.delete(pod);
      const impostor = await seekers.create("impostor", { labels: copied });
      return { token: await seekers.tokenOf(impostor), deploymentId: "d_emptied" };
    },
  },
  {
    name: "labels copied onto the pods of a foreign ReplicaSet",
    reasons: ["ReplicaSet is not krane's"],
    async attempt({ seekers }, victim) {
      const { spec, metadata } = await ownerOf(victim, seekers);
      const labels = { ...metadata.labels, [labelKeys.deploymentId]: "d_copied" };
      const template = { ...spec.template, metadata: { ...spec.template.metadata, labels, annotations: {} } };
      const selector = { matchLabels: { [labelKeys.deploymentId]: "d_copied" } };
      const copy = {
        metadata: { name: "copied", namespace: seekers.namespace, labels },
        spec: { replicas: 1, selector, template },
      };
      await seekers.api.create(replicaSets, copy, { fieldManager: "somebody" }, never);
      return { token: await seekers.tokenOf(await seekers.podOf("d_copied")), deploymentId: "d_copied" };
    },
  },
  {
    name: "the thief's own deployment, its ReplicaSet replaced by one with the victim's ids",
    reasons: ["desired state names another deployment for this ReplicaSet"],
    async attempt({ thief }) {
      thief.desired.apply(thief.specOf("own", otherEnvironmentId));
      const pod = await thief.applyAsKrane(thief.specOf("own", environmentId, "d_victim"));
      return { token: await thief.tokenOf(pod) };
    },
  },
  {
    name: "the thief's own deployment, its ReplicaSet replaced by one of the victim's environment",
    reasons: ["desired state names another environment for this ReplicaSet"],
    async attempt({ thief }) {
      thief.desired.apply(thief.specOf("own", otherEnvironmentId));
      const pod = await thief.applyAsKrane(thief.specOf("own", environmentId));
      return { token: await thief.tokenOf(pod), deploymentId: "d_own" };
    },
  },
  {
    name: "a deployment that is being deleted, its ReplicaSet still there",
    reasons: ["the deployment is being deleted"],
    async attempt({ seekers }) {
      const token = await seekers.tokenOf(await seekers.deploy("deleted"));
      seekers.desired.delete(seekers.specOf("deleted"));
      return { token, deploymentId: "d_deleted" };
    },
  },
  {
    name: "a token for another audience",
    reasons: ["token not authenticated"],
    attempt: async ({ seekers }, victim) => ({ token: await seekers.tokenOf(victim, ["somebody-else"]) }),
  },
  {
    name: "a token for the API server, as pods have by default",
    reasons: ["token is for another audience"],
    attempt: async ({ seekers }, victim) => ({ token: await seekers.tokenOf(victim, []) }),
  },
  {
    name: "a token that is bound to no pod",
    reasons: ["token is not bound to a pod"],
    attempt: async ({ seekers }) => ({ token: await seekers.unboundToken() }),
  },
  {
    name: "a token that has expired",
    reasons: ["token not authenticated"],
    attempt: async ({ expiredToken }, victim) => ({ token: await expiredToken(victim) }),
  },
  {
    name: "a pod that is being deleted",
    reasons: ["pod is being deleted", "token not authenticated"],
    async attempt({ seekers, served }, _victim, t) {
      const pod = await seekers.deploy("leaving");
      const token = await seekers.tokenOf(pod);
      // The verdict on the token is fresh in every cache.
      await served.client.decryptSecretsBlob({ token, deploymentId: "d_leaving", environmentId });
      await seekers.patch(pod, { finalizers: ["krane.test/hold"] });
      t.after(() => seekers.patch(pod, {}));
      await seekers.delete(pod);
      return { token, deploymentId: "d_leaving" };
    },
  },
  {
    name: "a pod that was replaced by another of the same name",
    reasons: ["pod was replaced by another with the same name", "token not authenticated"],
    async attempt({ seekers, served }) {
      const pod = await seekers.deploy("replaced");
      const token = await seekers.tokenOf(pod);
      await served.client.decryptSecretsBlob({ token, deploymentId: "d_replaced", environmentId });
      const { name = "", labels = {} } = pod.metadata ?? {};
      // Otherwise it would make a pod of its own, and end the other as one too many.
      await orphan(pod, seekers);
      await seekers.delete(pod);
      await seekers.create(name, { labels });
      return { token, deploymentId: "d_replaced" };
    },
  },
  {
    name: "another service account",
    reasons: ["pod is not managed by krane"],
    async attempt({ seekers }) {
      await seekers.createAccount("other");
      return { token: await seekers.tokenOf(await seekers.create("other", {}, "other")) };
    },
  },
  { name: "no token", reasons: ["token missing"], attempt: async () => ({ token: "" }) },
  {
    name: "garbage",
    reasons: ["token is not a JWT"],
    attempt: async () => ({ token: "let me in \u0000 {}" }),
  },
  {
    name: "a JWT that says it needs no signature",
    reasons: ["token not authenticated"],
    async attempt({ seekers }, victim) {
      const [, claims] = (await seekers.tokenOf(victim)).split(".");
      const header = Buffer.from('{"alg":"none","typ":"JWT"}').toString("base64url");
      return { token: `${header}.${claims}.AA` };
    },
  },
  {
    name: "a genuine token with the claims of another pod",
    reasons: ["token not authenticated"],
    async attempt({ seekers }, victim) {
      const [header, , signature] = (await seekers.tokenOf(await seekers.create("forger"))).split(".");
      const [, claims] = (await seekers.tokenOf(victim)).split(".");
      return { token: `${header}.${claims}.${signature}` };
    },
  },
  {
    name: "a token of 1 MiB",
    reasons: ["token too large"],
    attempt: async () => ({ token: `${"a".repeat(512 * 1024)}.${"b".repeat(512 * 1024 - 3)}.c` }),
  },
];

/** Attempts that could also be a pod of krane's own that is early. Nobody is refused, and nothing is given. */
const unproven: readonly UnprovenAttack[] = [
  {
    name: "a ReplicaSet in the thief's namespace with the victim's ids, applied as krane",
    reason: "desired state does not name this ReplicaSet yet",
    async attempt({ thief }) {
      const pod = await thief.applyAsKrane(thief.specOf("victim"));
      return { token: await thief.tokenOf(pod) };
    },
  },
  {
    name: "the same with an order that no one gave, after a restart of krane",
    reason: "desired state does not name this ReplicaSet yet",
    async attempt({ thief }) {
      const order = forgedOrder(thief.messageOf("victim"), 7n);
      const pod = await thief.applyAsKrane(thief.specOf("victim"), order);
      thief.desired.restart();
      return { token: await thief.tokenOf(pod) };
    },
  },
];

/** Takes the ReplicaSet of a pod away and leaves the pod. */
async function orphan(pod: Pod, seekers: SecretSeekers): Promise<void> {
  const { namespace, name } = await ownerOf(pod, seekers);
  await seekers.api.delete(replicaSets, { namespace, name }, { propagation: "Orphan" }, never);
}

async function ownerOf(pod: Pod, { api, namespace }: SecretSeekers) {
  const name = pod.metadata?.ownerReferences?.[0]?.name ?? assert.fail("it has no owner");
  const owner = await api.get(replicaSets, { namespace, name }, {}, never);
  const { spec, metadata } = owner ?? assert.fail("it is gone");
  assert.ok(spec?.template && metadata);
  return { namespace, name, metadata, spec: { ...spec, template: spec.template } };
}

/** Defines one test per attack, each with a world of its own and a victim in it. */
export function defineSecretsAttacks(createWorld: (t: TestContext) => Promise<AttackedWorld>): void {
  const blob = sealedBlob(environmentId, variables);
  const ask = ({ served }: AttackedWorld, { token, ...ids }: Attempt) =>
    served.client.decryptSecretsBlob({
      encryptedBlob: blob,
      deploymentId: "d_victim",
      environmentId,
      ...ids,
      token,
    });

  test("a pod of a deployment gets its own secrets with the token that is mounted into it", async (t) => {
    const world = await createWorld(t);
    const pod = await world.seekers.deploy("victim");
    const { envVars } = await ask(world, { token: await world.seekers.tokenOf(pod) });
    assert.deepEqual({ ...envVars }, variables);
    const [decision, ...others] = world.served.decisions;
    assert.deepEqual(others, []);
    assert.deepEqual(decision?.outcome, { kind: "allowed", count: 2 });
    assert.equal(decision?.subject?.podUid, pod.metadata?.uid);
    assert.deepEqual(decision?.askedFor, { deploymentId: "d_victim", environmentId });
  });

  test("Kubernetes gives nobody a token that is bound to a pod of another namespace", async (t) => {
    const { seekers, thief } = await createWorld(t);
    const { name = "", uid = "" } = (await seekers.deploy("victim")).metadata ?? {};
    const bound = { metadata: { name, uid } };
    await assert.rejects(
      thief.tokenOf(bound),
      (error) => error instanceof KubeApiError && error.status === 404,
    );
    await thief.create(name);
    await assert.rejects(
      thief.tokenOf(bound),
      (error) => error instanceof KubeApiError && error.status === 409,
    );
  });

  describe("is refused with one sentence, and seen in the audit", () => {
    for (const { name, reasons, attempt } of attacks) {
      test(name, async (t) => {
        const world = await createWorld(t);
        const tried = await attempt(world, await world.seekers.deploy("victim"), t);
        const error = await ask(world, tried).then(
          () => assert.fail("it got secrets"),
          (thrown: unknown) => ConnectError.from(thrown),
        );
        const outcome = world.served.decisions.at(-1)?.outcome;
        assert.ok(outcome?.kind === "unauthenticated" || outcome?.kind === "denied", JSON.stringify(outcome));
        assert.ok(reasons.includes(outcome.reason), outcome.reason);
        const code = outcome.kind === "denied" ? Code.PermissionDenied : Code.Unauthenticated;
        assert.deepEqual([error.code, error.rawMessage], [code, "these secrets are not for this caller"]);
        if (tried.token !== "") assert.ok(!JSON.stringify(world.served.decisions).includes(tried.token));
        assert.equal(world.served.decryptions(), 0);
      });
    }
  });

  describe("is told to ask again, and nothing is decrypted for it", () => {
    for (const { name, reason, attempt } of unproven) {
      test(name, async (t) => {
        const world = await createWorld(t);
        const victim = await world.seekers.deploy("victim");
        const tried = await attempt(world, victim, t);
        const error = await ask(world, tried).then(
          () => assert.fail("it got secrets"),
          (thrown: unknown) => ConnectError.from(thrown),
        );
        assert.equal(error.code, Code.Unavailable);
        assert.deepEqual(world.served.decisions.at(-1)?.outcome, { kind: "undecided", reason });
        assert.equal(world.served.decryptions(), 0);
        const { envVars } = await ask(world, { token: await world.seekers.tokenOf(victim) });
        assert.deepEqual({ ...envVars }, variables, "the victim gets its own all the while");
      });
    }
  });
}
