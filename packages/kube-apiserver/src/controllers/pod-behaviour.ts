// How the pods of the stand-in behave: the knobs of a test or a demo. Rules say for which
// pods; later rules win, field by field, and all of it can change while pods run.
import type { Pod } from "kubernetes-types/core/v1.js";

export interface PodBehaviour {
  /** From being on a node to the image being there. */
  readonly pullMs: number;
  /** The registry's answer: "missing" gives ErrImagePull and ImagePullBackOff. */
  readonly image: "present" | "missing";
  /** From the image being there to the container running. */
  readonly startMs: number;
  /** From running to ready, on top of the probe's initial delay; "never" stays unready. */
  readonly readyMs: number | "never";
  /** The container ends this long after each start and is started again with a growing pause. */
  readonly crashAfterMs: number | "never";
  /** From the signal to the end; longer than the grace period means killed. */
  readonly stopMs: number;
}

export interface BehaviourRule {
  /** Stars stand for anything: "*\/broken:*". */
  readonly image?: string;
  readonly matches?: (pod: Pod) => boolean;
  readonly behaviour: Partial<PodBehaviour>;
}

const defaultBehaviour: PodBehaviour = {
  pullMs: 300,
  image: "present",
  startMs: 200,
  readyMs: 500,
  crashAfterMs: "never",
  stopMs: 1_000,
};

export class PodBehaviours {
  private readonly rules = new Map<string, BehaviourRule>();
  private readonly base: PodBehaviour;
  private readonly listeners: (() => void)[] = [];

  constructor(base: Partial<PodBehaviour> = {}) {
    this.base = { ...defaultBehaviour, ...base };
  }

  set(name: string, rule: BehaviourRule): void {
    this.rules.delete(name);
    this.rules.set(name, rule);
    this.tell();
  }

  remove(name: string): void {
    this.rules.delete(name);
    this.tell();
  }

  of(pod: Pod): PodBehaviour {
    let behaviour = this.base;
    for (const rule of this.rules.values()) {
      if (applies(rule, pod)) behaviour = { ...behaviour, ...rule.behaviour };
    }
    return behaviour;
  }

  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  private tell(): void {
    for (const listener of this.listeners) listener();
  }
}

function applies({ image, matches }: BehaviourRule, pod: Pod): boolean {
  const hasImage =
    image === undefined ||
    (pod.spec?.containers ?? []).some((container) => matchesPattern(image, container.image ?? ""));
  return hasImage && (matches?.(pod) ?? true);
}

function matchesPattern(pattern: string, text: string): boolean {
  const parts = pattern.split("*").map((part) => part.replaceAll(/[\\^$.|?+()[\]{}]/g, "\\$&"));
  return new RegExp(`^${parts.join(".*")}$`, "s").test(text);
}
