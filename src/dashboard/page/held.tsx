// The deletions that agents hold back, with the evidence that each of them waits for.
import { useSignal } from "@preact/signals";
import type { AgentView } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { BlockedDeletion } from "../../gen/krane/v1/agent_pb.ts";
import { isSilent } from "../../why/silence.ts";
import { AllowDeletions } from "./actions.tsx";
import type { Model } from "./model.ts";
import { Age, Loading, Notice, Section, type ViewProps } from "./parts.tsx";
import { type Column, Table } from "./table.tsx";
import { counted } from "./words.ts";

export function Held({ model }: ViewProps) {
  const agents = model.agents.value;
  if (agents === undefined) return <Loading />;
  const holding = [...agents.values()].filter(({ blockedDeletions }) => blockedDeletions.length > 0);
  const count = holding.reduce((sum, { blockedDeletions }) => sum + blockedDeletions.length, 0);
  return (
    <>
      <h1>
        Held-back deletions <span class="count">{count}</span>
      </h1>
      <p class="lead">
        An agent deletes at once only what the control plane orders it to delete. If an object is only missing
        there, the control plane may have lost data: the agent then holds the deletion back until somebody
        allows it.
      </p>
      {holding.length === 0 && <p class="calm-line">No agent is holding back a deletion.</p>}
      {holding.map((agent) => (
        <HeldInRegion key={agent.region} model={model} agent={agent} />
      ))}
    </>
  );
}

const keyOf = ({ controller, key }: BlockedDeletion) => `${controller} ${key}`;

function HeldInRegion({ model, agent }: { readonly model: Model; readonly agent: AgentView }) {
  const { region, blockedDeletions: held } = agent;
  const chosen = useSignal<ReadonlySet<string>>(new Set());
  const choose = (key: string, isChosen: boolean) => {
    const after = new Set(chosen.value);
    if (isChosen) after.add(key);
    else after.delete(key);
    chosen.value = after;
  };
  const columns: readonly Column<BlockedDeletion>[] = [
    {
      title: "Object",
      cell: (one) => (
        <>
          {model.canWrite.value && held.length > 1 && (
            <input
              type="checkbox"
              aria-label={`Choose ${one.key}`}
              checked={chosen.value.has(keyOf(one))}
              onChange={(event) => choose(keyOf(one), event.currentTarget.checked)}
            />
          )}{" "}
          {one.key}
          <span class="kind">
            {model.kinds.value.find(({ controller }) => controller === one.controller)?.name ??
              one.controller}{" "}
            {one.id}
          </span>
        </>
      ),
    },
    { title: "Why it is held back", isPlain: true, cell: ({ reason }) => reason },
    {
      title: "Since",
      cell: ({ firstSuspectedMs }) => <Age model={model} atMs={firstSuspectedMs} suffix=" ago" />,
    },
    {
      title: "Missing in",
      isNumber: true,
      cell: ({ suspectedPasses }) => counted(suspectedPasses, "resync"),
    },
  ];
  const allowing: Column<BlockedDeletion> = {
    title: "Allow it",
    isPlain: true,
    cell: (one) => <AllowDeletions model={model} region={region} held={[one]} />,
  };
  const several = held.filter((one) => chosen.value.has(keyOf(one)));
  return (
    <Section title={region} extra={<span class="count">{counted(held.length, "deletion")}</span>}>
      {isSilent(agent, model.nowMs()) && (
        <Notice tone="bad">The agent is silent; this is what it reported last.</Notice>
      )}
      <Table rows={held} columns={model.canWrite.value ? [...columns, allowing] : columns} keyOf={keyOf} />
      {model.canWrite.value && held.length > 1 && (
        <div class="toolbar">
          {several.length > 1 ? (
            <AllowDeletions model={model} region={region} held={several} />
          ) : (
            <span class="faint">Choose several to allow them together.</span>
          )}
        </div>
      )}
    </Section>
  );
}
