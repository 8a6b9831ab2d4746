// The hash of what is wanted of an object, which its digest is made of; see model/digest.ts. In PostgreSQL the database
// computes it, with a key of its own.
import { hash } from "node:crypto";
import type { KindName } from "../kinds/kinds.ts";
import { encodeSpec } from "./kind-messages.ts";
import type { Row } from "./store.ts";

export function contentHash<K extends KindName>(
  kind: K,
  { desired, spec }: Pick<Row<K>, "desired" | "spec">,
): Uint8Array {
  return hash("sha256", Buffer.concat([Buffer.from(`${desired}\0`), encodeSpec(kind, spec)]), "buffer");
}
