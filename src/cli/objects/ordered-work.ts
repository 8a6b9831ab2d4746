// Processes many items concurrently and reports the results in the order of the items, so that the output does not
// depend on which response comes first.

/** For calls to a control plane, which spend most of their time on the network. */
export const callsAtOnce = 8;

export interface OrderedWork<T, R> {
  readonly atOnce: number;
  work(item: T): Promise<R>;
  /** Called in the order of the items, as early as possible; also for items after one that failed. */
  tell(item: T, result: R): void;
  /** Called after each failure with all errors so far; returns whether to start more items. */
  goesOn(errors: readonly unknown[]): boolean;
}

export interface OrderedWorkOutcome {
  /** In the order of the items. */
  readonly errors: readonly unknown[];
  /** How many items were not started. */
  readonly left: number;
}

type Ending<R> =
  | { readonly kind: "done"; readonly result: R }
  | { readonly kind: "failed"; readonly error: unknown };

/** Never rejects; resolves only when no item is in progress. */
export async function workInOrder<T, R>(
  items: readonly T[],
  { atOnce, work, tell, goesOn }: OrderedWork<T, R>,
): Promise<OrderedWorkOutcome> {
  const endings: (Ending<R> | undefined)[] = items.map(() => undefined);
  const errorsSoFar = () => endings.flatMap((ending) => (ending?.kind === "failed" ? [ending.error] : []));
  let begun = 0;
  let isOver = false;
  let told = 0;
  const tellUpTo = (end: number) => {
    for (; told < end; told++) {
      const [item, ending] = [items[told] as T, endings[told]];
      if (ending?.kind === "done") tell(item, ending.result);
    }
  };
  const worker = async () => {
    while (!isOver && begun < items.length) {
      const index = begun++;
      try {
        endings[index] = { kind: "done", result: await work(items[index] as T) };
      } catch (error) {
        endings[index] = { kind: "failed", error };
        isOver ||= !goesOn(errorsSoFar());
      }
      const open = endings.indexOf(undefined, told);
      tellUpTo(open < 0 ? items.length : open);
    }
  };
  await Promise.all(Array.from({ length: atOnce }, worker));
  tellUpTo(items.length);
  return { errors: errorsSoFar(), left: items.length - begun };
}
