// A parsed document of any kind.

export interface DocumentContent {
  /** The word for one of its kind: "deployment". */
  readonly kind: string;
  readonly spec: object;
}

export type Document<D extends DocumentContent = DocumentContent> = D & {
  /** Where it belongs, if it says so. */
  readonly region?: string;
  readonly source: DocumentSource;
};

export interface DocumentSource {
  readonly file: string;
  /** Where the document begins, from 1. */
  readonly line: number;
}
