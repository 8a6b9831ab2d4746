// The three sides of an object, each in one line: what is wanted, what the agent made of it, what runs; and where
// they differ.
import { Health } from "../gen/ctrl/v1/sentinel_pb.ts";
import { ObjectView_Desired as Desired, type ObjectSpec } from "../gen/krane/admin/v1/admin_pb.ts";
import { ObjectStatus_Outcome as Outcome } from "../gen/krane/v1/agent_pb.ts";
import type { Difference } from "./explanation.ts";
import type { Facts } from "./facts.ts";

export function desiredText({ object }: Facts): string {
  const version = `version ${object.version}`;
  if (object.desired === Desired.STOPPED) return `not to exist (${version})`;
  const what = specText(object.spec);
  return what === "" ? version : `${what} (${version})`;
}

function specText(spec: ObjectSpec | undefined): string {
  const described = spec?.spec;
  switch (described?.case) {
    case "deployment":
    case "sentinel": {
      const { replicas, image, cpuMillicores, memoryMib } = described.value;
      return `${podsText(replicas)} of ${image}, each with ${cpuMillicores}m CPU and ${memoryMib}Mi memory`;
    }
    case "policy":
      return "a network policy";
    default:
      return "";
  }
}

export function podsText(count: number): string {
  return count === 1 ? "1 pod" : `${count} pods`;
}

const refused: ReadonlySet<Outcome> = new Set([Outcome.PARKED, Outcome.CONFLICT]);

export function appliedText({ object, trouble, earlierTrouble, controller }: Facts): string {
  const before = (trouble ?? earlierTrouble)?.appliedVersion ?? 0n;
  const stands = before === 0n ? "nothing is applied" : `version ${before} stands`;
  if (trouble !== undefined && refused.has(trouble.outcome)) return `refused; ${stands}`;
  if (trouble !== undefined && trouble.outcome === Outcome.RETRYING)
    return `failed ${trouble.attempts} ${trouble.attempts === 1 ? "time" : "times"} so far; ${stands}`;
  if (object.settled) return `version ${object.version}`;
  if (trouble?.outcome === Outcome.UNSPECIFIED) return "not known";
  const cursor = controller?.stream?.cursor;
  return cursor === undefined ? "not known" : `not yet; everything up to version ${cursor} is settled`;
}

const healthWords: Partial<Record<Health, string>> = {
  [Health.HEALTHY]: "healthy",
  [Health.UNHEALTHY]: "unhealthy",
  [Health.PAUSED]: "paused",
};

export function liveText(facts: Facts): string {
  const { object, pods, nowMs } = facts;
  const { deployment, sentinel } = object;
  if (sentinel !== undefined) {
    const image = sentinel.runningImage === "" ? "no single image yet" : sentinel.runningImage;
    const health = healthWords[sentinel.health] ?? "health unknown";
    const ready = `${pods.running} of ${podsText(pods.wanted ?? pods.running)} ready`;
    return `${ready}, ${health}, ${image} (reported ${ago(sentinel.reportedAtMs, nowMs)})`;
  }
  if (deployment === undefined) return pods.wanted === undefined ? "" : "nothing was reported yet";
  const reported = `(reported ${ago(deployment.reportedAtMs, nowMs)})`;
  if (!deployment.exists) return `gone ${reported}`;
  const others = [
    [pods.failed, "failing"],
    [pods.pending, "not ready"],
    [pods.outdated, "of an earlier description"],
  ] as const;
  const some = others.flatMap(([count, word]) => (count === 0 ? [] : [`${count} ${word}`]));
  const ready = `${pods.running} of ${podsText(pods.wanted ?? pods.running)} ready`;
  return `${[ready, ...some].join(", ")} ${reported}`;
}

export function differencesOf({ object, pods, controller }: Facts): Difference[] {
  if (object.desired === Desired.STOPPED)
    return object.deployment?.exists === true
      ? [{ field: "existence", desired: "gone", live: "still there" }]
      : [];
  const differences: Difference[] = [];
  const differ = (field: string, desired: string, live: string) => {
    if (desired !== live) differences.push({ field, desired, live });
  };
  const cursor = controller?.stream?.cursor;
  if (!object.settled && cursor !== undefined)
    differ("version", `${object.version}`, `settled up to ${cursor}`);
  if (pods.wanted !== undefined && pods.isReported) {
    differ("ready pods", `${pods.wanted}`, `${pods.running}`);
    if (pods.outdated > 0) differ("pods of an earlier description", "0", `${pods.outdated}`);
  }
  const described = object.spec?.spec;
  if (described?.case === "sentinel" && object.sentinel !== undefined)
    differ("image", described.value.image, object.sentinel.runningImage || "several");
  if (described?.case === "deployment") {
    const { cpuMillicores, memoryMib } = described.value;
    const instances = object.deployment?.instances ?? [];
    differ(
      "CPU of each pod",
      `${cpuMillicores}m`,
      spread(
        instances.map((one) => `${one.cpuMillicores}m`),
        `${cpuMillicores}m`,
      ),
    );
    differ(
      "memory of each pod",
      `${memoryMib}Mi`,
      spread(
        instances.map((one) => `${one.memoryMib}Mi`),
        `${memoryMib}Mi`,
      ),
    );
  }
  return differences;
}

function spread(values: readonly string[], otherwise: string): string {
  return values.length === 0 ? otherwise : [...new Set(values)].sort().join(" and ");
}

const units = [
  [86_400_000, "d"],
  [3_600_000, "h"],
  [60_000, "m"],
  [1_000, "s"],
] as const;

/** `12s ago`. The clocks of two machines differ a little, so the future is now. */
export function ago(atMs: bigint, nowMs: number): string {
  const ageMs = Math.max(0, nowMs - Number(atMs));
  const [unitMs, word] = units.find(([ms]) => ageMs >= ms) ?? [1_000, "s"];
  return `${Math.floor(ageMs / unitMs)}${word} ago`;
}
