// The calls that read objects and agents.
import { create, toBinary } from "@bufbuild/protobuf";
import {
  type AgentView,
  AgentViewSchema,
  ObjectView_Desired as Desired,
  type GetObjectRequest,
  type ListAgentsRequest,
  type ListObjectsRequest,
  type ObjectSpec,
  ObjectSpecSchema,
  type ObjectView,
  ObjectViewSchema,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { type ApplyMessage, allKinds, type KindName, kindNames, kindOf } from "../../kinds/kinds.ts";
import type { Refuse } from "../../model/field-problem.ts";
import { type ListPosition, type PageStart, parsePage, tokenOf } from "../../services/page-token.ts";
import { phaseFacts, phaseOf } from "../phase.ts";
import { currentStandbys } from "../standbys.ts";
import type { AgentRecord, AgentReport, Store, StoredObject } from "../store.ts";
import { checked } from "./bad-request.ts";
import { notFound } from "./object-changes.ts";
import { parseKind, parseRef, parseRegion, refOf } from "./object-refs.ts";

export async function getObject(store: Store, request: GetObjectRequest) {
  const ref = parseRef(request.ref);
  const { region, kind, id } = ref;
  const object = await store.object(region, kind, id);
  if (object === undefined) throw notFound(ref);
  const agent = await agentOf(store, region);
  return {
    object: objectView(region, kind, object, agent?.known),
    ...(agent !== undefined && { agent: agentView(agent) }),
  };
}

/** Objects are read in batches until the page is full, so that a filter with few matches costs no memory. */
const batchMax = 100;
/** Limits the size of a page; a page has at least one object. */
const pageBytesMax = 4 * 1024 * 1024;
/** Limits the cost of one call. Beyond it the page ends, with few objects or none, and the next call continues. */
const readMax = 2_000;
const idsMax = 500;

export async function listObjects(store: Store, request: ListObjectsRequest, signal: AbortSignal) {
  const { region, kind, ids } = checked((refuse) => ({
    region: parseRegion(request.region, refuse),
    kind: parseKind("kind", request.kind, refuse),
    ids: parseIds(request.ids, refuse),
  }));
  const { after, size } = parsePage(request);
  const agent = (await agentOf(store, region))?.known;
  const objects: ObjectView[] = [];
  let [bytes, read] = [0, 0];
  let last: ListPosition | undefined;
  const wantedKinds = kindNames.filter((each) => (kind ?? each) === each);
  for await (const { view, place } of viewsBehind(
    store,
    region,
    wantedKinds,
    { after, size, agent, ids },
    signal,
  )) {
    const isWanted = isAskedFor(view, request);
    const viewBytes = isWanted ? toBinary(ObjectViewSchema, view).length : 0;
    const isFull = objects.length === size || (objects.length > 0 && bytes + viewBytes > pageBytesMax);
    if (last !== undefined && (read === readMax || (isWanted && isFull))) {
      return { objects, nextPageToken: tokenOf(last) };
    }
    if (isWanted) objects.push(view);
    bytes += viewBytes;
    read += 1;
    last = { controller: place, key: view.ref?.id ?? "" };
  }
  return { objects, nextPageToken: "" };
}

function parseIds(ids: readonly string[], refuse: Refuse): readonly string[] | undefined {
  if (ids.length > idsMax) refuse("ids", `must be at most ${idsMax}`);
  return ids.length === 0 ? undefined : ids;
}

interface Reading extends PageStart {
  readonly agent: AgentReport | undefined;
  readonly ids: readonly string[] | undefined;
}

/** With the position of each kind, which page tokens refer to. */
async function* viewsBehind(
  store: Store,
  region: string,
  wanted: readonly KindName[],
  { after, size, agent, ids }: Reading,
  signal: AbortSignal,
): AsyncGenerator<{ readonly view: ObjectView; readonly place: string }> {
  for (const kind of wanted) {
    const place = String(kindNames.indexOf(kind));
    if (after !== undefined && place < after.controller) continue;
    for (let cursor = after?.controller === place ? after.key : ""; ; ) {
      // Stop when the call was cancelled.
      signal.throwIfAborted();
      // One more than the page size, to see whether there is another page.
      const batch = await store.objects(region, kind, cursor, Math.min(size + 1, batchMax), ids);
      for (const object of batch) yield { view: objectView(region, kind, object, agent), place };
      const end = batch.at(-1);
      if (end === undefined) break;
      cursor = end.row.id;
    }
  }
}

function isAskedFor({ phase, spec }: ObjectView, request: ListObjectsRequest): boolean {
  if (phase === Phase.DELETED && !request.includeDeleted) return false;
  if (request.environmentId === "") return true;
  const value = spec?.spec.value;
  return value !== undefined && "environmentId" in value && value.environmentId === request.environmentId;
}

export async function listAgents(store: Store, { region }: ListAgentsRequest, nowMs: number) {
  const agents = await store.agents(region === "" ? undefined : region);
  const inOrder = [...agents].sort((a, b) => (a.region < b.region ? -1 : 1));
  return { agents: inOrder.map(agentView), nowMs: BigInt(Math.trunc(nowMs)) };
}

export async function agentOf(store: Store, region: string): Promise<AgentRecord | undefined> {
  return (await store.agents(region))[0];
}

export function agentView(agent: AgentRecord): AgentView {
  const { region, newestVersion, newestOfKind, heartbeatAtMs = 0, state, known } = agent;
  const otherClusters = known?.report.state?.otherClusters ?? [];
  return create(AgentViewSchema, {
    region,
    newestVersion,
    heartbeatAtMs: BigInt(Math.trunc(heartbeatAtMs)),
    stateAtMs: BigInt(Math.trunc(state?.atMs ?? 0)),
    ...(state?.report.state !== undefined && { state: { ...state.report.state, otherClusters } }),
    troubledObjects: state?.report.troubledObjects ?? [],
    blockedDeletions: state?.report.blockedDeletions ?? [],
    standbys: currentStandbys(agent).map(({ atMs, ...standby }) => ({
      ...standby,
      heardAtMs: BigInt(Math.trunc(atMs)),
    })),
    newestVersions: allKinds.map(({ name, objectKind }) => ({
      kind: objectKind,
      version: newestOfKind[name],
    })),
  });
}

// One object as shown to people: its desired state, its phase and what is running.
// Encrypted values are not included; only the names of secrets are.

const desiredStates = {
  running: Desired.RUNNING,
  stopped: Desired.STOPPED,
  unreadable: Desired.UNSPECIFIED,
} as const;

export function objectView<K extends KindName>(
  region: string,
  kind: K,
  object: StoredObject<K>,
  agent: AgentReport | undefined,
): ObjectView {
  const { row, report } = object;
  const facts = phaseFacts(kind, object, agent);
  const { trouble, isSettled: settled } = facts;
  const spec = row.desired === "unreadable" ? undefined : specView(kind, row.spec);
  return create(ObjectViewSchema, {
    ref: refOf({ region, kind, id: row.id }),
    namespace: kindOf(kind).namespaceOf(row.spec),
    name: row.spec.k8sName,
    version: row.version,
    desired: desiredStates[row.desired],
    ...(spec !== undefined && { spec }),
    phase: phaseOf(facts),
    settled,
    ...(trouble !== undefined && { trouble }),
    ...(report !== undefined && kindOf(kind).reports?.viewOf(report)),
    deploymentId: row.deploymentId ?? "",
    appId: row.appId ?? "",
    secretNames: secretNames(kind, row.spec),
    createdAtMs: BigInt(row.createdAtMs ?? 0),
  });
}

function specView<K extends KindName>(kind: K, spec: ApplyMessage<K>): ObjectSpec {
  const value = kindOf(kind).secrets?.withBlob(spec, new Uint8Array()) ?? spec;
  // The kind determines the message type.
  return create(ObjectSpecSchema, { spec: { case: kind, value } as ObjectSpec["spec"] });
}

function secretNames(kind: KindName, spec: ApplyMessage<KindName>): string[] {
  const { secrets } = kindOf(kind);
  return secrets?.namesIn(secrets.blobOf(spec)) ?? [];
}
