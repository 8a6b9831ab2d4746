// Tells whether a pod that the original krane made runs what its ReplicaSet asks for. Such a pod has no mark to compare, and
// krane's template differs from the original's in fields that do not change what runs: annotations, affinity, the token. So what matters is compared: image, command, port, resources, the variables that both set, probes
// and the hook before the stop.
import type { Container, PodSpec } from "kubernetes-types/core/v1.js";
import { hashOf } from "../../model/manifest-hash.ts";
import { injectorContainer } from "./isolation.ts";
import { containerName } from "./pod-template.ts";
import { variables } from "./secrets-blob.ts";

export interface Essence {
  /** Of everything but the command. */
  readonly hash: string;
  readonly command: readonly string[];
  /** The platform's webhook wraps the command in the injector's. */
  readonly isInjected: boolean;
}

const comparedVariables: ReadonlySet<string> = new Set([
  variables.port,
  variables.workspaceId,
  variables.projectId,
  variables.environmentId,
  variables.deploymentId,
  variables.encryptedEnvironment,
]);

/** Of a live pod, or of the template of a live ReplicaSet: both have the server's defaults. */
export function essenceOf(spec: PodSpec | undefined): Essence | undefined {
  const container = spec?.containers.find(({ name }) => name === containerName);
  if (container === undefined) return undefined;
  const { image, ports, resources, livenessProbe, readinessProbe, lifecycle } = container;
  const probes = [livenessProbe ?? null, readinessProbe ?? null];
  const hash = hashOf([image, ports, resources, variablesOf(container), probes, lifecycle ?? null]);
  const isInjected = spec?.initContainers?.some(({ name }) => name === injectorContainer) ?? false;
  return { hash, command: kept([...(container.command ?? []), ...(container.args ?? [])]), isInjected };
}

// Kept for each pod without a mark, and people may write as much as they like.
const wordsMax = 100;
const wordCharsMax = 200;

/** Equal for equal commands. */
function kept(command: readonly string[]): readonly string[] {
  if (command.length > wordsMax) return [hashOf(command)];
  return command.map((word) => (word.length > wordCharsMax ? hashOf(word) : word));
}

function variablesOf({ env = [] }: Container): readonly (readonly [string, string])[] {
  const compared = env.filter(({ name }) => comparedVariables.has(name));
  return compared.map(({ name, value = "" }) => [name, value] as const).sort(([a], [b]) => (a < b ? -1 : 1));
}

export function isSameEssence(pod: Essence | undefined, template: Essence | undefined): boolean {
  if (pod === undefined || template === undefined || pod.hash !== template.hash) return false;
  // An injector runs the command that it was given last.
  const skipped = pod.isInjected ? Math.max(0, pod.command.length - template.command.length) : 0;
  const command = pod.command.slice(skipped);
  return (
    command.length === template.command.length && command.every((word, at) => word === template.command[at])
  );
}
