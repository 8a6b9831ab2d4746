// What a controller sees in the cluster, for those who want to follow it: all keys, one key, and which key
// looks different from before. It comes from the caches; looking costs the API server nothing.
import type { Controller } from "./controller.ts";
import type { ControllerDefinition } from "./controller-definition.ts";
import type { KeyListener } from "./key-listeners.ts";

export interface SeenObjects<T> {
  keys(): Iterable<string>;
  /** Undefined where there is none of krane's. */
  get(key: string): T | undefined;
  /** Returns the way to stop listening. */
  subscribe(listener: KeyListener): () => void;
  /** Aborts when nothing more will be seen. */
  readonly ending: AbortSignal;
}

export function seenObjects<State, Spec, D extends ControllerDefinition<State, Spec>, T>(
  controller: Controller<State, Spec, D>,
  get: (key: string) => T | undefined,
): SeenObjects<T> {
  return {
    *keys() {
      for (const { key } of controller.definition.managed()) yield key;
    },
    get,
    subscribe: (listener) => controller.observed.subscribe(listener),
    ending: controller.ending,
  };
}
