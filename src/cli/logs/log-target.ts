// Finds what `krane logs` is about: an app, a deployment or one pod.
import { ObjectKind, type ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { printable } from "../../telemetry/scrub.ts";
import type { Admin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { isKind, parseObjectName } from "../objects/object-names.ts";
import { findObject, listObjects } from "../objects/object-search.ts";
import { appNamed, namesPods } from "../objects/pod-list.ts";

export interface LogTarget {
  readonly target:
    | { readonly case: "appId"; readonly value: string }
    | { readonly case: "deploymentId"; readonly value: string };
  /** Empty for all. */
  readonly podName: string;
  /** How many pods it has, by the last report. */
  readonly pods: number;
  readonly title: string;
}

export async function findLogTarget(
  admin: Admin,
  first: string,
  second: string | undefined,
): Promise<LogTarget> {
  if (namesPods(first)) return podTarget(admin, second ?? first.split(/\/(.*)/s)[1] ?? "");
  if (second !== undefined || isKind(first.split("/", 1)[0] ?? "")) {
    const { kind, name = "" } = parseObjectName(first, second, ["app", "deployment"]);
    return kind === "deployment" ? deploymentTarget(admin, name) : namedApp(admin, name);
  }
  const app = await appNamed(admin, first);
  if (app !== undefined) return appTarget(admin, app);
  return (await podNamed(admin, first)) ?? deploymentTarget(admin, first);
}

async function appTarget({ client, region, signal }: Admin, id: string): Promise<LogTarget> {
  const { app } = await client.getApp({ region, id }, { signal });
  const target = { case: "appId", value: id } as const;
  return { target, podName: "", pods: podCount(app?.deployments ?? []), title: `app/${printable(id)}` };
}

async function namedApp(admin: Admin, name: string): Promise<LogTarget> {
  const { findApp } = await import("../apps/app-search.ts");
  return appTarget(admin, (await findApp(admin, name)).id);
}

async function deploymentTarget(admin: Admin, name: string): Promise<LogTarget> {
  const { object } = await findObject(admin, name, ObjectKind.DEPLOYMENT);
  const id = object.ref?.id ?? name;
  const target = { case: "deploymentId", value: id } as const;
  return { target, podName: "", pods: podCount([object]), title: `deployment/${printable(id)}` };
}

async function podTarget(admin: Admin, name: string): Promise<LogTarget> {
  const found = name === "" ? undefined : await podNamed(admin, name);
  if (found !== undefined) return found;
  throw new CommandError(
    "not_found",
    `no pod ${printable(name)} in region ${admin.region}; see krane get pods`,
  );
}

async function podNamed(admin: Admin, name: string): Promise<LogTarget | undefined> {
  const owners = await listObjects(admin, { kind: ObjectKind.DEPLOYMENT });
  const owner = owners.find(({ deployment }) =>
    deployment?.instances.some(({ k8sName }) => k8sName === name),
  );
  if (owner?.ref === undefined) return undefined;
  const title = `pod/${printable(name)}`;
  return { target: { case: "deploymentId", value: owner.ref.id }, podName: name, pods: 1, title };
}

function podCount(objects: readonly ObjectView[]): number {
  return objects.flatMap(({ deployment }) => deployment?.instances ?? []).length;
}
