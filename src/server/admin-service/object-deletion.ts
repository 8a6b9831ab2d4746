// The call that orders a deletion. Objects that belong to the deleted one, such as the policies of a deployment, are
// deleted in the same change.
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
  // The version of a stopped object is that of its deletion, which a caller that repeats the call cannot know.
  const decide = (row: Row<KindName> | undefined) =>
    stopping(kind, row?.desired === "stopped" ? {} : condition)(row);
  const { after } = await store.change(region, kind, id, decide, author, { withOwned: true });
  if (after === undefined) throw notFound(ref);
  return { version: after.version };
}
