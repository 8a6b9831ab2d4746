// What a metric is, as data: from one definition come the typed member that code writes to, the line on the
// endpoint, and the row in docs/metrics.md.

/** A label whose values are not listed. The writer keeps them few: a method name, never an id or a user's text. */
export const anyValue = "any";

/** A label whose values are the names of the controllers, which the kinds say, and some more. */
export interface ControllerNames {
  readonly controllersAnd: readonly string[];
}

export type LabelDefinitions = Readonly<
  Record<string, readonly string[] | typeof anyValue | ControllerNames>
>;

export interface MetricDefinition<L extends LabelDefinitions = LabelDefinitions> {
  readonly type: "counter" | "gauge" | "histogram";
  readonly name: string;
  readonly help: string;
  readonly labels: L;
  /** Upper bounds of a histogram's buckets, ascending, without infinity. */
  readonly buckets?: readonly number[];
  /** The part of krane that writes it. */
  readonly writer: string;
}

/** The labels of one series: each label with one of its values. */
export type LabelsOf<L extends LabelDefinitions> = {
  readonly [Name in keyof L]: L[Name] extends readonly string[] ? L[Name][number] : string;
};
