// Checks that the chart's admission policy is installed. krane works without it; with it, the agent's token can write
// only what krane writes. The agent itself has no permission to read admission policies, and should not have it: knowing
// what is rejected tells an attacker what is not.
import { KubeApiError, refusedError } from "../kube/errors.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { type Finding, ok, skipped, warning } from "./finding.ts";

const group = "admissionregistration.k8s.io/v1";
/** The chart prefixes it with the release name. */
const nameEnding = "-agent.krane.unkey.com";
const pageSize = 500;
// Policy engines may generate one policy per rule, so there can be thousands.
const pagesMax = 20;

const remedy =
  "install it: agent.admission.enabled in the chart, or kubectl apply -f deploy/manifests/rights-admission.yaml";
const lookRemedy = "check with your own credentials: krane doctor --kubernetes-kubeconfig ~/.kube/config";

interface ListedObject {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly policyName?: string; readonly validationActions?: readonly string[] };
}

interface ListResponse {
  readonly items?: readonly ListedObject[];
  readonly metadata?: { readonly continue?: string };
}

export async function checkAdmission(
  name: string,
  transport: KubeTransport,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const policies = await list(transport, "validatingadmissionpolicies", signal);
  if (policies === "unknown") {
    const finding =
      "not checked: the cluster has no ValidatingAdmissionPolicy, which needs Kubernetes 1.30 or newer";
    return [skipped(name, finding)];
  }
  const bindings = await list(transport, "validatingadmissionpolicybindings", signal);
  if (policies === "forbidden" || typeof bindings === "string")
    return [skipped(name, "not checked: krane has no permission to read it, and needs none", lookRemedy)];
  const names = policies.flatMap(({ metadata }) =>
    metadata?.name?.endsWith(nameEnding) ? [metadata.name] : [],
  );
  const [policy] = names;
  if (policy === undefined) {
    const finding = "is missing: anyone who steals the agent's token can run any pod with it";
    return [warning(name, finding, remedy)];
  }
  const isBound = bindings.some(
    ({ spec }) => names.includes(spec?.policyName ?? "") && spec?.validationActions?.includes("Deny"),
  );
  if (isBound) return [ok(name, `${policy} is installed and enforced`)];
  return [warning(name, `${policy} is installed, but no binding enforces it`, remedy)];
}

async function list(
  transport: KubeTransport,
  plural: string,
  signal: AbortSignal,
): Promise<readonly ListedObject[] | "forbidden" | "unknown"> {
  const path = `/apis/${group}/${plural}`;
  const all: ListedObject[] = [];
  let next = "";
  for (let page = 0; page < pagesMax; page++) {
    const query = { limit: String(pageSize), ...(next !== "" && { continue: next }) };
    const response = await transport.send({ method: "GET", path, query }, signal);
    if (response.status === 403) return "forbidden";
    if (response.status === 404) return "unknown";
    if (response.status !== 200) throw refusedError(`GET ${path}`, response);
    const { items, metadata } = (response.body ?? {}) as ListResponse;
    if (!Array.isArray(items)) throw new KubeApiError("malformed", `GET ${path}: the response is not a list`);
    all.push(...items);
    next = metadata?.continue ?? "";
    if (next === "") return all;
  }
  throw new KubeApiError("malformed", `GET ${path}: there are more than ${pageSize * pagesMax} objects`);
}
