// Checks who leads the region, and looks for a second agent that should not be there. Whether a lease is fresh is judged
// by watching it for a moment, because the times in it are from its holder's clock.
import type { Lease } from "kubernetes-types/coordination/v1.js";
import { instanceOf, otherControlPlane } from "../agent/leader-announcement.ts";
import { leaseName } from "../agent/lease-step.ts";
import { regionOf } from "../agent/seal-step.ts";
import { type Clock, sleep } from "../concurrency/clock.ts";
import type { Config } from "../config/config.ts";
import type { KubeApi } from "../kube/api.ts";
import { isForbidden } from "../kube/errors.ts";
import { objectKey } from "../kube/object-cache.ts";
import { leases } from "../kube/resources.ts";
import { components, labelKeys } from "../model/labels.ts";
import { type Finding, ok, problem, warning } from "./finding.ts";

export interface LeaseCheckDeps {
  readonly api: KubeApi;
  /** Where krane keeps its own objects. */
  readonly stateNamespace: string;
  readonly clock: Clock;
}

// A leader renews every 2 s. A check has 5 s.
const watchedMs = 3_500;
const pauseMs = 250;

export async function checkLease(
  name: string,
  config: Config,
  deps: LeaseCheckDeps,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  if (config.lease === "off")
    return [warning(name, `not used (lease = "off"): ${nothingKeeps}`, "remove the setting lease")];
  const ref = { namespace: deps.stateNamespace, name: leaseName(regionOf(config)) };
  try {
    return await findingsOf(name, config, new RegionLeases(ref, deps), deps.clock, signal);
  } catch (error) {
    if (!isForbidden(error)) throw error;
    const finding = `krane may not read Lease ${objectKey(ref)}`;
    const remedy = "apply the roles in deploy/: get, create and patch leases.coordination.k8s.io";
    return [
      config.lease === "required"
        ? problem(name, `${finding}, and writes nothing without it`, remedy)
        : warning(name, `${finding}: ${nothingKeeps}`, remedy),
    ];
  }
}

const nothingKeeps = "nothing keeps a second agent of this region from writing";

/** The Lease of the region in krane's namespace, and those of the same region in other namespaces. */
class RegionLeases {
  readonly title: string;
  private readonly ref: { readonly namespace: string; readonly name: string };
  private readonly api: KubeApi;
  private canList = true;

  constructor(ref: { readonly namespace: string; readonly name: string }, { api }: LeaseCheckDeps) {
    this.ref = ref;
    this.title = `Lease ${objectKey(ref)}`;
    this.api = api;
  }

  /** An agent has no permission to look into other namespaces. */
  get hasSeenAll(): boolean {
    return this.canList;
  }

  async read(signal: AbortSignal): Promise<{ own: Lease | undefined; others: readonly Lease[] }> {
    const own = await this.api.get(leases, this.ref, {}, signal);
    return { own, others: await this.readOthers(signal) };
  }

  private async readOthers(signal: AbortSignal): Promise<readonly Lease[]> {
    if (!this.canList) return [];
    const labelSelector = `${labelKeys.component}=${components.lease}`;
    try {
      const { items } = await this.api.list(leases, { labelSelector, limit: 500 }, signal);
      const { name, namespace } = this.ref;
      return items.filter(({ metadata }) => metadata?.name === name && metadata.namespace !== namespace);
    } catch (error) {
      if (!isForbidden(error)) throw error;
      this.canList = false;
      return [];
    }
  }
}

async function findingsOf(
  name: string,
  config: Config,
  source: RegionLeases,
  clock: Clock,
  signal: AbortSignal,
): Promise<readonly Finding[]> {
  const first = await source.read(signal);
  const firstVersions = new Map(
    [first.own, ...first.others].map((lease) => [uidOf(lease), versionOf(lease)]),
  );
  const isRenewed = (lease: Lease | undefined) => firstVersions.get(uidOf(lease)) !== versionOf(lease);
  const begunMs = clock.nowMs();
  let last = first;
  const isWaiting = () =>
    [last.own, ...last.others].some((lease) => holderOf(lease) !== "" && !isRenewed(lease));
  while (isWaiting() && clock.nowMs() - begunMs < watchedMs) {
    await sleep(clock, pauseMs, signal);
    last = await source.read(signal);
  }
  return [
    ownFinding(name, source, last.own, isRenewed(last.own)),
    ...otherControlPlaneFindings(name, config, last.own),
    ...last.others
      .filter((lease) => holderOf(lease) !== "" && isRenewed(lease))
      .map((lease) => secondFinding(name, lease)),
  ];
}

function ownFinding(
  name: string,
  { title, hasSeenAll }: RegionLeases,
  lease: Lease | undefined,
  isRenewed: boolean,
): Finding {
  const scope = hasSeenAll ? "" : "; other namespaces cannot be checked with these credentials";
  if (lease === undefined) return ok(name, `no agent has led yet; the first one creates ${title}${scope}`);
  const leader = instanceOf(holderOf(lease));
  if (leader === "")
    return warning(
      name,
      `no agent leads: the last one gave ${title} up`,
      "start an agent; a running standby leads within 3 s",
    );
  const { acquireTime, renewTime, leaseTransitions = 0 } = lease.spec ?? {};
  const since = `since ${secondOf(acquireTime)}, term ${leaseTransitions}`;
  if (isRenewed) return ok(name, `${leader} leads ${since}, and renews ${title}${scope}`);
  return warning(
    name,
    `${leader} holds ${title} ${since}, but did not renew it for ${watchedMs / 1_000} s; by its own clock it last did at ${secondOf(renewTime)}`,
    "check that an agent runs and reaches the API server; a standby takes over after 15 s",
  );
}

function otherControlPlaneFindings(
  name: string,
  config: Config,
  lease: Lease | undefined,
): readonly Finding[] {
  const identity = holderOf(lease);
  const other = otherControlPlane({ identity, annotations: lease?.metadata?.annotations ?? {} }, config);
  if (identity === "" || other === undefined) return [];
  const finding = `${instanceOf(identity)} leads this region for another control plane, ${other}`;
  return [warning(name, finding, "remove the agent that should not be here, or correct its control.url")];
}

function secondFinding(name: string, lease: Lease): Finding {
  const place = lease.metadata?.namespace ?? "";
  return warning(
    name,
    `another krane leads the same region in namespace ${place}: ${instanceOf(holderOf(lease))}`,
    "uninstall one of them, or give it another region; until then each leaves the objects of the other alone",
  );
}

function holderOf(lease: Lease | undefined): string {
  return lease?.spec?.holderIdentity ?? "";
}

function uidOf(lease: Lease | undefined): string {
  return lease?.metadata?.uid ?? "";
}

function versionOf(lease: Lease | undefined): string {
  return lease?.metadata?.resourceVersion ?? "";
}

/** The time without its fraction. */
function secondOf(time: string | undefined): string {
  const [second] = /^[\d-]+T[\d:]+/.exec(time ?? "") ?? [];
  return second === undefined ? "an unknown time" : `${second}Z`;
}
