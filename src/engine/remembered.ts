// A value that is computed from much, and again only when that has changed.

export class Remembered<T> {
  private known: { readonly revision: number; readonly value: T } | undefined;

  /** `revision`: changes whenever the value might. */
  at(revision: number, compute: () => T): T {
    if (this.known?.revision !== revision) this.known = { revision, value: compute() };
    return this.known.value;
  }
}
