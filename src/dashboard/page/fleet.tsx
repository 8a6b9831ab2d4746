// The fleet: what needs a person first, then all regions with their agents.
import type { AgentView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { LeaseStatus_Role as Role, StreamStatus_State as Stream } from "../../gen/krane/v1/agent_pb.ts";
import { heardAtMs, isSilent } from "../../why/silence.ts";
import { type Need, needsOf } from "./attention.ts";
import type { Model } from "./model.ts";
import { Link, Loading, Lone, Section, State, type ViewProps } from "./parts.tsx";
import { agentWord, ageText, counted, lagOf } from "./words.ts";

export function Fleet({ model }: ViewProps) {
  const agents = model.agents.value;
  if (agents === undefined) return <Loading />;
  if (agents.size === 0) return <NoRegions />;
  const all = [...agents.values()];
  const needs = needsOf(all, model.nowMs());
  return (
    <>
      <h1>
        Fleet <span class="count">{counted(all.length, "region")}</span>
      </h1>
      <Section title="Needs attention">
        {needs.length === 0 ? (
          <p class="calm-line">Nothing: every agent was heard, and no object is in trouble.</p>
        ) : (
          <Needs model={model} needs={needs} />
        )}
      </Section>
      <Section title="Regions">
        <RegionTable model={model} agents={all} />
      </Section>
    </>
  );
}

function Needs({ model, needs }: { readonly model: Model; readonly needs: readonly Need[] }) {
  return (
    <ul class="needs">
      {needs.map(({ region, text, about }) => (
        <li key={`${region} ${text}`}>
          <Link
            class="need"
            model={model}
            to={
              about === "held"
                ? { view: "held" }
                : model.regionRoute(region, { troubledOnly: about === "troubled" })
            }
          >
            <code>{region}</code> <span>{text}</span>
          </Link>
        </li>
      ))}
    </ul>
  );
}

function RegionTable({ model, agents }: { readonly model: Model; readonly agents: readonly AgentView[] }) {
  return (
    <div class="scroll">
      <table class="cards">
        <thead>
          <tr>
            <th scope="col">Region</th>
            <th scope="col">Agent</th>
            <th scope="col">Version</th>
            <th scope="col">Role</th>
            <th scope="col">Streams</th>
            <th scope="col" class="number">
              Lag
            </th>
            <th scope="col" class="number">
              Objects
            </th>
            <th scope="col" class="number">
              In trouble
            </th>
            <th scope="col" class="number">
              Held back
            </th>
          </tr>
        </thead>
        <tbody>
          {agents.map((agent) => (
            <RegionRow key={agent.region} model={model} agent={agent} />
          ))}
        </tbody>
      </table>
    </div>
  );
}

function RegionRow({ model, agent }: { readonly model: Model; readonly agent: AgentView }) {
  const now = model.nowMs();
  const { region, state, blockedDeletions } = agent;
  const isStale = isSilent(agent, now);
  const controllers = state?.controllers ?? [];
  const open = controllers.filter(({ stream }) => stream?.state === Stream.OPEN).length;
  const objects = controllers.reduce((sum, controller) => sum + controller.objects, 0);
  const trouble = controllers.reduce(
    (sum, { parked, retrying, conflicts, failing }) => sum + parked + retrying + conflicts + failing,
    0,
  );
  return (
    <tr class={isStale ? "old" : undefined}>
      <th scope="row">
        <Link model={model} to={model.regionRoute(region)}>
          {region}
        </Link>
      </th>
      <td>
        <State word={agentWord(agent, now)} />
      </td>
      <td data-label="Version">{state === undefined ? "" : state.inferred ? "original" : state.version}</td>
      <td data-label="Role">{roleText(agent, now)}</td>
      <td data-label="Streams">{isStale ? "unknown" : `${open} of ${controllers.length} open`}</td>
      <td data-label="Lag" class="number">
        {state === undefined ? "" : lagOf(agent, model.kinds.value)}
      </td>
      <td data-label="Objects" class="number">
        {state === undefined ? "" : objects}
      </td>
      <td data-label="In trouble" class={trouble > 0 ? "number bad" : "number"}>
        {state === undefined ? "" : trouble}
      </td>
      <td data-label="Held back" class={blockedDeletions.length > 0 ? "number bad" : "number"}>
        {blockedDeletions.length}
      </td>
    </tr>
  );
}

/** The control plane hears only from the leader. */
function roleText(agent: AgentView, nowMs: number): string {
  const { state } = agent;
  if (heardAtMs(agent) === 0n || state === undefined) return "";
  if (state.lease?.role === Role.LEADER) return `leader for ${ageText(Number(state.lease.sinceMs), nowMs)}`;
  return state.lease === undefined || state.lease.role === Role.ALONE ? "alone" : "standby";
}

function NoRegions() {
  return (
    <Lone title="No regions yet">
      <p>A region appears when its agent's token is added to the server. Three lines make one:</p>
      <pre>
        {`echo "eu-west-1.aws $(openssl rand -hex 24)" >> agent-tokens
krane server --agent-tokens-file agent-tokens ...
krane agent --config krane.toml        # region = "eu-west-1.aws"`}
      </pre>
    </Lone>
  );
}
