// Configures how simulated pods behave, for tests and demos. Rules select pods; later rules override earlier ones, field
// by field. Rules can change while pods run.
import type { Pod } from "kubernetes-types/core/v1.js";

export interface PodBehaviour {
  /** From scheduled to image pulled. */
  readonly pullMs: number;
  /** "missing" gives ErrImagePull and ImagePullBackOff. */
  readonly image: "present" | "missing";
  /** From image pulled to running. */
  readonly startMs: number;
  /** From running to ready, in addition to the probe's initial delay; "never" stays unready. */
  readonly readyMs: number | "never";
  /** The container crashes this long after each start, and is restarted with back-off. */
  readonly crashAfterMs: number | "never";
  /** From SIGTERM to exit. If it is longer than the grace period, the container is killed. */
  readonly stopMs: number;
}

export interface BehaviourRule {
  /** A glob pattern: "*\/broken:*". */
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
