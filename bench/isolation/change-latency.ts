// Measures the time from ordering a change at the control plane until a watch shows it in the cluster, one change
// after the other.
import { performance } from "node:perf_hooks";
import { appsDeployments, ciliumNetworkPolicies } from "../../src/kube/resources.ts";
import type { KubeObject, ResourceKind } from "../../src/kube/types.ts";
import { applyPolicy, jsonBytes, policyDocument } from "../../test/support/policy-messages.ts";
import { applySentinel } from "../../test/support/sentinel-messages.ts";
import { Occurrences } from "../deployments/occurrences.ts";
import { regionKey, type Servers } from "./servers.ts";

export interface Changes {
  /** Orders one change, alternating between a policy and a sentinel, and waits for it. */
  measure(): Promise<number>;
}

// Enough that none of them is changed more often than the limit per key allows.
const objects = 150;
const limitMs = 20_000;

export function watchChanges({ api, plane }: Servers, signal: AbortSignal): Changes {
  const seen = new Occurrences<string>();
  const follow = async <T extends KubeObject>(kind: ResourceKind<T>) => {
    for await (const event of api.watch(kind, {}, signal)) {
      if (event.type === "BOOKMARK") continue;
      const spec = JSON.stringify((event.object as { readonly spec?: unknown }).spec);
      seen.emit(/registry\.example\/bench:(\d+)/.exec(spec)?.[1] ?? "");
    }
  };
  const ended = (error: unknown) => {
    if (!signal.aborted) throw error;
  };
  follow(appsDeployments).catch(ended);
  follow(ciliumNetworkPolicies).catch(ended);
  let count = 0;
  return {
    async measure() {
      count += 1;
      const index = Math.floor(count / 2) % objects;
      const image = `registry.example/bench:${count}`;
      const shown = seen.until(`change ${count}`, (nth) => nth === String(count), { limitMs, signal });
      const startedMs = performance.now();
      if (count % 2 === 0) await plane.admin.setPolicy(regionKey.label, policyOf(index, image));
      else await plane.admin.setSentinel(regionKey.label, sentinelOf(index, image));
      return (await shown) - startedMs;
    },
  };
}

function policyOf(index: number, image: string) {
  const spec = { endpointSelector: { matchLabels: { image } } };
  return applyPolicy({
    k8sName: `to-web-${index}`,
    ciliumNetworkPolicyId: `net_${index}`,
    policy: jsonBytes({ ...policyDocument, spec }),
  });
}

function sentinelOf(index: number, image: string) {
  return applySentinel({ k8sName: `gate-${index}`, sentinelId: `se_${index}`, image });
}
