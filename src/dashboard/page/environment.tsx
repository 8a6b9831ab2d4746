// An environment: whose it is, the names of its secrets, how its objects are, and its history.
import { ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Environment as Content, type Event, ObjectKind } from "../../gen/krane/admin/v1/admin_pb.ts";
import { Confirmed } from "./action-form.tsx";
import { History } from "./history.tsx";
import type { Model } from "./model.ts";
import { Link, Loading, Lone, Notice } from "./parts.tsx";
import { allEnvironments } from "./region-data.ts";

const eventsMax = 100;

interface Read {
  /** Undefined if it does not exist. */
  readonly environment: Content | undefined;
  readonly events: readonly Event[];
}

export function Environment(props: { readonly model: Model; readonly region: string; readonly id: string }) {
  const { model, region, id } = props;
  const read = useSignal<Read | undefined>(undefined);
  const problem = useSignal("");
  useEffect(() => {
    const load = () =>
      loadOne(model, region, id).then(
        (found) => {
          read.value = found;
        },
        (error: unknown) => {
          if (!model.fail(error)) problem.value = ConnectError.from(error).rawMessage;
        },
      );
    void load();
    return model.onNews((news) => {
      const isOurs = news.some(
        (each) =>
          each.region === region &&
          (each.incomplete ||
            each.changed.some((ref) => ref.kind === ObjectKind.ENVIRONMENT && ref.id === id)),
      );
      if (isOurs) void load();
    });
  }, []);
  if (problem.value !== "") return <Notice tone="bad">{problem.value}</Notice>;
  if (read.value === undefined) return <Loading />;
  const { environment, events } = read.value;
  if (environment === undefined)
    return (
      <Lone title="Not found">
        <p>
          There is no environment <code>{id}</code> in region <code>{region}</code>.
        </p>
      </Lone>
    );
  const { workspaceId, projectId, secretNames } = environment;
  return (
    <>
      <h1>
        {id} <span class="kind">environment</span>
      </h1>
      <dl class="facts">
        <div>
          <dt>Workspace</dt>
          <dd>
            <code>{workspaceId}</code>
          </dd>
        </div>
        <div>
          <dt>Project</dt>
          <dd>
            <code>{projectId}</code>
          </dd>
        </div>
        <div>
          <dt>Secrets</dt>
          <dd>{secretNames.length === 0 ? "none" : secretNames.join(", ")}</dd>
        </div>
      </dl>
      <div class="toolbar">
        <Link class="button" model={model} to={model.regionRoute(region, { text: id })}>
          Its objects
        </Link>
        {model.canWrite.value && (
          <Confirmed
            model={model}
            label="Delete…"
            question="Deletes this environment and its secrets. It is refused while an object uses it. This cannot be undone."
            word={id}
            confirm="Delete"
            send={async () => {
              await model.api.deleteEnvironment({ region, id });
              return "Deleted.";
            }}
          />
        )}
      </div>
      <History model={model} events={events} />
    </>
  );
}

async function loadOne(model: Model, region: string, id: string): Promise<Read> {
  const [environments, { events }] = await Promise.all([
    allEnvironments(model, region),
    model.api.listEvents({ region, kind: ObjectKind.ENVIRONMENT, id, limit: eventsMax }),
  ]);
  return { environment: environments.find((each) => each.id === id), events };
}
