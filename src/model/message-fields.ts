// Parses the fields that messages of several kinds share: ids, names, images, amounts. Each rule is defined once, so that
// the kinds cannot diverge.
import { quote, type Refuse } from "./field-problem.ts";
import { canonicalRegistry, type ImageReference, parseImageReference } from "./image-reference.ts";
import { isDns1035Label, isLabelValue, type OwnNamespaces } from "./names.ts";

/** What an agent accepts, for all kinds. */
export interface MessageRules extends OwnNamespaces {
  /** Hosts that images may come from; empty allows all. */
  readonly registries: readonly string[];
}

// Above anything that one workload or machine has; a wrong unit or sign must not ask the cluster for a million pods.
export const replicasMax = 10_000;
const cpuMillicoresMax = 1_024_000;
const memoryMibMax = 64 * 1024 * 1024;

export function parseId(path: string, id: string, refuse: Refuse): string {
  if (id === "") refuse(path, "is required");
  else if (!isLabelValue(id)) {
    refuse(path, `must be at most 63 letters, digits, "-", "_" or ".", but is ${quote(id)}`);
  }
  return id;
}

/** `lengthMax`: a name may have to be shorter than a DNS label, if other names are derived from it. */
export function parseName(path: string, name: string, lengthMax: number, refuse: Refuse): string {
  if (name === "") refuse(path, "is required");
  else if (!isDns1035Label(name) || name.length > lengthMax) {
    const rule = `must be a DNS label of at most ${lengthMax} characters that starts with a letter`;
    refuse(path, `${rule}, but is ${quote(name)}`);
  }
  return name;
}

/** `registries`: hosts that images may come from; empty allows all. */
export function parseImage(text: string, registries: readonly string[], refuse: Refuse): ImageReference {
  const outcome = parseImageReference(text);
  if (outcome.kind === "invalid") {
    refuse("image", text === "" ? outcome.reason : `${outcome.reason}: ${quote(text)}`);
    return { text, registry: "", path: "" };
  }
  const { registry } = outcome.reference;
  if (registries.length > 0 && !registries.some((allowed) => canonicalRegistry(allowed) === registry)) {
    refuse("image", `is of registry ${quote(registry)}, which is not on the list of allowed ones`);
  }
  return outcome.reference;
}

export function parseReplicas(value: number, refuse: Refuse): number {
  return parseAmount("replicas", value, 0, replicasMax, refuse);
}

export function parseCpu(value: bigint, refuse: Refuse): number {
  return parseAmount("cpu_millicores", value, 1, cpuMillicoresMax, refuse);
}

export function parseMemory(value: bigint, refuse: Refuse): number {
  return parseAmount("memory_mib", value, 1, memoryMibMax, refuse);
}

export function parseAmount(
  path: string,
  value: number | bigint,
  min: number,
  max: number,
  refuse: Refuse,
): number {
  const amount = Number(value);
  // A bigint too large to be exact as a number is also far above every limit.
  if (Number.isInteger(amount) && amount >= min && amount <= max) return amount;
  refuse(path, `must be from ${min} to ${max}, but is ${value}`);
  return min;
}
