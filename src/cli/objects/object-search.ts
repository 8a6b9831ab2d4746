// Finds an object by id or name, and lists objects across pages.
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type GetObjectResponse,
  ObjectKind,
  type ObjectRef,
  type ObjectView,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { nameOfKind } from "./object-names.ts";

const pageSize = 500;
// Half a million objects: more than a region can have; stops at a server that never ends its list.
const pagesMax = 1_000;
const suggestedMax = 5;

export interface ObjectQuery {
  readonly kind?: ObjectKind;
  readonly environmentId?: string;
  readonly includeDeleted?: boolean;
}

export async function listObjects(
  { client, region, signal }: Admin,
  { kind = ObjectKind.UNSPECIFIED, environmentId = "", includeDeleted = false }: ObjectQuery = {},
): Promise<ObjectView[]> {
  const objects: ObjectView[] = [];
  let pageToken = "";
  for (let page = 0; page < pagesMax; page++) {
    const request = { region, kind, environmentId, includeDeleted, pageSize, pageToken };
    const answer = await client.listObjects(request, { signal });
    objects.push(...answer.objects);
    pageToken = answer.nextPageToken;
    if (pageToken === "") return objects;
  }
  throw new CommandError("failed", `the control plane lists more than ${pagesMax} pages of objects`);
}

/**
 * The object with that id, or else the only one whose name in the cluster is `namespace/name` or `name`. Without a
 * kind, it searches all kinds. Throws `not_found` if none matches, and `usage` if several do.
 */
export async function findObject(
  admin: Admin,
  name: string,
  kind: ObjectKind = ObjectKind.UNSPECIFIED,
): Promise<{ readonly object: ObjectView; readonly agent: GetObjectResponse["agent"] }> {
  const { client, region, signal } = admin;
  const get = async (ref: { kind: ObjectKind; id: string }) => {
    const { object, agent } = await client.getObject({ ref: { region, ...ref } }, { signal });
    if (object === undefined) throw new CommandError("failed", "the control plane's response has no object");
    return { object, agent };
  };
  if (kind !== ObjectKind.UNSPECIFIED) {
    try {
      return await get({ kind, id: name });
    } catch (error) {
      if (!isNotFound(error)) throw error;
    }
  }
  const candidates = await listObjects(admin, { kind });
  const byId = candidates.filter(({ ref }) => ref?.id === name);
  const matching = byId.length > 0 ? byId : candidates.filter((object) => isCalled(object, name));
  const [only, ...others] = matching;
  if (only?.ref === undefined) throw notFound(name, kind, region, candidates);
  if (others.length > 0) throw ambiguous(name, matching);
  return get({ kind: only.ref.kind, id: only.ref.id });
}

/** `deployment/d_web`, as commands accept it. */
export function titleOf(ref: ObjectRef | undefined): string {
  return ref === undefined ? "object" : `${nameOfKind(ref.kind)}/${printable(ref.id)}`;
}

export function isNotFound(error: unknown): boolean {
  return error instanceof ConnectError && error.code === Code.NotFound;
}

function isCalled({ namespace, name }: ObjectView, wanted: string): boolean {
  return name === wanted || `${namespace}/${name}` === wanted;
}

function notFound(
  name: string,
  kind: ObjectKind,
  region: string,
  candidates: readonly ObjectView[],
): CommandError {
  const what = nameOfKind(kind);
  const some = candidates.slice(0, suggestedMax).map(({ ref }) => titleOf(ref));
  const more = candidates.length > some.length ? ` and ${candidates.length - some.length} more` : "";
  const there = some.length === 0 ? "the region has none" : `there are ${some.join(", ")}${more}`;
  return new CommandError("not_found", `no ${what} ${printable(name)} in region ${region}; ${there}`);
}

function ambiguous(name: string, matching: readonly ObjectView[]): CommandError {
  const list = matching.slice(0, suggestedMax).map(({ ref }) => titleOf(ref));
  return new CommandError("usage", `${printable(name)} is ambiguous: ${list.join(", ")}; use the id`);
}
