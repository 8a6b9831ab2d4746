import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { create } from "@bufbuild/protobuf";
import {
  Code,
  ConnectError,
  createClient,
  createContextValues,
  createRouterTransport,
  type HandlerContext,
} from "@connectrpc/connect";
import type { TokenReview } from "kubernetes-types/authentication/v1.js";
import { utf8 } from "../../test/support/deployment-messages.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { ownPod, ownReplicaSet } from "../../test/support/own-workload.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { testSeal } from "../../test/support/test-seal.ts";
import { DecryptSecretsBlobRequestSchema, SecretsService } from "../gen/krane/v1/secrets_pb.ts";
import type { DesiredDeployment, DesiredDeployments } from "../kinds/deployment/desired-deployments.ts";
import type { KubeApi } from "../kube/api.ts";
import type { ResourceKind } from "../kube/types.ts";
import { createLog } from "../telemetry/log.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import type { Vault } from "../vault/vault.ts";
import { peerAddress } from "./call-admission.ts";
import { createDecisionLog, type SecretsDecision, type SecretsOutcome } from "./secrets-decision.ts";
import { createSecretsService, secretsServiceRoutes } from "./secrets-service.ts";

interface WorldOptions {
  readonly hangs?: boolean;
  readonly isReviewing?: boolean;
  /** The objects in the cluster, by kind. */
  readonly objects?: Readonly<Record<string, unknown>>;
  readonly desired?: DesiredDeployments;
  readonly vault?: Pick<Vault, "decryptBulk">;
}

const noVault: Pick<Vault, "decryptBulk"> = { decryptBulk: () => assert.fail("nobody is let through") };
const nothingKnown: DesiredDeployments = { find: () => undefined };

/** An API server where every token belongs to a different pod, which exists only if it is given. */
function world(options: WorldOptions = {}) {
  const {
    hangs = false,
    isReviewing = true,
    objects = {},
    desired = nothingKnown,
    vault = noVault,
  } = options;
  const clock = new FakeClock();
  let reviews = 0;
  const api = {
    async create(_: unknown, { spec }: TokenReview) {
      reviews += 1;
      if (!isReviewing) await new Promise<never>(() => undefined);
      const uid = spec.token?.split(".")[2] ?? "";
      const extra = {
        "authentication.kubernetes.io/pod-name": ["web"],
        "authentication.kubernetes.io/pod-uid": [uid],
      };
      const user = { username: "system:serviceaccount:acme:default", extra };
      return { spec, status: { authenticated: true, audiences: ["krane"], user } };
    },
    get: ({ kind }: ResourceKind) =>
      hangs ? new Promise<never>(() => undefined) : Promise.resolve(objects[kind]),
  } as unknown as KubeApi;
  const decisions: SecretsDecision[] = [];
  const metrics = createMetrics({ version: "0", revision: "r", nodeVersion: "v0" });
  const deps = {
    api,
    clock,
    metrics,
    log: createQuietLog(),
    vault,
    desired,
    replicaSets: { watched: () => undefined },
    seal: () => testSeal,
    mayBeOriginal: () => true,
    audit: (decision: SecretsDecision) => void decisions.push(decision),
  };
  const service = createSecretsService({ audience: "krane", acceptDefaultAudience: false }, deps);
  const routes = secretsServiceRoutes(() => service, deps);
  const client = createClient(SecretsService, createRouterTransport(routes));
  /** Calls from a new address, which is admitted. */
  const askPastTheDoor = async (token: string) => {
    const request = create(DecryptSecretsBlobRequestSchema, { token });
    const context = { values: createContextValues(), signal: new AbortController().signal };
    return service.decryptSecretsBlob(request, context as HandlerContext);
  };
  const ask = (token: string) =>
    client.decryptSecretsBlob({ token, deploymentId: "d_1", environmentId: "e_1" }).then(
      () => assert.fail("it got secrets"),
      (error: unknown) => ConnectError.from(error).code,
    );
  return { clock, client, service, ask, askPastTheDoor, decisions, metrics, reviewCount: () => reviews };
}

const isTold = (outcome: SecretsOutcome) => outcome.kind === "limited" && !outcome.isRepeated;

const count = (codes: readonly Code[], code: Code) => codes.filter((each) => each === code).length;

