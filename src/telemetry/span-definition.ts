// What a span is before it begins: its name, its kind, and which attributes it may have.

export type SpanValue = string | number | boolean;

export interface SpanDefinition {
  /** What every such span is called; of what it is follows in each one's name. */
  readonly name: string;
  /** What stands after that in a name, for the documentation. */
  readonly subject: string;
  readonly kind: "internal" | "client" | "server";
  /**
   * It begins a trace, or continues that of a caller, whatever goes on around it. Queues start work in the
   * asynchronous context of whoever woke them, and that is not what the work is for.
   */
  readonly isRoot: boolean;
  readonly meaning: string;
  /** Each with what it holds. Keys, names and codes only, never a text that somebody else wrote (K7). */
  readonly attributes: Readonly<Record<string, string>>;
}

export type AttributesOf<D extends SpanDefinition> = {
  readonly [Name in keyof D["attributes"]]?: SpanValue | undefined;
};
