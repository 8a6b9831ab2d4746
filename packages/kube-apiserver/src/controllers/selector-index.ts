// Which of many selectors might pick an object, found by the object's labels: asking each
// of them about every change would make a cluster slow with the square of its size.
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import type { KubeObject } from "../types.ts";
import { labelKey, labelKeysOf } from "./live-objects.ts";

export class SelectorIndex {
  private readonly places = new Map<string, string>();
  private readonly keysAt = new Map<string, Set<string>>();

  set(key: string, selector: LabelSelector | undefined, namespace: string): void {
    this.remove(key);
    const labels = Object.entries(selector?.matchLabels ?? {});
    // One of its labels is enough, and the one that the fewest share tells most.
    const [place = namespace] = labels
      .map(([name, value]) => labelKey(namespace, name, value))
      .sort((left, right) => this.sizeOf(left) - this.sizeOf(right));
    this.places.set(key, place);
    this.keysAt.set(place, (this.keysAt.get(place) ?? new Set()).add(key));
  }

  remove(key: string): void {
    const place = this.places.get(key) ?? "";
    const keys = this.keysAt.get(place);
    this.places.delete(key);
    keys?.delete(key);
    if (keys?.size === 0) this.keysAt.delete(place);
  }

  /** Keys of all selectors that pick the object, and of some that do not. */
  candidates(object: KubeObject): string[] {
    const places = [object.metadata?.namespace ?? "", ...labelKeysOf(object)];
    return places.flatMap((place) => [...(this.keysAt.get(place) ?? [])]);
  }

  private sizeOf(place: string): number {
    return this.keysAt.get(place)?.size ?? 0;
  }
}
