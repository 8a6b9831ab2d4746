// Random combinations of everything that decides about secrets: token, pod, owner, ReplicaSet, namespace, labels, seal,
// desired state and request. Each may be the right one, another tenant's, forged or missing. Only the rightful ones open.
import assert from "node:assert/strict";
import { test } from "node:test";
import { create } from "@bufbuild/protobuf";
import { createContextValues, type HandlerContext } from "@connectrpc/connect";
import type { ReplicaSet } from "kubernetes-types/apps/v1.js";
import type { Pod } from "kubernetes-types/core/v1.js";
import { utf8 } from "../../test/support/deployment-messages.ts";
import { FakeClock } from "../../test/support/fake-clock.ts";
import { ownPod, ownReplicaSet } from "../../test/support/own-workload.ts";
import { createQuietLog } from "../../test/support/quiet-log.ts";
import { createTestSeal, otherSealKey, testSeal } from "../../test/support/test-seal.ts";
import { createSeededRandom } from "../concurrency/random.ts";
import type { WatchedObject } from "../engine/controller-definition.ts";
import { DecryptSecretsBlobRequestSchema } from "../gen/krane/v1/secrets_pb.ts";
import type { DesiredDeployment } from "../kinds/deployment/desired-deployments.ts";
import { tokenVolume } from "../kinds/deployment/secrets-token.ts";
import type { KubeApi } from "../kube/api.ts";
import { pods, replicaSets, services } from "../kube/resources.ts";
import type { ObjectRef, ResourceKind } from "../kube/types.ts";
import { annotationKeys, labelKeys } from "../model/labels.ts";
import { createMetrics } from "../telemetry/metrics.ts";
import { VaultError } from "../vault/vault-error.ts";
import { createSecretsService } from "./secrets-service.ts";

// For each of the two ways below.
const rounds = 50_000;

// Every way in which one thing can be. The first of each is the rightful one of tenant A, in the namespace "acme"; "d_2"
// and "env_2" are tenant B's.
const ways = {
  token: [
    "bound",
    "unbound",
    "other audience",
    "not authenticated",
    "of another pod",
    "of an earlier pod",
    "for the API server",
    "for the API server, unbound",
  ],
  tokenNamespace: ["acme", "globex"],
  account: ["default", "other"],
  podState: ["running", "deleting", "ended", "missing"],
  podLabel: ["krane", "none", "Helm"],
  podDeployment: ["d_1", "d_2", "none"],
  podEnvironment: ["env_1", "env_2", "none"],
  podAnnotation: ["d_1", "d_2", "none"],
  podForm: [
    "of the template",
    "other image",
    "other mark",
    "host network",
    "privileged",
    "hostPath",
    "no gVisor",
    "of the original",
    "of the original, with krane's token",
    "of the original, without a token",
    "of the original, with the mark",
    "of the original, privileged",
  ],
  owner: [
    "controller",
    "not a controller",
    "other uid",
    "other name",
    "none",
    "StatefulSet",
    "other API group",
  ],
  setState: ["live", "deleting", "missing"],
  setMarks: ["both", "no label", "other manager"],
  setDeployment: ["d_1", "d_2"],
  setEnvironment: ["env_1", "env_2"],
  seal: [
    "ours",
    "none",
    "edited",
    "unknown key",
    "other region",
    "other cluster",
    "of another name",
    "of another namespace",
    "of another kind",
    "adopted",
    "adopted with another uid",
    "adopted by another key",
  ],
  sealedDeployment: ["d_1", "d_2"],
  sealedEnvironment: ["env_1", "env_2"],
  desired: ["wanted", "unknown", "rejected", "deleting"],
  desiredDeployment: ["d_1", "d_2"],
  desiredEnvironment: ["env_1", "env_2"],
  askedDeployment: ["d_1", "d_2"],
  askedEnvironment: ["env_1", "env_2"],
  blob: ["env_1", "env_2"],
} as const;

type Ways = typeof ways;
type Case = { readonly [K in keyof Ways]: Ways[K][number] };

/** What is rightful, in each of the two ways: a pod of krane's template, and one that the original made. */
const bases = {
  krane: {},
  original: {
    token: "for the API server",
    podForm: "of the original",
    podAnnotation: "none",
    seal: "adopted",
  },
} as const satisfies Readonly<Record<string, Partial<Case>>>;

/** They pass as pods of an older template. */
const olderForms: ReadonlySet<string> = new Set([
  "of the original",
  "of the original, with krane's token",
  "of the original, without a token",
]);

/**
 * Who may have what, told from the case and not from the objects: the environment that the pod's secrets are opened for;
 * undefined if none may be.
 */
