// One region: its agent, and a list of everything in it that is searched as you type.
import { useSignal } from "@preact/signals";
import { useEffect, useMemo } from "preact/hooks";
import type { AgentView } from "../../gen/krane/admin/v1/admin_pb.ts";
import { StreamStatus_State as Stream } from "../../gen/krane/v1/agent_pb.ts";
import { heardAtMs, isSilent } from "../../why/silence.ts";
import type { Model } from "./model.ts";
import { Link, Loading, Lone, Notice, State } from "./parts.tsx";
import { RegionData } from "./region-data.ts";
import { type ListedRow, matching, summaryOf } from "./region-rows.ts";
import type { Route } from "./route.ts";
import { type Column, Table } from "./table.tsx";
import { agentWord, ageText, counted, lagOf } from "./words.ts";

type RegionRoute = Extract<Route, { view: "region" }>;

/** A page that a person reads; the search narrows what is shown. */
const rowsFirst = 200;

export function Region({ model, route }: { readonly model: Model; readonly route: RegionRoute }) {
  const { region } = route;
  const data = useMemo(() => new RegionData(model, region), [model, region]);
  useEffect(() => {
    data.start();
    return () => data.stop();
  }, [data]);
  const agent = model.agents.value?.get(region);
  if (model.agents.value?.has(region) === false) return <NoRegion region={region} />;
  return (
    <>
      <h1>{region}</h1>
      {agent !== undefined && <AgentLine model={model} agent={agent} />}
      {data.problem.value !== "" && <Notice tone="bad">{data.problem.value}</Notice>}
      <Objects
        model={model}
        route={route}
        data={data}
        isStale={agent !== undefined && isSilent(agent, model.nowMs())}
      />
    </>
  );
}

function AgentLine({ model, agent }: { readonly model: Model; readonly agent: AgentView }) {
  const now = model.nowMs();
  const { state } = agent;
  const controllers = state?.controllers ?? [];
  const down = controllers.filter(({ stream }) => stream?.state === Stream.BACKING_OFF);
  const lag = lagOf(agent, model.kinds.value);
  return (
    <>
      {isSilent(agent, now) && (
        <Notice tone="bad">
          {agentWord(agent, now).text}.{" "}
          {heardAtMs(agent) === 0n
            ? "Nothing is applied in this region until one does."
            : "What is shown below is what the agent reported then; it may have changed."}
        </Notice>
      )}
      <dl class="facts">
        <div>
          <dt>Agent</dt>
          <dd>
            <State word={agentWord(agent, now)} />
          </dd>
        </div>
        {state !== undefined && (
          <div>
            <dt>Version</dt>
            <dd>{state.version}</dd>
          </div>
        )}
        {state?.lease !== undefined && state.lease.leader !== "" && (
          <div>
            <dt>Leader</dt>
            <dd>
              <code>{state.lease.leader}</code> for {ageText(Number(state.lease.sinceMs), now)}
            </dd>
          </div>
        )}
        {state !== undefined && (
          <div>
            <dt>Lag</dt>
            <dd>{lag === 0 ? "none" : counted(lag, "version")}</dd>
          </div>
        )}
        {down.length > 0 && !isSilent(agent, now) && (
          <div>
            <dt>Streams down</dt>
            <dd class="bad">{down.map(({ name }) => name).join(", ")}</dd>
          </div>
        )}
        {agent.blockedDeletions.length > 0 && (
          <div>
            <dt>Held back</dt>
            <dd>
              <Link model={model} to={{ view: "held" }}>
                {counted(agent.blockedDeletions.length, "deletion")}
              </Link>
            </dd>
          </div>
        )}
      </dl>
    </>
  );
}

