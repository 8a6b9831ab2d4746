// The deletions that agents hold back, with the evidence that each of them waits for.
import type { AgentView } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { BlockedDeletion } from "../../gen/krane/v1/agent_pb.ts";
import { isSilent } from "../../why/silence.ts";
import { AllowDeletion } from "./actions.tsx";
import type { Model } from "./model.ts";
import { Age, Loading, Notice, Section, type ViewProps } from "./parts.tsx";
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
        An agent deletes at once only what the control plane tells it to delete. Of an object that is merely
        missing there, it holds the deletion back until somebody allows it: the control plane may have lost
        data.
      </p>
      {holding.length === 0 && <p class="calm-line">No agent is holding back a deletion.</p>}
      {holding.map((agent) => (
        <HeldInRegion key={agent.region} model={model} agent={agent} />
      ))}
    </>
  );
}

function HeldInRegion({ model, agent }: { readonly model: Model; readonly agent: AgentView }) {
  const { region, blockedDeletions } = agent;
  return (
    <Section title={region} extra={<span class="count">{counted(blockedDeletions.length, "deletion")}</span>}>
      {isSilent(agent, model.nowMs()) && (
        <Notice tone="bad">The agent is silent; this is what it reported last.</Notice>
      )}
      <div class="scroll">
        <table class="cards">
          <thead>
            <tr>
              <th scope="col">Object</th>
              <th scope="col">Why it is held back</th>
              <th scope="col">Since</th>
              <th scope="col" class="number">
                Missing in
              </th>
              {model.canWrite.value && <th scope="col">Allow it</th>}
            </tr>
          </thead>
          <tbody>
            {blockedDeletions.map((held) => (
              <HeldRow key={`${held.controller} ${held.key}`} model={model} region={region} held={held} />
            ))}
          </tbody>
        </table>
      </div>
    </Section>
  );
}

function HeldRow({
  model,
  region,
  held,
}: {
  readonly model: Model;
  readonly region: string;
  readonly held: BlockedDeletion;
}) {
  const kind = model.kinds.value.find(({ controller }) => controller === held.controller)?.name;
  return (
    <tr>
      <th scope="row">
        {held.key}
        <span class="kind">
          {kind ?? held.controller} {held.id}
        </span>
      </th>
      <td>{held.reason}</td>
      <td data-label="Since">
        <Age model={model} atMs={held.firstSuspectedMs} suffix=" ago" />
      </td>
      <td class="number" data-label="Missing in">
        {counted(held.suspectedPasses, "resync")}
      </td>
      {model.canWrite.value && (
        <td>
          <AllowDeletion model={model} region={region} held={held} />
        </td>
      )}
    </tr>
  );
}
