// What a token with the role read-write may do with an object or an app. Others do not see it. An object is changed only if nobody
// changed it since it was shown. The version of an app also grows with each step of its releases, and is not asked for.
import { useSignal } from "@preact/signals";
import {
  type AppView,
  ObjectView_Desired as Desired,
  type ObjectView,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Release } from "../../gen/krane/admin/v1/app_pb.ts";
import type { BlockedDeletion } from "../../gen/krane/v1/agent_pb.ts";
import { Confirmed, Outcome, useAction } from "./action-form.tsx";
import type { Model } from "./model.ts";
import { appName, counted, objectName, podCounts } from "./words.ts";

/** Allows deletions of one region. A name has to be typed: they cannot be undone. */
export function AllowDeletions(props: {
  readonly model: Model;
  readonly region: string;
  readonly held: readonly BlockedDeletion[];
}) {
  const { model, region, held } = props;
  const [first] = held;
  if (first === undefined) return null;
  const isOne = held.length === 1;
  const many = counted(held.length, "deletion");
  return (
    <Confirmed
      model={model}
      label={isOne ? "Allow…" : `Allow ${many}…`}
      title={isOne ? `Allow the deletion of ${first.key}` : `Allow ${many} in ${region}`}
      question={
        isOne
          ? "The agent then deletes it from its cluster."
          : `The agent of ${region} then deletes all of them.`
      }
      word={isOne ? first.key : region}
      confirm={isOne ? "Allow the deletion" : `Allow ${many}`}
      isOnce
      send={async () => {
        for (const { controller, key } of held) await model.api.releaseDeletion({ region, controller, key });
        const what = isOne ? "it" : "them";
        return `Allowed. The agent deletes ${what} after its next report.`;
      }}
    />
  );
}

export function ObjectActions({ model, object }: { readonly model: Model; readonly object: ObjectView }) {
  const { ref, version, desired, appId } = object;
  // The releases of an app are changed with their app.
  if (!model.canWrite.value || ref === undefined || desired !== Desired.RUNNING || appId !== "") return null;
  const kind = model.kinds.value.find((each) => each.kind === ref.kind);
  const pods = podCounts(object, kind?.hasPods ?? false);
  const send = async (replicas: number) => {
    const { replicasBefore } = await model.api.scaleObject({ ref, replicas, expectedVersion: version });
    return scaledText(replicasBefore, replicas);
  };
  return (
    <div class="toolbar">
      {pods !== undefined && <Scale model={model} wanted={pods.wanted} send={send} />}
      <Confirmed
        model={model}
        label="Delete…"
        question={`Deletes this ${kind?.name ?? "object"} and everything of it in the cluster. This cannot be undone.`}
        word={objectName(object)}
        confirm="Delete"
        send={async () => {
          await model.api.deleteObject({ ref, expectedVersion: version });
          return "Its deletion is ordered.";
        }}
      />
    </div>
  );
}

export function AppActions(props: {
  readonly model: Model;
  readonly region: string;
  readonly view: AppView;
}) {
  const { model, region, view } = props;
  const { app } = view;
  const { template } = app?.spec ?? {};
  if (!model.canWrite.value || app?.spec === undefined || template === undefined) return null;
  const { paused } = app;
  const which = { region, id: template.deploymentId };
  const scale = async (replicas: number) => {
    const { spec, version: expectedVersion = 0n } = (await model.api.getApp(which)).app?.app ?? {};
    if (spec?.template === undefined) return "";
    const scaled = { ...spec, template: { ...spec.template, replicas } };
    await model.api.applyApp({ region, spec: scaled, expectedVersion });
    return scaledText(spec.template.replicas, replicas);
  };
  return (
    <div class="toolbar">
      <Scale model={model} wanted={template.replicas} send={scale} />
      {!paused && <ReleaseImage model={model} region={region} view={view} />}
      {!paused && (
        <Confirmed
          model={model}
          label="Restart…"
          question="Starts a new release of the same program, with the newest secrets of its environment."
          confirm="Restart"
          send={async () => {
            const { release } = await model.api.releaseApp({
              ...which,
              change: { case: "restart", value: {} },
            });
            return startedText(release);
          }}
        />
      )}
      <Confirmed
        model={model}
        label={paused ? "Resume releases…" : "Pause releases…"}
        question={
          paused
            ? "Resumes its releases. What was applied meanwhile is released now."
            : "No release starts or becomes current until they are resumed. What runs keeps running."
        }
        confirm={paused ? "Resume" : "Pause"}
        send={async () => {
          const { release } = await model.api.pauseApp({ ...which, paused: !paused });
          return paused ? `Resumed. ${release > 0 ? startedText(release) : ""}` : "Paused.";
        }}
      />
      <Confirmed
        model={model}
        label="Delete…"
        question="Deletes this app with all of its releases, and everything of them in the cluster. This cannot be undone."
        word={appName(view)}
        confirm="Delete"
        send={async () => {
          await model.api.deleteApp(which);
          return "The deletion of its deployments is ordered.";
        }}
      />
    </div>
  );
}

