// Checks what krane needs from the cluster, with read-only requests and reviews. Most of them need no permissions: an
// agent may not read RuntimeClasses and namespaces, and should not.
import { callingParts } from "../agent/cluster-calls.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { Config, GatewayConfig } from "../config/config.ts";
import { runtimeClassName } from "../kinds/deployment/pod-template.ts";
import { allKinds } from "../kinds/kinds.ts";
import type { KubeApi } from "../kube/api.ts";
import { isForbidden, KubeApiError, refusedError } from "../kube/errors.ts";
import {
  ciliumNetworkPolicies,
  httpRoutes,
  namespaces,
  runtimeClasses,
  tokenReviews,
} from "../kube/resources.ts";
import type { KubeTransport } from "../kube/transport.ts";
import type { ResourceKind } from "../kube/types.ts";
import { checkAccess } from "./access-check.ts";
import { checkAdmission } from "./admission-check.ts";
import { type Check, describeError } from "./checks.ts";
import { judgeClock } from "./clock-skew.ts";
import { type Finding, ok, problem, skipped, warning } from "./finding.ts";
import { checkLease } from "./lease-check.ts";
import { checkSeals, type SealCheckDeps } from "./seal-check.ts";

export interface ClusterParts {
  /** The address of the API server. */
  readonly server: string;
  readonly transport: KubeTransport;
  readonly api: KubeApi;
  /** Where krane keeps its own objects. */
  readonly stateNamespace: string;
}

export function clusterChecks(
  config: Config,
  cluster: ClusterParts,
  deps: Omit<SealCheckDeps, "api" | "stateNamespace">,
): readonly Check[] {
  const version = versionCheck(cluster, deps.clock);
  const named = (name: string, run: NamedRun): Check => ({
    name,
    async run(signal) {
      try {
        return await run(name, signal);
      } catch (error) {
        // An unreachable cluster is reported once, by the version check. When only this request failed, the check fails,
        // because "skipped" would hide the problem.
        if (error instanceof KubeApiError && !(await version.isReachable))
          return [skipped(name, "the cluster is not reachable")];
        throw error;
      }
    },
  });
  const namespaceCheck = (kind: string, namespace: string) =>
    named(`namespace ${namespace}`, (name, signal) =>
      checkNamespace(name, { kind, namespace }, cluster, signal),
    );
  const gatewayCheck = (gateway: GatewayConfig) =>
    named("gateway", (name, signal) => checkGateway(name, cluster, gateway, signal));
  const { api, stateNamespace } = cluster;
  const calls = { parts: callingParts(config), stateNamespace };
  return [
    version.check,
    named("rights", (name, signal) => checkAccess(name, api, calls, signal)),
    named("admission policy", (name, signal) => checkAdmission(name, cluster.transport, signal)),
    named("network policies", (name, signal) => checkPolicies(name, cluster, config, signal)),
    ...(config.gateway === undefined ? [] : [gatewayCheck(config.gateway)]),
    config.isolation.runtimeClass === ""
      ? named("sandbox", async (name) => [withoutSandbox(name)])
      : named(`RuntimeClass ${runtimeClassName}`, (name, signal) => checkRuntimeClass(name, cluster, signal)),
    ...allKinds.flatMap((kind) =>
      kind.ownNamespace === undefined ? [] : [namespaceCheck(kind.name, kind.ownNamespace)],
    ),
    named("lease", (name, signal) =>
      checkLease(name, config, { api, stateNamespace, clock: deps.clock }, signal),
    ),
    named("seals", (name, signal) => checkSeals(name, config, { ...deps, api, stateNamespace }, signal)),
    ...(config.vault
      ? [named("token reviews", (name, signal) => checkTokenReviews(name, cluster, config, signal))]
      : []),
  ];
}

type NamedRun = (name: string, signal: AbortSignal) => Promise<readonly Finding[]>;

/** The first check, and its result for the other checks, which run concurrently. */
function versionCheck(cluster: ClusterParts, clock: Clock) {
  const name = "cluster";
  let settle: (isReachable: boolean) => void = () => undefined;
  const isReachable = new Promise<boolean>((resolve) => {
    settle = resolve;
  });
  const check: Check = {
    name,
    async run(signal) {
      try {
        const findings = await checkVersion(name, cluster, clock, signal);
        settle(findings.every((each) => each.name !== name || each.state === "ok"));
        return findings;
      } finally {
        settle(false);
      }
    },
  };
  return { check, isReachable };
}

async function checkVersion(
  name: string,
  { server, transport }: ClusterParts,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const sentAtMs = clock.wallMs();
  try {
    const { status, body, date } = await transport.send({ method: "GET", path: "/version" }, signal);
    const time = judgeClock("cluster clock", "the cluster", { date, sentAtMs, receivedAtMs: clock.wallMs() });
    if (status === 401)
      return [problem(name, `${server} rejected krane's credentials`, credentialsRemedy), time];
    const { gitVersion } = (body ?? {}) as { readonly gitVersion?: unknown };
    if (status !== 200)
      return [problem(name, `GET /version at ${server} returned status ${status}`, addressRemedy), time];
    if (typeof gitVersion !== "string")
      return [problem(name, `${server} is not a Kubernetes API server`, addressRemedy), time];
    return [ok(name, `Kubernetes ${gitVersion} at ${server}`), time];
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    const remedy = error.code === "credentials" ? credentialsRemedy : addressRemedy;
    return [problem(name, `${server}: ${describeError(error)}`, remedy)];
  }
}

