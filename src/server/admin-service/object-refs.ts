// Converts kinds, regions and object references from and to the wire.
import { create } from "@bufbuild/protobuf";
import { ObjectKind, type ObjectRef, ObjectRefSchema } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type KindName, kindNames, perKind } from "../../kinds/kinds.ts";
import type { Refuse } from "../../model/field-problem.ts";
import type { HistoryKind } from "../store.ts";
import { checked } from "./bad-request.ts";

const wireKinds: Readonly<Record<HistoryKind, ObjectKind>> = {
  ...perKind(({ objectKind }) => objectKind),
  environment: ObjectKind.ENVIRONMENT,
  app: ObjectKind.APP,
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
      // Only used if the kind was rejected.
      kind: kind ?? "deployment",
      id: parseLookupId("ref.id", ref?.id ?? "", refuse),
    };
  });
}

/** A reference to anything that has a history. */
export function parseHistoryRef(
  path: string,
  ref: ObjectRef,
  refuse: Refuse,
): Omit<ParsedRef, "kind"> & { readonly kind: HistoryKind } {
  if (ref.kind === ObjectKind.UNSPECIFIED) refuse(`${path}.kind`, "is required");
  const kind = parseHistoryKind(`${path}.kind`, ref.kind, refuse);
  return {
    region: parseRegion(ref.region, refuse, `${path}.region`),
    // Only used if the kind was rejected.
    kind: kind ?? "deployment",
    id: parseLookupId(`${path}.id`, ref.id, refuse),
  };
}

export function parseRegion(region: string, refuse: Refuse, path = "region"): string {
  if (region === "") refuse(path, "is required");
  return region;
}

/** Undefined for all kinds. */
export function parseKind(path: string, kind: ObjectKind, refuse: Refuse): KindName | undefined {
  const known = parseHistoryKind(path, kind, refuse);
  if (known !== "environment" && known !== "app") return known;
  refuse(path, `is an ${known}, which is not a cluster object`);
  return undefined;
}

/** Undefined for everything that has a history. */
export function parseHistoryKind(path: string, kind: ObjectKind, refuse: Refuse): HistoryKind | undefined {
  const known = ([...kindNames, "environment", "app"] as const).find((each) => wireKinds[each] === kind);
  if (known === undefined && kind !== ObjectKind.UNSPECIFIED) {
    refuse(path, `is ${kind}, which is unknown to this server`);
  }
  return known;
}

/** An id to look up need not be valid for a new object. */
function parseLookupId(path: string, id: string, refuse: Refuse): string {
  if (id === "") refuse(path, "is required");
  return id;
}
