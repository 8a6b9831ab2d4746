// The pods of deployments and of apps, as their agent last reported them.
import type { JsonObject } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type ReportDeploymentStatusRequest_Update_Instance as Instance,
  ReportDeploymentStatusRequest_Update_InstanceSchema as InstanceSchema,
  ReportDeploymentStatusRequest_Update_Instance_Status as InstanceStatus,
} from "../../gen/ctrl/v1/deployment_pb.ts";
import { ObjectKind, type ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { ListedPod } from "../../kinds/kind-view.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { findApp } from "../apps/app-search.ts";
import { CommandError } from "../command-error.ts";
import { ageOf } from "../terminal/age.ts";
import type { Tone } from "../terminal/colours.ts";
import { jsonOf } from "../terminal/output.ts";
import type { Cell } from "../terminal/table.ts";
import type { ListedItem } from "./listing.ts";
import type { TableOptions } from "./object-rows.ts";
import { listObjects } from "./object-search.ts";
import { factsOfObject, type Selector } from "./selector.ts";

export interface ReportedPod {
  readonly pod: Instance;
  /** Its deployment. */
  readonly owner: ObjectView;
}

const isPodWord = (word: string) => /^pods?$/i.test(word);

/** Whether `pods`, `pod` or `pods/NAME` was named. */
export function namesPods(first: string): boolean {
  return isPodWord(first.split("/", 1)[0] ?? "");
}

export interface PodQuery {
  /** A pod, a deployment or an app; undefined for all pods of the region. */
  readonly name: string | undefined;
  readonly environmentId: string;
  readonly selector: Selector;
}

export async function findPods(admin: Admin, query: PodQuery): Promise<readonly ReportedPod[]> {
  const { name, environmentId, selector } = query;
  const owners = (await listObjects(admin, { kind: ObjectKind.DEPLOYMENT, environmentId })).filter((owner) =>
    selector(factsOfObject(owner)),
  );
  const podsOf = (those: readonly ObjectView[]) =>
    those.flatMap((owner) => (owner.deployment?.instances ?? []).map((pod) => ({ pod, owner })));
  if (name === undefined) return podsOf(owners);
  const [kind, rest] = name.includes("/") ? name.split(/\/(.*)/s, 2) : [undefined, name];
  const isOwner = ({ ref, namespace, name: own }: ObjectView) =>
    [ref?.id, own, `${namespace}/${own}`, `deployment/${ref?.id}`, `deployment/${own}`].includes(name);
  const named = owners.filter(isOwner);
  if (named.length > 0) return podsOf(named);
  const pod = podsOf(owners).filter(({ pod: { k8sName } }) => k8sName === name);
  if (pod.length > 0) return pod;
  const app = await appNamed(admin, kind === "app" ? (rest ?? "") : name);
  if (app !== undefined) return podsOf(owners.filter(({ appId }) => appId === app));
  throw new CommandError(
    "not_found",
    `no app, deployment or pod ${printable(name)} in region ${admin.region}; see krane get pods`,
  );
}

export async function appNamed(admin: Admin, name: string): Promise<string | undefined> {
  try {
    return (await findApp(admin, name)).id;
  } catch (error) {
    // An older control plane has no apps.
    if (error instanceof ConnectError && error.code === Code.Unimplemented) return undefined;
    if (error instanceof CommandError && error.code === "not_found") return undefined;
    throw error;
  }
}

const titles = ["NAME", "DEPLOYMENT", "STATUS", "RESTARTS", "AGE", "REPORTED"];

export function podTitles({ wide }: Pick<TableOptions, "wide">): readonly string[] {
  return wide ? [...titles, "ZONE", "CPU", "MEMORY", "ADDRESS"] : titles;
}

export function podItem({ pod, owner }: ReportedPod, options: TableOptions): ListedItem {
  const { nowMs, silence, wide } = options;
  const { reportedAtMs = 0n } = owner.deployment ?? {};
  const json = jsonOf(InstanceSchema, pod) as JsonObject;
  return {
    title: `pod/${printable(pod.k8sName)}`,
    json: {
      deployment: owner.ref?.id ?? "",
      app: owner.appId,
      namespace: owner.namespace,
      ...json,
      reportedAtMs: String(reportedAtMs),
    },
    cells: [
      pod.k8sName,
      owner.ref?.id ?? "",
      podStatusCell(pod, silence),
      restartsText(pod),
      ageOf(pod.createdAtMs, nowMs),
      `${ageOf(reportedAtMs, nowMs)} ago`,
      ...(wide ? [pod.zone, `${pod.cpuMillicores}m`, `${pod.memoryMib}Mi`, pod.address] : []),
    ],
    content: undefined,
  };
}

/** Empty if the agent is too old to report them. */
export function restartsText({ restarts }: ListedPod): string {
  return restarts === undefined ? "" : String(restarts);
}

const statuses: Readonly<Record<InstanceStatus, readonly [word: string, tone: Tone | undefined]>> = {
  [InstanceStatus.UNSPECIFIED]: ["Unknown", "busy"],
  [InstanceStatus.PENDING]: ["Pending", "busy"],
  [InstanceStatus.RUNNING]: ["Running", "good"],
  [InstanceStatus.FAILED]: ["Failed", "bad"],
};

/** `silence`: how long ago the region's agent was last heard, if it is silent. */
export function podStatusCell({ status, outdated }: ListedPod, silence?: string): Cell {
  const [word, tone] = statuses[status] ?? statuses[InstanceStatus.UNSPECIFIED];
  const notes = [
    ...(outdated ? ["outdated"] : []),
    ...(silence === undefined ? [] : [`last heard ${silence} ago`]),
  ];
  const text = [word, ...notes].join(", ");
  return { text, tone: silence === undefined || tone === "bad" ? tone : "busy" };
}
