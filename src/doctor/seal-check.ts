// Checks which seals the objects in the cluster have, with the agent's keys: what is sealed for another region or with
// another key is neither changed nor deleted. Creates no key.
import { callingParts } from "../agent/cluster-calls.ts";
import { regionOf } from "../agent/seal-step.ts";
import { createAgentSecret } from "../agent/secrets.ts";
import type { Clock } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import { findSeal, sealSecretName } from "../engine/seal-keys.ts";
import { allKinds } from "../kinds/kinds.ts";
import type { KubeApi, Selection } from "../kube/api.ts";
import { isForbidden, KubeApiError } from "../kube/errors.ts";
import { objectKey } from "../kube/object-cache.ts";
import type { KubeObject, ResourceKind } from "../kube/types.ts";
import { judgeOwnership, type Ownership } from "../model/ownership.ts";
import type { Seal } from "../model/seal.ts";
import type { Log } from "../telemetry/log.ts";
import { type Finding, ok, problem, skipped, warning } from "./finding.ts";

export interface SealCheckDeps {
  readonly api: KubeApi;
  /** Where krane keeps its own objects. */
  readonly stateNamespace: string;
  readonly clock: Clock;
  readonly log: Log;
  readTextFile(path: string, signal: AbortSignal): Promise<string>;
}

/** What krane writes, as its controllers select it. Pull secrets are left out: krane may not list Secrets. */
function selectionsOf(config: Config): readonly (readonly [ResourceKind, Selection])[] {
  const parts = callingParts(config);
  return allKinds.flatMap(({ clusterCalls }) =>
    clusterCalls.flatMap(({ part, kind, namespace, labelSelector }) =>
      labelSelector === undefined || !parts.includes(part)
        ? []
        : [[kind, { labelSelector, ...(namespace !== undefined && { namespace }) }] as const],
    ),
  );
}

const pageSize = 500;
// A check has a few seconds. krane status counts all of them.
const pagesMax = 4;
const namedMax = 3;

export async function checkSeals(
  name: string,
  config: Config,
  deps: SealCheckDeps,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const { api, stateNamespace: namespace } = deps;
  const keys = config.sealKeys && (await createAgentSecret(config.sealKeys, deps).current(signal)).reveal();
  const secret = `Secret ${namespace}/${sealSecretName}`;
  let seal: Seal | undefined;
  try {
    seal = await findSeal({ region: regionOf(config), namespace, keys }, api, signal);
  } catch (error) {
    if (isForbidden(error)) return [skipped(name, `these credentials may not read ${secret}`)];
    if (!(error instanceof TypeError)) throw error;
    return [problem(name, error.message, `restore ${secret}, or correct seal.keys`)];
  }
  if (seal === undefined) return [ok(name, `no key yet; the agent creates ${secret} at its first start`)];
  const found = await judgeAll(seal, selectionsOf(config), api, signal);
  if (found === "forbidden") return [skipped(name, "these credentials may not list krane's objects")];
  return findingsOf(name, seal, found);
}

interface Judged {
  readonly title: string;
  readonly ownership: Ownership;
}

interface FoundObjects {
  readonly objects: readonly Judged[];
  /** There are more than were looked at. */
  readonly isCut: boolean;
}

async function judgeAll(
  seal: Seal,
  selections: ReturnType<typeof selectionsOf>,
  api: KubeApi,
  signal: AbortSignal,
): Promise<FoundObjects | "forbidden"> {
  const objects: Judged[] = [];
  let isCut = false;
  try {
    for (const [kind, selection] of selections) {
      const { items, hasMore } = await listSome(api, kind, selection, signal);
      isCut ||= hasMore;
      for (const { metadata } of items) {
        const title = `${kind.kind} ${objectKey({ name: metadata?.name ?? "", namespace: metadata?.namespace ?? "" })}`;
        objects.push({ title, ownership: judgeOwnership(seal.read(kind, metadata), metadata) });
      }
    }
  } catch (error) {
    if (isForbidden(error)) return "forbidden";
    throw error;
  }
  return { objects, isCut };
}

async function listSome(api: KubeApi, kind: ResourceKind, selection: Selection, signal: AbortSignal) {
  const items: KubeObject[] = [];
  let token: string | undefined;
  for (let pages = 0; pages < pagesMax; pages++) {
    const next = token === undefined ? {} : { continue: token };
    const options = { ...selection, detail: "metadata", limit: pageSize, ...next } as const;
    let page: Awaited<ReturnType<typeof api.list>>;
    try {
      page = await api.list(kind, options, signal);
    } catch (error) {
      // The cluster does not have this kind.
      if (error instanceof KubeApiError && error.status === 404) return { items, hasMore: false };
      throw error;
    }
    items.push(...page.items);
    token = page.continue;
    if (token === undefined) return { items, hasMore: false };
  }
  return { items, hasMore: true };
}

function findingsOf(name: string, seal: Seal, { objects, isCut }: FoundObjects): readonly Finding[] {
  const strangers = objects.filter(({ ownership }) => ownership.kind === "foreign" && ownership.seal);
  const unsealed = objects.filter(({ ownership }) => ownership.kind === "unsealed");
  const place = isCut ? ` (of the first ${objects.length} objects)` : "";
  const findings: Finding[] = [];
  if (strangers.length > 0)
    findings.push(
      warning(
        name,
        `${counted(strangers, "is", "are")} not this krane's${place}, and left alone: ${named(strangers)}`,
        strangerRemedy,
      ),
    );
  if (unsealed.length > 0)
    findings.push(
      warning(
        name,
        `${counted(unsealed, "has", "have")} krane's marks but no valid seal${place}: ${named(unsealed)}`,
        "a running agent seals those that the control plane knows, within minutes; the others are never deleted by absence: delete them yourself if nobody needs them",
      ),
    );
  findings.push(...seal.olderKeyIds.map((keyId) => olderKeyFinding(name, keyId, objects, isCut)));
  const isOurs = ({ ownership }: Judged) => ownership.kind === "ours" && !ownership.isOutdated;
  if (findings.length > 0) return findings;
  return [
    ok(name, `${counted(objects.filter(isOurs), "is", "are")} sealed with the key ${seal.keyId}${place}`),
  ];
}

const strangerRemedy =
  "after a lost key, a renamed region or a restored cluster: restore the old key or region, or run krane adopt --dry-run; " +
  "if they belong to another krane that still runs, leave them alone";

function olderKeyFinding(name: string, keyId: string, objects: readonly Judged[], isCut: boolean): Finding {
  const left = objects.filter(({ ownership }) => ownership.kind === "ours" && ownership.keyId === keyId);
  if (left.length > 0) {
    const remedy = "a running agent seals them again within minutes; keep the key until then";
    return warning(name, `${counted(left, "is", "are")} sealed with the older key ${keyId}`, remedy);
  }
  if (isCut) return ok(name, `the key ${keyId} is older; krane status counts what is sealed with it`);
  const finding = `nothing is sealed with the older key ${keyId}; it can be removed when krane status, which also counts pull secrets, shows 0`;
  return ok(name, finding);
}

function counted(objects: readonly Judged[], one: string, many: string): string {
  return objects.length === 1 ? `1 object ${one}` : `${objects.length} objects ${many}`;
}

function named(objects: readonly Judged[]): string {
  const texts = objects.slice(0, namedMax).map(({ title, ownership }) => {
    return `${title} (${"reason" in ownership ? ownership.reason : ""})`;
  });
  const left = objects.length - texts.length;
  return `${texts.join(", ")}${left > 0 ? ` and ${left} more` : ""}`;
}
