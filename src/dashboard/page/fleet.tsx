// The fleet: what needs a person first, then all regions with their agents.
import type { AgentView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { LeaseStatus_Role as Role, StreamStatus_State as Stream } from "../../gen/krane/v1/agent_pb.ts";
import { heardAtMs, isSilent, isStale } from "../../why/silence.ts";
import { type Need, needsOf } from "./attention.ts";
import type { Model } from "./model.ts";
import { Link, Loading, Lone, Section, State, type ViewProps } from "./parts.tsx";
import { type Column, Table } from "./table.tsx";
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
  const now = model.nowMs();
  const bad = (count: number) => (count > 0 ? "bad" : undefined);
  const known = (agent: AgentView, text: string | number) => (agent.state === undefined ? "" : text);
  const columns: readonly Column<AgentView>[] = [
    {
      title: "Region",
      cell: ({ region }) => (
        <Link model={model} to={model.regionRoute(region)}>
          {region}
        </Link>
      ),
    },
    { title: "Agent", isPlain: true, cell: (agent) => <State word={agentWord(agent, now)} /> },
    {
      title: "Version",
      cell: ({ state }) => (state === undefined ? "" : state.inferred ? "original" : state.version),
    },
    { title: "Role", cell: (agent) => roleText(agent, now) },
    { title: "Streams", cell: (agent) => streamsText(agent, now) },
    { title: "Lag", isNumber: true, cell: (agent) => known(agent, lagOf(agent, model.kinds.value)) },
    { title: "Managed", isNumber: true, cell: (agent) => known(agent, sumOf(agent, ["objects"])) },
    {
      title: "In trouble",
      class: (agent) => bad(sumOf(agent, troubles)),
      cell: (agent) => known(agent, troubleCounts(agent)),
    },
    {
      title: "Held back",
      isNumber: true,
      class: ({ blockedDeletions }) => bad(blockedDeletions.length),
      cell: (agent) => known(agent, agent.blockedDeletions.length),
    },
  ];
  const rowClass = (agent: AgentView) => (isSilent(agent, now) ? "old" : undefined);
  return <Table rows={agents} columns={columns} keyOf={({ region }) => region} rowClass={rowClass} />;
}

const troubles = ["failing", "parked", "conflicts", "retrying"] as const;

const troubleWords: Readonly<Record<(typeof troubles)[number], string>> = {
  failing: "failing",
  parked: "rejected",
  conflicts: "with a taken name",
  retrying: "being retried",
};

/** "2 failing, 1 rejected". */
function troubleCounts(agent: AgentView): string {
  const counts = troubles.map((field) => [sumOf(agent, [field]), troubleWords[field]] as const);
  const found = counts.filter(([count]) => count > 0).map(([count, word]) => `${count} ${word}`);
  return found.length === 0 ? "none" : found.join(", ");
}

function sumOf({ state }: AgentView, fields: readonly ("objects" | (typeof troubles)[number])[]): number {
  const controllers = state?.controllers ?? [];
  return controllers.reduce((sum, each) => fields.reduce((total, field) => total + each[field], sum), 0);
}

function streamsText(agent: AgentView, nowMs: number): string {
  if (isSilent(agent, nowMs)) return "unknown";
  const controllers = agent.state?.controllers ?? [];
  const open = controllers.filter(({ stream }) => stream?.state === Stream.OPEN).length;
  return `${open} of ${controllers.length} open`;
}

/** Standbys say only that they are there. */
function roleText(agent: AgentView, nowMs: number): string {
  const { state, standbys } = agent;
  if (heardAtMs(agent) === 0n || state === undefined) return "";
  if (state.lease?.role === Role.LEADER) {
    const heard = standbys.filter(({ heardAtMs }) => !isStale(heardAtMs, nowMs)).length;
    const others = heard === 0 ? "no standby heard" : counted(heard, "standby");
    return `leader for ${ageText(Number(state.lease.sinceMs), nowMs)}, ${others}`;
  }
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
