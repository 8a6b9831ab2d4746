// The names of kinds, regions and objects, from the wire and back.
import { create } from "@bufbuild/protobuf";
import { ObjectKind, type ObjectRef, ObjectRefSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type KindName, kindNames, perKind } from "../../kinds/kinds.ts";
import type { Refuse } from "../../model/field-problem.ts";
import type { HistoryKind } from "../store.ts";
import { checked } from "./bad-request.ts";

const wireKinds: Readonly<Record<HistoryKind, ObjectKind>> = {
  ...perKind(({ objectKind }) => objectKind),
  environment: ObjectKind.ENVIRONMENT,
};

export interface ParsedRef {
  readonly region: string;
  readonly kind: KindName;
  readonly id: string;
}

export function refOf({
  region,
  kind,
  id,
}: Omit<ParsedRef, "kind"> & { readonly kind: HistoryKind }): ObjectRef {
  return create(ObjectRefSchema, { region, kind: wireKinds[kind], id });
}

export function parseRef(ref: ObjectRef | undefined): ParsedRef {
  return checked((refuse) => {
    const { kind: wireKind = ObjectKind.UNSPECIFIED } = ref ?? {};
    const kind = parseKind("ref.kind", wireKind, refuse);
    if (wireKind === ObjectKind.UNSPECIFIED) refuse("ref.kind", "is required");
    return {
      region: parseRegion(ref?.region ?? "", refuse, "ref.region"),
      // Only seen where the kind was refused.
      kind: kind ?? "deployment",
      id: parseLookupId("ref.id", ref?.id ?? "", refuse),
    };
  });
}

export function parseRegion(region: string, refuse: Refuse, path = "region"): string {
  if (region === "") refuse(path, "is required");
  return region;
}

/** Undefined for all kinds. */
export function parseKind(path: string, kind: ObjectKind, refuse: Refuse): KindName | undefined {
  if (kind === ObjectKind.ENVIRONMENT) refuse(path, "is an environment, which is no object of a cluster");
  const known = parseHistoryKind(path, kind, refuse);
  return known === "environment" ? undefined : known;
}

/** Undefined for all that has a history. */
export function parseHistoryKind(path: string, kind: ObjectKind, refuse: Refuse): HistoryKind | undefined {
  const known = ([...kindNames, "environment"] as const).find((each) => wireKinds[each] === kind);
  if (known === undefined && kind !== ObjectKind.UNSPECIFIED) {
    refuse(path, `is ${kind}, which this server does not know`);
  }
  return known;
}

/** An id to look for need not be one that could be given out now. */
function parseLookupId(path: string, id: string, refuse: Refuse): string {
  if (id === "") refuse(path, "is required");
  return id;
}
