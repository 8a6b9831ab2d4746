// Finds the selectors that may match an object by its labels. Checking every selector on every change would take
// quadratic time.
import type { LabelSelector } from "kubernetes-types/meta/v1.js";
import type { KubeObject } from "../types.ts";
import { labelKey, labelKeysOf } from "./live-objects.ts";

export class SelectorIndex {
  private readonly places = new Map<string, string>();
  private readonly keysAt = new Map<string, Set<string>>();

  set(key: string, selector: LabelSelector | undefined, namespace: string): void {
    this.remove(key);
    const labels = Object.entries(selector?.matchLabels ?? {});
    // One label is enough; the one that the fewest selectors share is the most selective.
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

  /** The keys of all selectors that match the object, and of some that do not. */
  candidates(object: KubeObject): string[] {
    const places = [object.metadata?.namespace ?? "", ...labelKeysOf(object)];
    return places.flatMap((place) => [...(this.keysAt.get(place) ?? [])]);
  }

  private sizeOf(place: string): number {
    return this.keysAt.get(place)?.size ?? 0;
  }
}