describe("SecretsService", () => {
  test("a flood from one address causes a limited number of reviews, and is then rate-limited", async () => {
    const { clock, ask, reviewCount, metrics, decisions } = world();
    const flood = () => Promise.all(Array.from({ length: 1_000 }, (_, index) => ask(`a.b.${index}`)));
    const codes = await flood();
    assert.deepEqual([count(codes, Code.PermissionDenied), count(codes, Code.ResourceExhausted)], [500, 500]);
    assert.equal(reviewCount(), 500);
    await clock.advance(1_000);
    assert.equal(count(await flood(), Code.PermissionDenied), 50);
    assert.match(await metrics.render(), /unkey_krane_secrets_errors_total\{type="rate_limited"\} 1450/);
    const told = decisions.filter(({ outcome }) => isTold(outcome));
    assert.equal(told.length, 1, "a flood is one line in the log, not thousands");
    await clock.advance(60_000);
    await Promise.all([flood(), flood()]);
    assert.equal(
      decisions.filter(({ outcome }) => isTold(outcome)).length,
      2,
      "and another one a minute later",
    );
  });

  test("too many tokens are logged once a minute", async () => {
    const { clock, askPastTheDoor, decisions } = world({ isReviewing: false });
    const flood = () => {
      for (let index = 0; index < 2_000; index++) askPastTheDoor(`a.b.${index}`).catch(() => undefined);
    };
    const told = () => decisions.filter(({ outcome }) => isTold(outcome)).length;
    flood();
    await clock.settle();
    assert.equal(told(), 1);
    await clock.advance(60_000);
    flood();
    await clock.settle();
    assert.equal(told(), 2);
  });

  test("a pod that calls too often is limited, and its neighbour is not", async () => {
    const { clock, ask } = world();
    const codes = await Promise.all(Array.from({ length: 100 }, () => ask("a.b.loud")));
    assert.equal(count(codes, Code.ResourceExhausted), 70);
    assert.equal(await ask("a.b.quiet"), Code.PermissionDenied);
    await clock.advance(1_000);
    assert.deepEqual(
      [await ask("a.b.loud"), await ask("a.b.loud")],
      [Code.PermissionDenied, Code.ResourceExhausted],
    );
  });

  test("an API server that never responds is unavailable after ten seconds, and nothing leaks", async () => {
    const { clock, ask, decisions } = world({ hangs: true });
    const code = ask("a.b.c");
    await clock.advance(10_000);
    assert.equal(await code, Code.Unavailable);
    assert.equal(decisions[0]?.outcome.kind === "failed" && decisions[0].outcome.reason, "timed out");
    assert.equal(clock.timerCount, 0);
  });

  test("desired state decides on each call, and selects the keyring", async () => {
    let known: DesiredDeployment | undefined;
    const opened: string[] = [];
    const { client, decisions, metrics } = world({
      objects: { Pod: ownPod(), ReplicaSet: ownReplicaSet() },
      desired: { find: (key) => (key === "acme/web" ? known : undefined) },
      vault: {
        async decryptBulk({ keyring, items }) {
          opened.push(keyring);
          return new Map([...items.keys()].map((name) => [name, "clear"]));
        },
      },
    });
    const request = {
      token: "a.b.pod-uid",
      deploymentId: "d_1",
      environmentId: "env_1",
      encryptedBlob: utf8('{"secrets":{"A":"sealed"}}'),
    };
    const answer = (next: DesiredDeployment | undefined) => {
      known = next;
      return client.decryptSecretsBlob(request).then(
        ({ envVars }) => envVars["A"],
        (error: unknown) => [ConnectError.from(error).code, ConnectError.from(error).rawMessage],
      );
    };
    const own: DesiredDeployment = { kind: "wanted", deploymentId: "d_1", environmentId: "env_1" };
    const denied = [Code.PermissionDenied, "these secrets are not for this caller"];
    const later = [Code.Unavailable, "secrets are temporarily unavailable; try again"];
    assert.deepEqual(await answer(undefined), later);
    assert.deepEqual(await answer({ kind: "rejected" }), later);
    assert.deepEqual(await answer({ ...own, deploymentId: "d_2" }), denied);
    assert.deepEqual(await answer({ ...own, environmentId: "env_2" }), denied);
    assert.deepEqual(await answer({ kind: "deleting" }), denied);
    assert.deepEqual(opened, []);
    assert.deepEqual(await answer(own), "clear");
    assert.deepEqual(opened, ["env_1"]);
    assert.deepEqual(
      decisions.map(({ outcome }) => outcome.kind),
      ["undecided", "undecided", "denied", "denied", "denied", "allowed"],
    );
    const counted = await metrics.render();
    assert.match(counted, /unkey_krane_secrets_errors_total\{type="unavailable"\} 2/);
    assert.match(counted, /unkey_krane_secrets_errors_total\{type="permission_denied"\} 3/);
  });

  test("a token that was copied works while its own pod lives, and the audit has the caller's address", async () => {
    const objects: Record<string, unknown> = { Pod: ownPod(), ReplicaSet: ownReplicaSet() };
    const { service, decisions } = world({
      objects,
      desired: { find: () => ({ kind: "wanted", deploymentId: "d_1", environmentId: "env_1" }) },
      vault: { decryptBulk: async ({ items }) => new Map([...items.keys()].map((name) => [name, "clear"])) },
    });
    const request = create(DecryptSecretsBlobRequestSchema, {
      token: "a.b.pod-uid",
      deploymentId: "d_1",
      environmentId: "env_1",
      encryptedBlob: utf8('{"secrets":{"A":"sealed"}}'),
    });
    const askFrom = async (peer: string) => {
      const values = createContextValues().set(peerAddress, peer);
      const context = { values, signal: new AbortController().signal };
      return service.decryptSecretsBlob(request, context as HandlerContext);
    };
    await askFrom("10.0.0.1");
    await askFrom("10.0.0.2");
    delete objects["Pod"];
    await assert.rejects(askFrom("10.0.0.2"));
    assert.deepEqual(
      decisions.map(({ peer, outcome }) => [peer, outcome.kind]),
      [
        ["10.0.0.1", "allowed"],
        ["10.0.0.2", "allowed"],
        ["10.0.0.2", "denied"],
      ],
    );
  });

  test("the audit truncates what a caller sends, and never has its token", async () => {
    const lines: string[] = [];
    const log = createLog(
      {
        level: "debug",
        instance: { id: "ins_test", region: "local", version: "0" },
        sampling: { rate: 0, slowThresholdMs: 0 },
      },
      { write: (line) => void lines.push(line), random: { next: () => 0 }, clock: new FakeClock() },
    );
    const write = createDecisionLog(log);
    const { ask, decisions } = world();
    await ask("secret.token.value");
    for (const decision of decisions) write(decision);
    const [line = "", ...others] = lines;
    assert.deepEqual(others, []);
    assert.ok(!line.includes("secret.token.value"));
    const { level, reason, namespace, name, uid, deploymentId } = JSON.parse(line);
    assert.deepEqual(
      { level, reason, namespace, name, uid, deploymentId },
      {
        level: "warn",
        reason: "pod not found",
        namespace: "acme",
        name: "web",
        uid: "value",
        deploymentId: "d_1",
      },
    );
  });
});
