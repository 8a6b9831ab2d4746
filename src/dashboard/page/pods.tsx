// The pods of an object as its agent reported them, by zone.
import type { ComponentChildren } from "preact";
import type { ReportDeploymentStatusRequest_Update_Instance as Pod } from "../../gen/ctrl/v1/deployment_pb.ts";
import type { ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Model } from "./model.ts";
import { Age, Section, State } from "./parts.tsx";
import { type Column, Table } from "./table.tsx";
import { availablePods, podWord } from "./words.ts";
import { type Zone, zonesOf } from "./zones.ts";

export function Pods(props: {
  readonly model: Model;
  readonly object: ObjectView;
  readonly isStale: boolean;
}) {
  const { model, object, isStale } = props;
  const { deployment } = object;
  const available = availablePods(object);
  if (available !== undefined)
    return (
      <NoList>
        {available.count} available, image <code>{available.image || "unknown"}</code>
      </NoList>
    );
  if (deployment === undefined) return <NoList>The agent has not reported any yet.</NoList>;
  if (deployment.instances.length === 0) return <NoList>None.</NoList>;
  const zones = zonesOf(deployment.instances);
  const isZoned = zones.some(({ name }) => name !== "");
  const columns = podColumns(model, isStale, isZoned);
  return (
    <Section title="Pods" extra={isZoned && <Zones zones={zones} />}>
      <Table rows={zones.flatMap(({ pods }) => pods)} columns={columns} keyOf={({ k8sName }) => k8sName} />
    </Section>
  );
}

function NoList({ children }: { readonly children: ComponentChildren }) {
  return (
    <Section title="Pods">
      <p class="calm-line">{children}</p>
    </Section>
  );
}

function Zones({ zones }: { readonly zones: readonly Zone[] }) {
  return (
    <span class="count">
      {zones
        .map(({ name, running, pods }) => `${name || "unknown zone"}: ${running} of ${pods.length} running`)
        .join(" · ")}
    </span>
  );
}

function podColumns(model: Model, isStale: boolean, isZoned: boolean): readonly Column<Pod>[] {
  const zone: Column<Pod> = { title: "Zone", cell: ({ zone: name }) => name || "unknown" };
  return [
    { title: "Pod", cell: ({ k8sName }) => <code>{k8sName}</code> },
    {
      title: "State",
      isPlain: true,
      cell: ({ status }) => <State word={podWord(status)} isStale={isStale} />,
    },
    ...(isZoned ? [zone] : []),
    {
      title: "Restarts",
      isNumber: true,
      class: ({ restarts = 0 }) => (restarts > 0 ? "busy-text" : undefined),
      cell: ({ restarts }) => restarts ?? "unknown",
    },
    {
      title: "Age",
      isNumber: true,
      cell: ({ createdAtMs }) => (createdAtMs === 0n ? "unknown" : <Age model={model} atMs={createdAtMs} />),
    },
    { title: "Version", cell: ({ outdated }) => (outdated ? "older" : "newest") },
    { title: "Address", class: () => "image", cell: ({ address }) => address },
  ];
}
