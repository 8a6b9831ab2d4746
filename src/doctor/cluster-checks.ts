// What krane needs of the cluster itself. Only questions that change nothing are asked, and as far as possible such
// as everybody may ask: an agent has no right to look at RuntimeClasses and namespaces, and should not have one.
import { callingParts } from "../agent/cluster-calls.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import { runtimeClassName } from "../kinds/deployment/pod-template.ts";
import { allKinds } from "../kinds/kinds.ts";
import type { KubeApi } from "../kube/api.ts";
import { KubeApiError, refusedError } from "../kube/errors.ts";
import { ciliumNetworkPolicies, namespaces, runtimeClasses, tokenReviews } from "../kube/resources.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { checkAccess } from "./access-check.ts";
import { checkAdmission } from "./admission-check.ts";
import { type Check, describeError } from "./checks.ts";
import { judgeClock } from "./clock-skew.ts";
import { type Finding, ok, problem, skipped, warning } from "./finding.ts";

export interface ClusterParts {
  /** The address of the API server. */
  readonly server: string;
  readonly transport: KubeTransport;
  readonly api: KubeApi;
}

export function clusterChecks(
  config: Config,
  cluster: ClusterParts,
  deps: { readonly clock: Clock },
): readonly Check[] {
  const version = versionCheck(cluster, deps.clock);
  const named = (name: string, run: NamedRun): Check => ({
    name,
    async run(signal) {
      try {
        return await run(name, signal);
      } catch (error) {
        // A cluster that does not answer at all is told once. One that answers, but not to this question, was not
        // looked at, and that must not pass for being well.
        if (error instanceof KubeApiError && !(await version.isWell))
          return [skipped(name, "the cluster does not answer")];
        throw error;
      }
    },
  });
  const namespaceCheck = (kind: string, namespace: string) =>
    named(`namespace ${namespace}`, (name, signal) =>
      checkNamespace(name, { kind, namespace }, cluster, signal),
    );
  return [
    version.check,
    named("rights", (name, signal) => checkAccess(name, cluster.api, callingParts(config), signal)),
    named("admission policy", (name, signal) => checkAdmission(name, cluster.transport, signal)),
    named("network policies", (name, signal) => checkPolicies(name, cluster, config, signal)),
    named(`RuntimeClass ${runtimeClassName}`, (name, signal) => checkRuntimeClass(name, cluster, signal)),
    ...allKinds.flatMap((kind) =>
      kind.ownNamespace === undefined ? [] : [namespaceCheck(kind.name, kind.ownNamespace)],
    ),
    ...(config.vault
      ? [named("token reviews", (name, signal) => checkTokenReviews(name, cluster, config, signal))]
      : []),
  ];
}

type NamedRun = (name: string, signal: AbortSignal) => Promise<readonly Finding[]>;

/** The first check, and what it came to, for those that depend on it and run beside it. */
function versionCheck(cluster: ClusterParts, clock: Clock) {
  const name = "cluster";
  let settle: (isWell: boolean) => void = () => undefined;
  const isWell = new Promise<boolean>((resolve) => {
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
  return { check, isWell };
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
      return [problem(name, `${server} does not know krane's credentials`, credentialsRemedy), time];
    const { gitVersion } = (body ?? {}) as { readonly gitVersion?: unknown };
    if (status !== 200)
      return [problem(name, `${server} answers ${status} when asked for its version`, addressRemedy), time];
    if (typeof gitVersion !== "string")
      return [problem(name, `${server} answers, but not as an API server does`, addressRemedy), time];
    return [ok(name, `Kubernetes ${gitVersion} at ${server}`), time];
  } catch (error) {
    if (!(error instanceof KubeApiError)) throw error;
    const remedy = error.code === "credentials" ? credentialsRemedy : addressRemedy;
    return [problem(name, `${server}: ${describeError(error)}`, remedy)];
  }
}

const addressRemedy =
  "see whether this is the API server's address (kubernetes.kubeconfig) and whether it can be reached from here";
const credentialsRemedy =
  "see whether the token or certificate in the kubeconfig, or of krane's service account, is still valid";

async function checkPolicies(
  name: string,
  { transport }: ClusterParts,
  { isolation }: Config,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { group, version, plural, kind } = ciliumNetworkPolicies;
  const path = `/apis/${group}/${version}`;
  const answer = await transport.send({ method: "GET", path }, signal);
  const look = `look with: kubectl api-resources --api-group=${group}`;
  if (answer.status === 403) return [skipped(name, `krane may not ask the cluster for ${group}`, look)];
  if (answer.status !== 200 && answer.status !== 404) throw refusedError(`GET ${path}`, answer);
  const { resources } = (answer.status === 404 ? { resources: [] } : (answer.body ?? {})) as {
    readonly resources?: readonly { readonly name: string }[];
  };
  if (!Array.isArray(resources))
    throw new KubeApiError("malformed", `GET ${path}: the answer is no list of what the cluster knows`);
  if (resources.some((resource) => resource.name === plural))
    return [
      ok(name, `the cluster knows ${kind}`),
      skipped(
        "policy enforcement",
        `whether policies are enforced cannot be seen from here`,
        `try it: a pod without krane's labels must not reach the port of a deployment`,
      ),
    ];
  const finding = `the cluster does not know ${kind}`;
  if (isolation.networkPolicy === "best-effort")
    return [warning(name, `${finding}: deployments run without isolation`, "install Cilium")];
  return [
    problem(
      name,
      `${finding}: no deployment is started without its policy`,
      'install Cilium, or accept deployments without isolation by isolation.network_policy = "best-effort"',
    ),
  ];
}

async function checkRuntimeClass(
  name: string,
  { api }: ClusterParts,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const look = `kubectl get runtimeclass ${runtimeClassName}`;
  try {
    const found = await api.get(runtimeClasses, { name: runtimeClassName }, {}, signal);
    if (found !== undefined) return [ok(name, `is there, with the handler ${found.handler}`)];
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return [
      skipped(name, "krane has no right to look, and needs none", `look with your own rights: ${look}`),
    ];
  }
  return [
    problem(
      name,
      "is missing: no pod of a deployment can be made",
      `install gVisor on the nodes and make a RuntimeClass ${runtimeClassName} with the handler runsc`,
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
    if (found === undefined) return [ok(name, `is not there yet; krane makes it with the first ${kind}`)];
    if (found.metadata?.deletionTimestamp === undefined) return [ok(name, "is there")];
    const remedy = `see what holds it up: kubectl get namespace ${namespace} -o yaml`;
    return [problem(name, `is being deleted: no ${kind} can be made until it is gone`, remedy)];
  } catch (error) {
    if (!isForbidden(error)) throw error;
    return [skipped(name, "krane has no right to look, and needs none; it makes it where it is missing")];
  }
}

/** The token is nobody's: it is the right to ask that matters, and that the API server answers for this audience. */
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
        "krane may not have tokens reviewed: no pod gets its secrets",
        "apply the roles for secrets of deploy/ (create tokenreviews.authentication.k8s.io)",
      ),
    ];
  }
}

function isForbidden(error: unknown): boolean {
  return error instanceof KubeApiError && error.status === 403;
}