function rightfulEnvironment(one: Case): string | undefined {
  const { podDeployment: deployment, podEnvironment: environment } = one;
  const isForApiServer = one.token === "for the API server";
  if (isForApiServer && (one.podForm !== "of the original" || one.seal !== "adopted")) return undefined;
  if (
    (one.token !== "bound" && !isForApiServer) ||
    one.tokenNamespace !== "acme" ||
    one.account !== "default"
  )
    return undefined;
  if (one.podState !== "running" || one.podLabel !== "krane") return undefined;
  if (deployment === "none" || environment === "none") return undefined;
  if (one.podAnnotation !== "none" && one.podAnnotation !== deployment) return undefined;
  // Only krane's own write shows that a pod is older than the template.
  const isOlder = olderForms.has(one.podForm) && one.setMarks !== "other manager";
  if (one.podForm !== "of the template" && !isOlder) return undefined;
  if (one.owner !== "controller" || one.setState !== "live") return undefined;
  if (one.askedDeployment !== deployment || one.askedEnvironment !== environment) return undefined;
  if (one.blob !== environment) return undefined;
  const isDesired = one.desired === "wanted";
  if (isDesired && (one.desiredDeployment !== deployment || one.desiredEnvironment !== environment))
    return undefined;
  if (one.desired === "deleting") return undefined;
  if (one.seal === "ours" || one.seal === "adopted")
    return one.sealedDeployment === deployment && one.sealedEnvironment === environment
      ? environment
      : undefined;
  // Another krane's.
  const strange: readonly string[] = ["unknown key", "other region", "adopted by another key"];
  if (strange.includes(one.seal)) return undefined;
  // An older krane's: only if it has the marks, and desired state names it.
  const isMarked =
    one.setMarks === "both" && one.setDeployment === deployment && one.setEnvironment === environment;
  return isMarked && isDesired ? environment : undefined;
}

const strangeSeals = {
  "unknown key": createTestSeal({ keys: [otherSealKey] }),
  "other region": createTestSeal({ region: "elsewhere.dev" }),
  "other cluster": createTestSeal({ clusterId: "another" }),
} as const;

function sealOf({ seal, sealedDeployment, sealedEnvironment }: Case): string | undefined {
  const ids = {
    workspaceId: "ws_1",
    projectId: "prj_1",
    environmentId: sealedEnvironment,
    id: sealedDeployment,
  };
  const subject = { kind: replicaSets, namespace: "acme", name: "web" };
  switch (seal) {
    case "none":
      return undefined;
    case "ours":
      return testSeal.write(subject, ids);
    case "edited":
      return testSeal.write(subject, ids).replace(sealedEnvironment, `${sealedEnvironment}0`);
    case "of another name":
      return testSeal.write({ ...subject, name: "other" }, ids);
    case "of another namespace":
      return testSeal.write({ ...subject, namespace: "globex" }, ids);
    case "of another kind":
      return testSeal.write({ ...subject, kind: services }, ids);
    case "adopted":
      return testSeal.write(subject, ids, "rs-uid");
    case "adopted with another uid":
      return testSeal.write(subject, ids, "rs-earlier");
    case "adopted by another key":
      return strangeSeals["unknown key"].write(subject, ids, "rs-uid");
    default:
      return strangeSeals[seal].write(subject, ids);
  }
}

const madePod = ownPod();
const madeSet = ownReplicaSet();

