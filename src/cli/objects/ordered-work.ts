// Work on many items, several at a time, told of as if it were done one after the other: whoever reads along, or
// compares two runs, must not see which answer happened to come first.

/** For calls to a control plane, of which most of the time goes by on the way to it. */
export const callsAtOnce = 8;

export interface OrderedWork<T, R> {
  readonly atOnce: number;
  work(item: T): Promise<R>;
  /** Called in the order of the items, as early as that allows; also for what is done behind an item that failed. */
  tell(item: T, result: R): void;
  /** Asked after each failure with all so far: whether to begin with anything more. */
  goesOn(errors: readonly unknown[]): boolean;
}

export interface OrderedWorkOutcome {
  /** In the order of the items. */
  readonly errors: readonly unknown[];
  /** How many items nothing was begun with. */
  readonly left: number;
}

type Ending<R> =
  | { readonly kind: "done"; readonly result: R }
  | { readonly kind: "failed"; readonly error: unknown };

/** Never rejects, and resolves only when nothing of it runs any more. */
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