/** Goes back to what a release ran. */
export function RollBack(props: {
  readonly model: Model;
  readonly region: string;
  readonly view: AppView;
  readonly release: Release;
}) {
  const { model, region, view, release } = props;
  const { number, template } = release;
  const id = view.app?.spec?.template?.deploymentId ?? "";
  return (
    <Confirmed
      model={model}
      label="Roll back…"
      title={`Roll back to release ${number}`}
      question={
        <>
          Runs what release {number} ran again, in its pods if they still run, else as a new release with the
          newest secrets: <code>{template?.image}</code>
        </>
      }
      confirm={`Roll back to ${number}`}
      send={async () => {
        const { release: started, returnedTo } = await model.api.releaseApp({
          ...{ region, id },
          change: { case: "undo", value: { number } },
        });
        return returnedTo > 0 ? `Traffic moves back to release ${returnedTo}.` : startedText(started);
      }}
    />
  );
}

function startedText(release: number): string {
  return release > 0 ? `Release ${release} is starting.` : "It already runs; no release is needed.";
}

function scaledText(before: number, after: number): string {
  return `Scaled from ${before} to ${after}.`;
}

function ReleaseImage({
  model,
  region,
  view,
}: {
  readonly model: Model;
  readonly region: string;
  readonly view: AppView;
}) {
  const { progress, run } = useAction(model);
  const { deploymentId: id = "", image = "" } = view.app?.spec?.template ?? {};
  const typed = useSignal(image);
  const send = (event: Event) => {
    event.preventDefault();
    const value = typed.value.trim();
    void run(async () => {
      const change = { case: "image", value } as const;
      const { release } = await model.api.releaseApp({ region, id, change });
      return startedText(release);
    });
  };
  const isSame = typed.value.trim() === image || typed.value.trim() === "";
  return (
    <form class="action wide" onSubmit={send}>
      <label>
        Image
        <input
          type="text"
          autocomplete="off"
          spellcheck={false}
          value={typed.value}
          onInput={(event) => (typed.value = event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={isSame || progress.kind === "busy"}>
        Release
      </button>
      <Outcome progress={progress} />
    </form>
  );
}

function Scale(props: {
  readonly model: Model;
  readonly wanted: number;
  send(replicas: number): Promise<string>;
}) {
  const { model, wanted, send } = props;
  const { progress, run } = useAction(model);
  const submit = (event: Event) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("replicas") as HTMLInputElement;
    const replicas = field.valueAsNumber;
    if (Number.isInteger(replicas)) void run(() => send(replicas));
  };
  return (
    <form class="action" onSubmit={submit}>
      <label>
        Pods
        <input
          type="number"
          name="replicas"
          min={0}
          max={10_000}
          step={1}
          required
          defaultValue={String(wanted)}
        />
      </label>
      <button type="submit" disabled={progress.kind === "busy"}>
        Scale
      </button>
      <Outcome progress={progress} />
    </form>
  );
}