function podOf(one: Case, uid: string): Pod | undefined {
  if (one.podState === "missing") return undefined;
  const { labels, annotations, ownerReferences = [] } = madePod.metadata ?? {};
  const [owner] = ownerReferences;
  assert.ok(owner && madePod.spec);
  const references = {
    controller: [owner],
    "not a controller": [{ ...owner, controller: false }],
    "other uid": [{ ...owner, uid: "earlier" }],
    "other name": [{ ...owner, name: "other" }],
    none: [],
    StatefulSet: [{ ...owner, kind: "StatefulSet" }],
    "other API group": [{ ...owner, apiVersion: "evil.example/v1" }],
  }[one.owner];
  const isOriginal = one.podForm.startsWith("of the original");
  const isMarked = !isOriginal || one.podForm.endsWith("with the mark");
  const mark = {
    ...(one.podForm === "other mark" && { [annotationKeys.templateHash]: "forged" }),
    ...(!isMarked && { [annotationKeys.templateHash]: "none" }),
  };
  return {
    metadata: {
      ...madePod.metadata,
      uid,
      labels: without({
        ...labels,
        [labelKeys.managedBy]: one.podLabel,
        [labelKeys.deploymentId]: one.podDeployment,
        [labelKeys.environmentId]: one.podEnvironment,
      }),
      annotations: without({ ...annotations, ...mark, [annotationKeys.deploymentId]: one.podAnnotation }),
      ownerReferences: references,
      // Before krane's write of the ReplicaSet.
      ...(isOriginal && { creationTimestamp: "2026-01-01T00:00:00Z" }),
      ...(one.podState === "deleting" && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
    },
    spec: { ...formed(madePod.spec, one.podForm), serviceAccountName: "default" },
    status: { phase: one.podState === "ended" ? "Failed" : "Running" },
  };
}

function formed(spec: NonNullable<Pod["spec"]>, form: Case["podForm"]): NonNullable<Pod["spec"]> {
  const { runtimeClassName: _, ...bare } = spec;
  const [container, ...others] = spec.containers;
  assert.ok(container);
  const changed = (change: object) => ({ ...spec, containers: [{ ...container, ...change }, ...others] });
  switch (form) {
    case "other image":
      return changed({ image: "registry.example/thief:1" });
    case "privileged":
      return changed({ securityContext: { ...container.securityContext, privileged: true } });
    case "host network":
      return { ...spec, hostNetwork: true };
    case "hostPath":
      return { ...spec, volumes: [...(spec.volumes ?? []), { name: "node", hostPath: { path: "/" } }] };
    case "no gVisor":
      return bare;
    case "of the original":
    case "of the original, with the mark":
      return asOriginal(spec);
    case "of the original, without a token":
      return { ...asOriginal(spec), automountServiceAccountToken: false };
    case "of the original, with krane's token":
      return { ...asOriginal(spec), volumes: [tokenVolume({ audience: "krane" })] };
    case "of the original, privileged": {
      const [made] = asOriginal(spec).containers;
      assert.ok(made);
      return { ...asOriginal(spec), containers: [{ ...made, securityContext: { privileged: true } }] };
    }
    default:
      return spec;
  }
}

/** Kubernetes mounts the token for the API server itself. */
function asOriginal({
  automountServiceAccountToken: _,
  volumes: __,
  ...spec
}: NonNullable<Pod["spec"]>): NonNullable<Pod["spec"]> {
  const serviceAccountToken = { expirationSeconds: 3607, path: "token" };
  return {
    ...spec,
    volumes: [{ name: "kube-api-access-x7x9z", projected: { sources: [{ serviceAccountToken }] } }],
  };
}

function setOf(one: Case): ReplicaSet | undefined {
  if (one.setState === "missing") return undefined;
  const { labels, annotations, managedFields = [] } = madeSet.metadata ?? {};
  const sealed = sealOf(one);
  const { seal, sealedDeployment, sealedEnvironment, setMarks, setState, setDeployment, setEnvironment } =
    one;
  const content = [
    seal,
    sealedDeployment,
    sealedEnvironment,
    setMarks,
    setState,
    setDeployment,
    setEnvironment,
  ];
  return {
    ...madeSet,
    metadata: {
      ...madeSet.metadata,
      labels: without({
        ...labels,
        [labelKeys.managedBy]: one.setMarks === "no label" ? "none" : "krane",
        [labelKeys.deploymentId]: one.setDeployment,
        [labelKeys.environmentId]: one.setEnvironment,
      }),
      annotations: { ...annotations, ...(sealed !== undefined && { [annotationKeys.seal]: sealed }) },
      managedFields: managedFields.map((entry) => ({
        ...entry,
        time: "2026-01-02T00:00:00Z",
        ...(one.setMarks === "other manager" && { manager: "kubectl" }),
      })),
      ...(one.setState === "deleting" && { deletionTimestamp: "2026-01-01T00:00:00Z" }),
      resourceVersion: content.join(),
    },
  };
}

/** What a watch that misses nothing shows of it. */
function watchedOf(set: ReplicaSet | undefined): WatchedObject | undefined {
  const { uid = "", resourceVersion = "" } = set?.metadata ?? {};
  const isSealed = testSeal.read(replicaSets, set?.metadata).kind === "valid";
  if (!isSealed || set?.metadata?.deletionTimestamp !== undefined) return undefined;
  return { uid, resourceVersion, generation: 1, hash: resourceVersion };
}

function without(record: Readonly<Record<string, string>>): Record<string, string> {
  return Object.fromEntries(Object.entries(record).filter(([, value]) => value !== "none"));
}

function desiredOf(one: Case): DesiredDeployment | undefined {
  if (one.desired === "unknown") return undefined;
  if (one.desired !== "wanted") return { kind: one.desired };
  return { kind: "wanted", deploymentId: one.desiredDeployment, environmentId: one.desiredEnvironment };
}

const apiServer = "https://kubernetes.default.svc";

/** `audiences`: those that were asked for; undefined stands for the API server's own. */
function reviewOf(one: Case, podUid: string, audiences: readonly string[] | undefined) {
  const isForApiServer = one.token.startsWith("for the API server");
  if (isForApiServer !== (audiences === undefined)) return { status: {} };
  const name = one.token === "of another pod" ? "other" : (madePod.metadata?.name ?? "");
  const uid = one.token === "of an earlier pod" ? "earlier" : podUid;
  const extra = {
    "authentication.kubernetes.io/pod-name": [name],
    "authentication.kubernetes.io/pod-uid": [uid],
  };
  const username = `system:serviceaccount:${one.tokenNamespace}:${one.account}`;
  const user = { username, ...(!one.token.endsWith("unbound") && { extra }) };
  if (one.token === "not authenticated") return { status: {} };
  const own = one.token === "other audience" ? "vault" : "krane";
  return { status: { authenticated: true, audiences: [isForApiServer ? apiServer : own], user } };
}

/** A service in a world that changes from call to call. Resolves with the environment whose values it gave. */
function createWorld() {
  let one: Case;
  let podUid = "";
  const isThere = ({ namespace, name }: ObjectRef, object: Pod | ReplicaSet) =>
    namespace === "acme" && name === object.metadata?.name;
  const api = {
    create: async (
      _: ResourceKind,
      { spec }: { readonly spec: { readonly audiences?: readonly string[] } },
    ) => reviewOf(one, podUid, spec.audiences),
    get: async (kind: ResourceKind, ref: ObjectRef) => {
      const object = kind.kind === pods.kind ? podOf(one, podUid) : setOf(one);
      return object && isThere(ref, object) ? object : undefined;
    },
  } as unknown as KubeApi;
  const service = createSecretsService(
    { audience: "krane", acceptDefaultAudience: false },
    {
      api,
      clock: new FakeClock(),
      log: createQuietLog(),
      metrics: createMetrics({ version: "0", revision: "r", nodeVersion: "v0" }),
      desired: { find: (key) => (key === "acme/web" ? desiredOf(one) : undefined) },
      replicaSets: { watched: (key) => (key === "acme/web" ? watchedOf(setOf(one)) : undefined) },
      seal: () => testSeal,
      mayBeOriginal: () => true,
      vault: {
        async decryptBulk({ keyring, items }) {
          for (const encrypted of items.values())
            if (encrypted !== keyring) throw new VaultError("undecryptable", "another keyring's");
          return items;
        },
      },
      audit: () => undefined,
    },
  );
  const context = { values: createContextValues(), signal: new AbortController().signal };
  return async (next: Case, round: number): Promise<string | undefined> => {
    one = next;
    podUid = `pod-${round}`;
    const request = create(DecryptSecretsBlobRequestSchema, {
      token: `a.b.${round}`,
      deploymentId: one.askedDeployment,
      environmentId: one.askedEnvironment,
      encryptedBlob: utf8(JSON.stringify({ secrets: { VALUE: one.blob } })),
    });
    const answer = await Promise.resolve(
      service.decryptSecretsBlob(request, context as HandlerContext),
    ).catch(() => undefined);
    return answer?.envVars?.["VALUE"];
  };
}

for (const [name, base] of Object.entries(bases)) {
  test(`of ${rounds} random combinations around a pod of ${name}, only the rightful ones open`, async () => {
    const random = createSeededRandom(15);
    const ask = createWorld();
    const names = Object.keys(ways) as (keyof Ways)[];
    const onlyFlaws = new Set<string>();
    const flawsOf = (each: keyof Ways) => {
      const right = (base as Partial<Case>)[each] ?? ways[each][0];
      return { right, others: (ways[each] as readonly string[]).filter((way) => way !== right) };
    };
    let opened = 0;
    for (let round = 0; round < rounds; round++) {
      const wrong: string[] = [];
      const drawn = names.map((each) => {
        const { right, others } = flawsOf(each);
        if (random.next() > 0.1) return [each, right];
        const other = others[Math.floor(random.next() * others.length)];
        wrong.push(`${each}: ${other}`);
        return [each, other];
      });
      const one = Object.fromEntries(drawn) as Case;
      const rightful = rightfulEnvironment(one);
      assert.equal(await ask(one, round), rightful, JSON.stringify(one));
      if (rightful !== undefined) opened += 1;
      const [only, ...more] = wrong;
      if (only !== undefined && more.length === 0) onlyFlaws.add(only);
    }
    assert.ok(opened > rounds / 20 && opened < rounds / 2, `${opened} opened`);
    // Each thing was wrong alone, too, so that no other check could hide that nobody looks at it.
    const all = names.flatMap((each) => flawsOf(each).others.map((way) => `${each}: ${way}`));
    assert.deepEqual(
      all.filter((flaw) => !onlyFlaws.has(flaw)),
      [],
    );
  });
}
