// The call that orders a deletion. What belongs to the object, as the policies of a deployment, goes with it, in the
// same change.
import type { DeleteObjectRequest } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { KindName } from "../../kinds/kinds.ts";
import { stopping } from "../row-rules.ts";
import type { Author, Row, Store } from "../store.ts";
import { conditionOf, notFound } from "./object-changes.ts";
import { parseRef } from "./object-refs.ts";

export async function deleteObject(store: Store, request: DeleteObjectRequest, author: Author) {
  const ref = parseRef(request.ref);
  const { region, kind, id } = ref;
  const condition = conditionOf(request);
  // The version of one that is stopped already is that of the order, which whoever repeats it cannot know.
  const decide = (row: Row<KindName> | undefined) =>
    stopping(kind, row?.desired === "stopped" ? {} : condition)(row);
  const { after } = await store.change(region, kind, id, decide, author, { withOwned: true });
  if (after === undefined) throw notFound(ref);
  return { version: after.version };
}