const addressRemedy =
  "check that this is the API server's address (kubernetes.kubeconfig) and that it is reachable from here";
const credentialsRemedy =
  "check that the token or certificate in the kubeconfig, or of krane's service account, is still valid";

async function checkPolicies(
  name: string,
  { transport }: ClusterParts,
  { isolation }: Config,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { kind } = ciliumNetworkPolicies;
  const support = await supportOf(ciliumNetworkPolicies, transport, signal);
  if (support === "unknown") return [unknownGroup(name, ciliumNetworkPolicies)];
  if (support === "yes")
    return [
      ok(name, `the cluster supports ${kind}`),
      skipped(
        "policy enforcement",
        `cannot be checked from here`,
        `test it: a pod without krane's labels must not reach the port of a deployment`,
      ),
    ];
  const finding = `the cluster does not support ${kind}`;
  if (isolation.networkPolicy === "best-effort")
    return [
      warning(
        name,
        `${finding}: nothing isolates tenants on the network (isolation.network_policy = "best-effort")`,
        "install Cilium; krane then writes the policies without a restart",
      ),
    ];
  return [
    problem(
      name,
      `${finding}: krane does not start deployments without their policy`,
      'install Cilium, or run deployments that nothing isolates on the network: isolation.network_policy = "best-effort"',
    ),
  ];
}

async function checkGateway(
  name: string,
  { transport }: ClusterParts,
  gateway: GatewayConfig,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const support = await supportOf(httpRoutes, transport, signal);
  if (support === "unknown") return [unknownGroup(name, httpRoutes)];
  const { group, version, kind } = httpRoutes;
  if (support === "no")
    return [
      problem(
        name,
        `the cluster does not support ${kind} (${group}/${version}): no app is reached at its hostnames`,
        "install the Gateway API and an implementation; krane then continues without a restart",
      ),
    ];
  return [
    ok(name, `the cluster supports ${kind}`),
    skipped(
      "gateway listeners",
      "cannot be checked from here",
      `check that they admit routes of the namespaces of tenants: kubectl -n ${gateway.namespace} get gateway ${gateway.name} -o yaml`,
    ),
  ];
}

async function supportOf(
  { group, version, plural }: ResourceKind,
  transport: ClusterParts["transport"],
  signal: AbortSignal,
): Promise<"yes" | "no" | "unknown"> {
  const path = `/apis/${group}/${version}`;
  const response = await transport.send({ method: "GET", path }, signal);
  if (response.status === 403) return "unknown";
  if (response.status !== 200 && response.status !== 404) throw refusedError(`GET ${path}`, response);
  const { resources } = (response.status === 404 ? { resources: [] } : (response.body ?? {})) as {
    readonly resources?: readonly { readonly name: string }[];
  };
  if (!Array.isArray(resources))
    throw new KubeApiError("malformed", `GET ${path}: the response is not a list of resources`);
  return resources.some((resource) => resource.name === plural) ? "yes" : "no";
}

function unknownGroup(name: string, { group }: ResourceKind): Finding {
  const look = `check with: kubectl api-resources --api-group=${group}`;
  return skipped(name, `krane has no permission to read ${group}`, look);
}

function withoutSandbox(name: string): Finding {
  return warning(
    name,
    'trusted code only: new deployments run without a sandbox, on the kernel of the node (isolation.runtime_class = "")',
    `install gVisor on the nodes, create a RuntimeClass ${runtimeClassName}, and remove the setting`,
  );
}

async function checkRuntimeClass(
  name: string,
  { api }: ClusterParts,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const look = `kubectl get runtimeclass ${runtimeClassName}`;
  try {
    const found = await api.get(runtimeClasses, { name: runtimeClassName }, {}, signal);
    if (found !== undefined) return [ok(name, `exists, with the handler ${found.handler}`)];
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return [
      skipped(
        name,
        "krane has no permission to read it, and needs none",
        `check with your own credentials: ${look}`,
      ),
    ];
  }
  return [
    problem(
      name,
      "is missing: pods of deployments cannot be created",
      `install gVisor on the nodes and create a RuntimeClass ${runtimeClassName} with the handler runsc`,
    ),
  ];
}

/** `kind`: the kind whose objects are all there. */
async function checkNamespace(
  name: string,
  { kind, namespace }: { readonly kind: string; readonly namespace: string },
  { api }: ClusterParts,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  try {
    const found = await api.get(namespaces, { name: namespace }, {}, signal);
    if (found === undefined) return [ok(name, `does not exist yet; krane creates it with the first ${kind}`)];
    if (found.metadata?.deletionTimestamp === undefined) return [ok(name, "exists")];
    const remedy = `check what blocks the deletion: kubectl get namespace ${namespace} -o yaml`;
    return [problem(name, `is being deleted: no ${kind} can be created until it is gone`, remedy)];
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return [
      skipped(
        name,
        "krane has no permission to read it, and needs none; it creates the namespace if missing",
      ),
    ];
  }
}

/** Reviews an invalid token: the check is whether krane may create reviews and the API server responds. */
async function checkTokenReviews(
  name: string,
  { api }: ClusterParts,
  { secrets }: Config,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { audience } = secrets;
  try {
    await api.create(tokenReviews, { spec: { token: "krane-doctor", audiences: [audience] } }, {}, signal);
    return [ok(name, `the API server reviews tokens for the audience ${audience}`)];
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return [
      problem(
        name,
        "krane has no permission to review tokens: pods do not get their secrets",
        "apply the roles for secrets in deploy/ (create tokenreviews.authentication.k8s.io)",
      ),
    ];
  }
}
