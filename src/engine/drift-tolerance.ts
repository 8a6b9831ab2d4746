// Decides which fields of others krane leaves alone, because an operator or a kind said so.
//
// Fields are named by their path as krane shows it, with * for any text; a path covers everything below it. A manager's
// name is a weak reason, because anybody can write under it, so it never covers a field that lowers the isolation of a
// pod or opens a network policy.
import type { DriftedField } from "./drifted-fields.ts";

export interface DriftTolerance {
  readonly managers: readonly string[];
  readonly fields: readonly string[];
}

export const noTolerance: DriftTolerance = { managers: [], fields: [] };

/** Returns the check for one Kubernetes kind; `own` are further fields that the kind tolerates. */
export function createTolerance(
  { managers, fields }: DriftTolerance,
  own: readonly string[] = [],
): (field: DriftedField) => boolean {
  const patterns = [...fields, ...own].map(patternOf);
  const trusted = new Set(managers);
  if (patterns.length === 0 && trusted.size === 0) return () => false;
  return (field) => {
    // A field that krane applies is never tolerated: krane would apply it again with the next version.
    if (field.wanted !== undefined) return false;
    if (patterns.some((pattern) => pattern.test(field.path))) return true;
    return field.owner !== undefined && trusted.has(field.owner.manager) && !lowersIsolation(field);
  };
}

function patternOf(path: string): RegExp {
  const text = path
    .split("*")
    .map((part) => part.replaceAll(/[.[\]()+?^$|{}\\]/g, "\\$&"))
    .join(".*");
  return new RegExp(`^${text}(?:[.[].*)?$`);
}

const isolating =
  /\bhost(?:Network|PID|IPC|Path|Port|Users|Aliases|PathType)\b|\bshareProcessNamespace\b|\bsecurityContext\b|\bruntimeClassName\b|\bvolumes\b|\bvolumeDevices\b|\b(?:init|ephemeral)?[cC]ontainers(?:\[[^\]]*\])?$|\bserviceAccount|\bautomountServiceAccountToken\b|\bdev\.gvisor\.|\bexternalIPs\b|\bloadBalancer/;

// Every field of a network policy decides who may connect.
const ofPolicy =
  /^specs?(?:\[\d+\])?\.(?:endpointSelector|nodeSelector|ingress|egress|ingressDeny|egressDeny|enableDefaultDeny)\b|^specs?$/;

function lowersIsolation({ path, value }: DriftedField): boolean {
  return isolating.test(path) || ofPolicy.test(path) || isolating.test(JSON.stringify(value) ?? "");
}
