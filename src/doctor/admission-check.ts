// Whether the admission policy of the chart is there. krane works without it; with it, the agent's token can write
// nothing but what krane writes. The agent itself may not look at admission policies, and should not: whoever knows
// what is refused knows what is not.
import { KubeApiError, refusedError } from "../kube/errors.ts";
import type { KubeTransport } from "../kube/transport.ts";
import { type Finding, ok, skipped, warning } from "./finding.ts";

const group = "admissionregistration.k8s.io/v1";
/** The chart puts the name of the release before it. */
const nameEnding = "-agent.krane.unkey.com";
const pageSize = 500;
// Policies may be made by programs, one for each rule that somebody wrote.
const pagesMax = 20;

const remedy =
  "install it: agent.admission.enabled in the chart, or kubectl apply -f deploy/manifests/rights-admission.yaml";
const lookRemedy = "look with rights of your own: krane doctor --kubernetes-kubeconfig ~/.kube/config";

interface ListedObject {
  readonly metadata?: { readonly name?: string };
  readonly spec?: { readonly policyName?: string; readonly validationActions?: readonly string[] };
}

interface ListAnswer {
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
      "not checked: the cluster knows no ValidatingAdmissionPolicy, which Kubernetes has from 1.30 on";
    return [skipped(name, finding)];
  }
  const bindings = await list(transport, "validatingadmissionpolicybindings", signal);
  if (policies === "forbidden" || typeof bindings === "string")
    return [skipped(name, "not checked: krane has no right to look, and needs none", lookRemedy)];
  const names = policies.flatMap(({ metadata }) =>
    metadata?.name?.endsWith(nameEnding) ? [metadata.name] : [],
  );
  const [policy] = names;
  if (policy === undefined) {
    const finding = "is missing: whoever gets hold of the agent's token can run any pod with it";
    return [warning(name, finding, remedy)];
  }
  const isBound = bindings.some(
    ({ spec }) => names.includes(spec?.policyName ?? "") && spec?.validationActions?.includes("Deny"),
  );
  if (isBound) return [ok(name, `${policy} is there and refuses what krane does not write`)];
  return [warning(name, `${policy} is there, but no binding lets it refuse anything`, remedy)];
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
    const answer = await transport.send({ method: "GET", path, query }, signal);
    if (answer.status === 403) return "forbidden";
    if (answer.status === 404) return "unknown";
    if (answer.status !== 200) throw refusedError(`GET ${path}`, answer);
    const { items, metadata } = (answer.body ?? {}) as ListAnswer;
    if (!Array.isArray(items)) throw new KubeApiError("malformed", `GET ${path}: the answer is no list`);
    all.push(...items);
    next = metadata?.continue ?? "";
    if (next === "") return all;
  }
  throw new KubeApiError("malformed", `GET ${path}: has more than ${pageSize * pagesMax} objects`);
}
