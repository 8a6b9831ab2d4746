// How a page asks for an action, sends it and says how it went.
import { ConnectError } from "@connectrpc/connect";
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useId, useRef } from "preact/hooks";
import type { Model } from "./model.ts";

/** How an action went: nothing yet, being sent, done, or refused. */
export type Progress =
  | { readonly kind: "idle" | "busy" }
  | { readonly kind: "done" | "refused"; readonly text: string };

export function useAction(model: Model) {
  const progress = useSignal<Progress>({ kind: "idle" });
  /** Resolves to whether it was done. */
  const run = async (work: () => Promise<string>): Promise<boolean> => {
    if (progress.value.kind === "busy") return false;
    progress.value = { kind: "busy" };
    try {
      progress.value = { kind: "done", text: await work() };
      return true;
    } catch (error) {
      const text = ConnectError.from(error).rawMessage;
      progress.value = model.fail(error) ? { kind: "idle" } : { kind: "refused", text };
      return false;
    }
  };
  return { progress: progress.value, run };
}

export function Outcome({ progress }: { readonly progress: Progress }) {
  if (progress.kind !== "done" && progress.kind !== "refused") return null;
  const isRefused = progress.kind === "refused";
  return (
    <span class={isRefused ? "outcome bad" : "outcome faint"} role={isRefused ? "alert" : "status"}>
      {progress.text}
    </span>
  );
}

export interface ConfirmedProps {
  readonly model: Model;
  /** On the button that opens the question; `title` names it where several look the same. */
  readonly label: string;
  readonly title?: string;
  readonly question: ComponentChildren;
  /** Has to be typed: what happens cannot be undone. */
  readonly word?: string;
  /** On the button that does it. */
  readonly confirm: string;
  /** Nothing is left to be done afterwards. */
  readonly isOnce?: boolean;
  /** Resolves to what was done. */
  send(): Promise<string>;
}

/** A button that asks before it does something. */
export function Confirmed(props: ConfirmedProps) {
  const { model, label, title, isOnce } = props;
  const isOpen = useSignal(false);
  const button = useRef<HTMLButtonElement>(null);
  const wasOpen = useRef(false);
  const { progress, run } = useAction(model);
  useEffect(() => {
    if (wasOpen.current && !isOpen.value) button.current?.focus();
    wasOpen.current = isOpen.value;
  }, [isOpen.value]);
  if (isOnce && progress.kind === "done") return <Outcome progress={progress} />;
  if (isOpen.value)
    return (
      <Question
        {...props}
        progress={progress}
        onCancel={() => (isOpen.value = false)}
        onConfirm={() => void run(props.send).then((isDone) => (isOpen.value = !isDone))}
      />
    );
  return (
    <>
      <button type="button" ref={button} aria-label={title} onClick={() => (isOpen.value = true)}>
        {label}
      </button>
      <Outcome progress={progress} />
    </>
  );
}

function Question(
  props: ConfirmedProps & {
    readonly progress: Progress;
    onCancel(): void;
    onConfirm(): void;
  },
) {
  const { question, word, confirm, progress, onCancel, onConfirm } = props;
  const typed = useSignal("");
  const first = useRef<HTMLElement>(null);
  const name = useId();
  useEffect(() => first.current?.focus(), []);
  const isTyped = word === undefined || typed.value === word;
  return (
    <form
      class="question"
      aria-labelledby={name}
      onSubmit={(event) => {
        event.preventDefault();
        if (isTyped) onConfirm();
      }}
      onKeyDown={(event) => {
        if (event.key === "Escape") onCancel();
      }}
    >
      <p id={name}>{question}</p>
      {word !== undefined && (
        <label>
          <span>
            Type <code>{word}</code> to confirm
          </span>
          <input
            type="text"
            ref={(input) => {
              first.current = input;
            }}
            autocomplete="off"
            spellcheck={false}
            value={typed.value}
            onInput={(event) => (typed.value = event.currentTarget.value)}
          />
        </label>
      )}
      <div class="buttons">
        <button
          type="submit"
          class={word === undefined ? "primary" : "primary danger"}
          ref={(button) => {
            if (word === undefined) first.current = button;
          }}
          disabled={!isTyped || progress.kind === "busy"}
        >
          {confirm}
        </button>
        <button type="button" onClick={onCancel}>
          Cancel
        </button>
        <Outcome progress={progress} />
      </div>
    </form>
  );
}
