// The objects of another krane: lists what an agent reported, and allows their adoption.
import { Code, ConnectError } from "@connectrpc/connect";
import type { AdoptObjectsRequest, ListStrangersRequest } from "../../gen/krane/admin/v1/admin_pb.ts";
import { refOf, strangerKey } from "../allowed-adoptions.ts";
import type { Author, Store } from "../store.ts";
import { checked } from "./bad-request.ts";
import { parseRegion } from "./object-refs.ts";

const objectsMax = 1_000;

export async function listStrangers(store: Store, request: ListStrangersRequest, nowMs: number) {
  const region = checked((refuse) => parseRegion(request.region, refuse));
  const [agent] = await store.agents(region);
  const strangers = agent?.state?.report.strangers ?? [];
  return {
    strangers: strangers.toSorted((a, b) => Number(b.adoptable) - Number(a.adoptable)),
    stateAtMs: BigInt(Math.trunc(agent?.state?.atMs ?? 0)),
    nowMs: BigInt(Math.trunc(nowMs)),
  };
}

export async function adoptObjects(store: Store, request: AdoptObjectsRequest, author: Author) {
  const { region, objects } = checked((refuse) => {
    const { length } = request.objects;
    if (length === 0) refuse("objects", "is required");
    if (length > objectsMax) refuse("objects", `has ${length} entries; at most ${objectsMax} are allowed`);
    for (const [index, object] of request.objects.entries())
      for (const [field, value] of Object.entries(refOf(object)))
        if (value === "") refuse(`objects[${index}].${field}`, "is required");
    return { region: parseRegion(request.region, refuse), objects: request.objects.map(refOf) };
  });
  const accepted = new Set((await store.adoptObjects(region, objects, author)).map(strangerKey));
  const notListed = objects.filter((object) => !accepted.has(strangerKey(object)));
  if (accepted.size > 0) return { notListed };
  const message = `the agent of region ${region} lists none of these objects as adoptable`;
  throw new ConnectError(message, Code.NotFound);
}
