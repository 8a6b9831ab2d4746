// One object or app: why it is as it is first, then what is wanted and what runs, its pods or releases, and its history.
import { useEffect, useMemo } from "preact/hooks";
import {
  ObjectView_Desired as Desired,
  type ExplainObjectResponse,
  type Explanation,
  ObjectKind,
  type ObjectView,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { isSilent } from "../../why/silence.ts";
import { AppActions, ObjectActions } from "./actions.tsx";
import { History } from "./history.tsx";
import { Logs } from "./logs.tsx";
import { Manifests } from "./manifests.tsx";
import type { Model } from "./model.ts";
import { ObjectData } from "./object-data.ts";
import { Link, Loading, Lone, Notice, Section, State } from "./parts.tsx";
import { Pods } from "./pods.tsx";
import { Releases } from "./releases.tsx";
import type { Route } from "./route.ts";
import { appName, appWord, causeTone, objectName, phaseWord, podCounts } from "./words.ts";

type ObjectRoute = Extract<Route, { view: "object" }>;

export function ObjectPage({ model, route }: { readonly model: Model; readonly route: ObjectRoute }) {
  const { region, kind, id } = route;
  const data = useMemo(() => new ObjectData(model, { region, kind, id }), [model, region, kind, id]);
  useEffect(() => {
    data.start();
    return () => data.stop();
  }, [data]);
  const answer = data.answer.value;
  if (data.isMissing.value)
    return (
      <Lone title="Not found">
        <p>
          There is no {kind} <code>{id}</code> in region <code>{region}</code>, or it was deleted long ago.
        </p>
      </Lone>
    );
  if (answer === undefined)
    return data.problem.value === "" ? <Loading /> : <Notice tone="bad">{data.problem.value}</Notice>;
  const { explanation, object, app, agent } = answer;
  const isStale = agent !== undefined && isSilent(agent, model.nowMs());
  // A release is changed with its app.
  const mayEdit = model.canWrite.value && (object === undefined || object.appId === "");
  return (
    <>
      <Title data={data} answer={answer} model={model} isStale={isStale} />
      {explanation !== undefined && <Why explanation={explanation} />}
      {object !== undefined && <ObjectActions model={model} object={object} />}
      {app !== undefined && <AppActions model={model} region={region} view={app} />}
      {explanation !== undefined && <Sides explanation={explanation} />}
      {app !== undefined && <Releases model={model} region={region} view={app} />}
      {object !== undefined && hasPods(model, object) && (
        <Pods model={model} object={object} isStale={isStale} />
      )}
      {model.canReadLogs.value && object?.ref?.kind === ObjectKind.DEPLOYMENT && isRunning(object) && (
        <Logs
          model={model}
          what={{ region, target: { case: "deploymentId", value: id } }}
          pods={podNames([object])}
        />
      )}
      {model.canReadLogs.value && app !== undefined && (
        <Logs
          model={model}
          what={{ region, target: { case: "appId", value: id } }}
          pods={podNames(app.deployments)}
        />
      )}
      <History model={model} events={data.events.value ?? []} />
      {answer.document !== "" && (
        <Section
          title="Document"
          extra={
            mayEdit && (
              <Link model={model} to={{ view: "apply", region, of: { kind, id } }}>
                Edit
              </Link>
            )
          }
        >
          <pre>{answer.document}</pre>
        </Section>
      )}
      {object?.ref !== undefined && isRunning(object) && (
        <Manifests model={model} of={object.ref} version={object.version} />
      )}
    </>
  );
}

function isRunning({ desired }: ObjectView): boolean {
  return desired === Desired.RUNNING;
}

function podNames(objects: readonly ObjectView[]): readonly string[] {
  return objects.flatMap(({ deployment }) => deployment?.instances.map(({ k8sName }) => k8sName) ?? []);
}

function hasPods(model: Model, { ref }: ObjectView): boolean {
  return model.kinds.value.some(({ kind, hasPods: has }) => kind === ref?.kind && has);
}

function Title({
  data,
  answer,
  model,
  isStale,
}: {
  readonly data: ObjectData;
  readonly answer: ExplainObjectResponse;
  readonly model: Model;
  readonly isStale: boolean;
}) {
  const { object, app } = answer;
  const name = object === undefined ? app && appName(app) : objectName(object);
  const pods = object && podCounts(object, hasPods(model, object));
  return (
    <>
      <h1>
        {name} <span class="kind">{data.kind}</span>
      </h1>
      <dl class="facts">
        <div>
          <dt>Id</dt>
          <dd>
            <code>{data.id}</code>
          </dd>
        </div>
        {(object ?? app) !== undefined && (
          <div>
            <dt>State</dt>
            <dd>
              <State word={object ? phaseWord(object.phase) : appWord(app)} isStale={isStale} />
            </dd>
          </div>
        )}
        {pods !== undefined && (
          <div>
            <dt>Pods</dt>
            <dd>
              {pods.ready} of {pods.wanted} ready
            </dd>
          </div>
        )}
        {object !== undefined && (
          <div>
            <dt>Version</dt>
            <dd>
              {String(object.version)}
              {object.settled ? "" : ", not yet processed by the agent"}
            </dd>
          </div>
        )}
        {object !== undefined && object.appId !== "" && (
          <div>
            <dt>App</dt>
            <dd>
              <Link model={model} to={{ view: "object", region: data.region, kind: "app", id: object.appId }}>
                {object.appId}
              </Link>
            </dd>
          </div>
        )}
        {object !== undefined && object.secretNames.length > 0 && (
          <div>
            <dt>Secrets</dt>
            <dd>{object.secretNames.join(", ")}</dd>
          </div>
        )}
      </dl>
    </>
  );
}

function Why({ explanation }: { readonly explanation: Explanation }) {
  const { cause, summary, reason, remedy } = explanation;
  return (
    <section class={`why ${causeTone(cause)}`} aria-label="Why">
      <p class="answer">{summary}</p>
      {reason !== "" && <blockquote>{reason}</blockquote>}
      {remedy !== "" && <p class="remedy">{remedy}</p>}
      <p class="faint">
        Cause <code>{cause}</code>
      </p>
    </section>
  );
}

/** What is wanted and what was last reported, side by side. */
function Sides({ explanation }: { readonly explanation: Explanation }) {
  const { desired, applied, live, differences } = explanation;
  const rows = differences.map(({ field, desired: wanted, live: found }) => (
    <tr key={field} class="differs">
      <th scope="row">{field}</th>
      <td>{wanted}</td>
      <td>{found}</td>
    </tr>
  ));
  return (
    <Section title="Desired and live">
      <div class="scroll">
        <table class="sides">
          <thead>
            <tr>
              <td class="corner" />
              <th scope="col">Desired</th>
              <th scope="col">Live</th>
            </tr>
          </thead>
          <tbody>
            <tr>
              <th scope="row">Summary</th>
              <td>{desired}</td>
              <td>{live}</td>
            </tr>
            {rows}
            {applied !== "" && (
              <tr>
                <th scope="row">Applied</th>
                <td colSpan={2}>{applied}</td>
              </tr>
            )}
          </tbody>
        </table>
      </div>
    </Section>
  );
}
