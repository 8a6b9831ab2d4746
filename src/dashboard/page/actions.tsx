// What a token with the role read-write may do on a page. Others do not see it.
import { ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import { ObjectView_Desired as Desired, type ObjectView } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { BlockedDeletion } from "../../gen/krane/v1/agent_pb.ts";
import type { Model } from "./model.ts";

/** How an action went: nothing yet, being sent, done, or refused. */
type Progress =
  | { readonly kind: "idle" | "busy" }
  | { readonly kind: "done" | "refused"; readonly text: string };

function useAction(model: Model) {
  const progress = useSignal<Progress>({ kind: "idle" });
  const run = async (work: () => Promise<string>) => {
    if (progress.value.kind === "busy") return;
    progress.value = { kind: "busy" };
    try {
      progress.value = { kind: "done", text: await work() };
    } catch (error) {
      if (!model.fail(error)) progress.value = { kind: "refused", text: ConnectError.from(error).rawMessage };
    }
  };
  return { progress: progress.value, run };
}

function Outcome({ progress }: { readonly progress: Progress }) {
  if (progress.kind !== "done" && progress.kind !== "refused") return null;
  const isRefused = progress.kind === "refused";
  return (
    <span class={isRefused ? "bad" : "faint"} role={isRefused ? "alert" : "status"}>
      {progress.text}
    </span>
  );
}

/** Allows a deletion. The name has to be typed: it cannot be undone. */
export function AllowDeletion(props: {
  readonly model: Model;
  readonly region: string;
  readonly held: BlockedDeletion;
}) {
  const { model, region, held } = props;
  const typed = useSignal("");
  const isOpen = useSignal(false);
  const { progress, run } = useAction(model);
  if (progress.kind === "done") return <Outcome progress={progress} />;
  if (!isOpen.value)
    return (
      <button
        type="button"
        aria-label={`Allow the deletion of ${held.key}`}
        onClick={() => (isOpen.value = true)}
      >
        Allow…
      </button>
    );
  const send = (event: Event) => {
    event.preventDefault();
    if (typed.value !== held.key) return;
    void run(async () => {
      await model.api.releaseDeletion({ region, controller: held.controller, key: held.key });
      return "Allowed. The agent deletes it after its next report.";
    });
  };
  return (
    <form class="action" onSubmit={send}>
      <label>
        Type <code>{held.key}</code> to have it deleted
        <input
          type="text"
          autocomplete="off"
          autofocus
          spellcheck={false}
          value={typed.value}
          onInput={(event) => (typed.value = event.currentTarget.value)}
        />
      </label>
      <button type="submit" disabled={typed.value !== held.key || progress.kind === "busy"}>
        Allow the deletion
      </button>
      <button type="button" onClick={() => (isOpen.value = false)}>
        Cancel
      </button>
      <Outcome progress={progress} />
    </form>
  );
}

/** Only if nobody changed the object since it was shown. */
export function Scale({
  model,
  object,
  wanted,
}: {
  readonly model: Model;
  readonly object: ObjectView;
  readonly wanted: number;
}) {
  const { progress, run } = useAction(model);
  const { ref, version, desired, appId } = object;
  // The releases of an app are scaled with their app.
  if (ref === undefined || desired !== Desired.RUNNING || appId !== "") return null;
  const send = (event: Event) => {
    event.preventDefault();
    const field = (event.currentTarget as HTMLFormElement).elements.namedItem("replicas") as HTMLInputElement;
    const replicas = field.valueAsNumber;
    if (!Number.isInteger(replicas)) return;
    void run(async () => {
      const { replicasBefore } = await model.api.scaleObject({ ref, replicas, expectedVersion: version });
      return `Scaled from ${replicasBefore} to ${replicas}.`;
    });
  };
  return (
    <form class="action" onSubmit={send}>
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