function Objects(props: {
  readonly model: Model;
  readonly route: RegionRoute;
  readonly data: RegionData;
  readonly isStale: boolean;
}) {
  const { model, route, data, isStale } = props;
  const shown = useSignal(rowsFirst);
  const objects = data.objects.value;
  const all = data.rows.value;
  const { filter } = route;
  // Drawn again when they change, and not every second with the ages.
  const rows = useMemo(() => matching(all, filter), [all, filter]);
  const table = useMemo(
    () => (
      <ObjectTable model={model} region={route.region} rows={rows.slice(0, shown.value)} isStale={isStale} />
    ),
    [model, route.region, rows, shown.value, isStale],
  );
  if (objects === undefined) return data.problem.value === "" ? <Loading /> : null;
  if (all.length === 0 && data.isComplete.value) return <NothingYet model={model} region={route.region} />;
  const refine = (change: Partial<typeof filter>) => {
    shown.value = rowsFirst;
    model.refine({ ...route, filter: { ...filter, ...change } });
  };
  return (
    <>
      <p class="summary">
        {summaryOf(all)}
        {model.canWrite.value && (
          <Link class="button" model={model} to={{ view: "apply", region: route.region }}>
            Apply documents
          </Link>
        )}
      </p>
      <search class="filters">
        <input
          type="search"
          aria-label="Search objects"
          placeholder="Search by name, id, image, environment or reason"
          value={filter.text}
          onInput={(event) => refine({ text: event.currentTarget.value })}
        />
        <select
          aria-label="Kind"
          value={filter.kind}
          onChange={(event) => refine({ kind: event.currentTarget.value })}
        >
          <option value="">All kinds</option>
          <option value="environments">environments</option>
          <option value="apps">apps</option>
          {model.kinds.value.map(({ plural }) => (
            <option key={plural} value={plural}>
              {plural}
            </option>
          ))}
        </select>
        <label class="check">
          <input
            type="checkbox"
            checked={filter.troubledOnly}
            onChange={(event) => refine({ troubledOnly: event.currentTarget.checked })}
          />
          Not ready only
        </label>
      </search>
      <p class="faint" role="status">
        {rows.length === all.length
          ? countText(all)
          : `${rows.length.toLocaleString("en")} of ${countText(all)}`}
        {data.isComplete.value ? "" : ", loading more…"}
      </p>
      {table}
      {rows.length > shown.value && (
        <button type="button" onClick={() => (shown.value += rowsFirst)}>
          Show {Math.min(rowsFirst, rows.length - shown.value)} more
        </button>
      )}
    </>
  );
}

function countText(all: readonly ListedRow[]): string {
  const count = (wanted: string) => all.filter(({ kind }) => kind === wanted).length;
  const [apps, environments] = [count("app"), count("environment")];
  return new Intl.ListFormat("en").format([
    ...(apps === 0 ? [] : [counted(apps, "app")]),
    counted(all.length - apps - environments, "object"),
    ...(environments === 0 ? [] : [counted(environments, "environment")]),
  ]);
}

function ObjectTable(props: {
  readonly model: Model;
  readonly region: string;
  readonly rows: readonly ListedRow[];
  readonly isStale: boolean;
}) {
  const { model, region, rows, isStale } = props;
  if (rows.length === 0) return <p class="calm-line">Nothing matches.</p>;
  const columns: readonly Column<ListedRow>[] = [
    {
      title: "Object",
      cell: ({ kind, id, name }) => (
        <>
          <Link model={model} to={{ view: "object", region, kind, id }}>
            {name}
          </Link>
          <span class="kind">
            {kind} {id === name ? "" : id}
          </span>
        </>
      ),
    },
    { title: "State", isPlain: true, cell: ({ state }) => <State word={state} isStale={isStale} /> },
    { title: "Pods", isNumber: true, cell: ({ pods }) => pods },
    { title: "Environment", cell: ({ environment }) => environment },
    { title: "Image", class: () => "image", cell: ({ image }) => image },
    { title: "Reason", isPlain: true, class: () => "reason", cell: ({ reason }) => reason },
  ];
  return <Table rows={rows} columns={columns} keyOf={({ key }) => key} />;
}

function NothingYet({ model, region }: { readonly model: Model; readonly region: string }) {
  return (
    <Lone title="Nothing here yet" isBelow>
      <p>Three lines make something appear:</p>
      <pre>
        {`krane schema > krane.schema.json      # your editor completes documents
krane apply -f examples/hello.yaml --region ${region} --wait
krane get all --region ${region}`}
      </pre>
      {model.canWrite.value && (
        <p>
          Or{" "}
          <Link model={model} to={{ view: "apply", region }}>
            apply a document here
          </Link>
          .
        </p>
      )}
    </Lone>
  );
}

function NoRegion({ region }: { readonly region: string }) {
  return (
    <Lone title="No such region">
      <p>
        This server does not know the region <code>{region}</code>.
      </p>
    </Lone>
  );
}
