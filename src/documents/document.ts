// A parsed document of any kind.

export interface DocumentContent {
  /** The name of the kind: "deployment". */
  readonly kind: string;
  readonly spec: object;
}

export type Document<D extends DocumentContent = DocumentContent> = D & {
  /** Absent if the document does not set it. */
  readonly region?: string;
  readonly source: DocumentSource;
};

export interface DocumentSource {
  readonly file: string;
  /** The first line of the document, counted from 1. */
  readonly line: number;
}
