// An app on the real node that a pod asks for by its name a hundred times a second, and what Kubernetes did meanwhile: when the
// Service stopped leading to a release, and when the pods of a release were told to end.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import type { Pod } from "kubernetes-types/core/v1.js";
import type { EndpointSlice } from "kubernetes-types/discovery/v1.js";
import { watchPath } from "../cluster/watched-path.ts";
import { eventually } from "../eventually.ts";
import { whoamiImages } from "./images.ts";
import type { InstalledKrane } from "./installed-krane.ts";
import { patience } from "./tenants.ts";

export const [oldImage, newImage] = whoamiImages;
const namespace = "rolled";
const name = "rolled";
export const appId = "app_rolled";
const owner = { workspace: "ws_rolled", project: "proj_rolled" };
const environment = { apiVersion: "krane/v1", kind: "Environment", id: "env_rolled", ...owner };
const replicas = 2;

export const app = {
  apiVersion: "krane/v1",
  kind: "App",
  id: appId,
  name,
  namespace,
  ...owner,
  environment: environment.id,
  image: oldImage,
  replicas,
  cpu: "500m",
  healthcheck: { method: "GET", path: "/", intervalSeconds: 1, timeoutSeconds: 5, failureThreshold: 60 },
  expose: "cluster",
  release: { readyFor: "3s", deadline: "30s", drainFor: "10s" },
};

/** The command line that fails if the release does. */
export function applyLine(document: Readonly<Record<string, unknown>>): string {
  const documents = [environment, document].map((each) => JSON.stringify(each)).join("\n---\n");
  return `krane apply --wait --timeout 180s -f - <<'END'\n${documents}\nEND`;
}

export interface Asked {
  readonly asked: number;
  /** By deployment; when the requests were sent. */
  readonly answers: Readonly<Record<string, { count: number; firstMs: number; lastMs: number }>>;
  readonly failures: readonly unknown[];
}

/** Asks the app until `stop`, which resolves with what was seen. */
export async function askApp({ cluster }: InstalledKrane): Promise<() => Promise<Asked>> {
  const program = await readFile(new URL("./ask-often.mjs", import.meta.url), "utf8");
  // Of its own, because that of an earlier test is still there.
  const stopFile = `/tmp/asked-${Date.now()}`;
  const run = (...args: readonly string[]) =>
    cluster.kubectl(["-n", "probe", "exec", "probe", "--", "/nodejs/bin/node", ...args]);
  const url = `http://${name}.${namespace}/env`;
  const asking = run("--input-type=module", "--eval", program, "--", url, stopFile);
  return async () => {
    await run("--eval", `require("node:fs").writeFileSync("${stopFile}", "")`);
    return JSON.parse(await asking) as Asked;
  };
}

export interface SeenReleases {
  /** When the Service stopped leading to a release that it does not lead to again, by deployment. */
  readonly left: ReadonlyMap<string, number>;
  /** When the first pod of a release was told to end, by deployment. */
  readonly ended: ReadonlyMap<string, number>;
}

/** Watches until the signal aborts. Both times are those at which the test heard of it, and so never too early. */
export async function watchReleases({ cluster }: InstalledKrane, signal: AbortSignal): Promise<SeenReleases> {
  const left = new Map<string, number>();
  const ended = new Map<string, number>();
  const releases = new Map<string, string>();
  let leadsTo = new Set<string>();
  await watchPath<Pod>(cluster, `/api/v1/namespaces/${namespace}/pods`, signal, (_, { metadata }) => {
    const release = metadata?.labels?.["unkey.com/deployment.id"] ?? "";
    releases.set(metadata?.name ?? "", release);
    if (metadata?.deletionTimestamp !== undefined && !ended.has(release)) ended.set(release, Date.now());
  });
  // Endpoints are told by their pods.
  await eventually("the pods are known", () => assert.ok(releases.size > 0));
  const slices = `/apis/discovery.k8s.io/v1/namespaces/${namespace}/endpointslices?labelSelector=kubernetes.io/service-name%3D${name}`;
  await watchPath<EndpointSlice>(cluster, slices, signal, (event, { endpoints }) => {
    const names = event === "DELETED" ? [] : (endpoints ?? []).map(({ targetRef }) => targetRef?.name ?? "");
    const now = new Set(names.map((pod) => releases.get(pod) ?? pod));
    for (const release of leadsTo) if (!now.has(release)) left.set(release, Date.now());
    for (const release of now) left.delete(release);
    leadsTo = now;
  });
  return { left, ended };
}

/** What people would call an outage or a mix-up, whatever happened to krane meanwhile. */
export function checkAsked({ asked, answers, failures }: Asked, { left, ended }: SeenReleases): void {
  assert.deepEqual(failures, []);
  const counts = Object.values(answers).map(({ count }) => count);
  assert.equal(
    counts.reduce((a, b) => a + b, 0),
    asked,
  );
  for (const [release, leftMs] of left) {
    const lateMs = (answers[release]?.lastMs ?? 0) - leftMs;
    assert.ok(lateMs <= proxiesFollowMs, `${release} was asked ${lateMs} ms after the EndpointSlice changed`);
    const drainedMs = (ended.get(release) ?? Number.POSITIVE_INFINITY) - leftMs;
    assert.ok(drainedMs >= drainMinMs, `${release} had ${drainedMs} ms to drain`);
  }
}

const proxiesFollowMs = 2_000;
// A release drains for 5 seconds at least; the test may have heard of the change of the EndpointSlice a second late.
const drainMinMs = 4_000;

/** Resolves when only the pods of one release are left. */
export function untilOnly({ cluster }: InstalledKrane, release: string): Promise<void> {
  return eventually(
    `the pods of all releases but ${release} are gone`,
    async () => {
      const printed = await cluster.kubectl(["-n", namespace, "get", "pods", "-o", "json"]);
      const counts: Record<string, number> = {};
      for (const { metadata } of (JSON.parse(printed) as { readonly items: readonly Pod[] }).items) {
        const id = metadata?.labels?.["unkey.com/deployment.id"] ?? "";
        counts[id] = (counts[id] ?? 0) + 1;
      }
      assert.deepEqual(counts, { [release]: replicas });
    },
    patience,
  );
}
