// What happened to an object, an app or an environment, newest first.
import { useSignal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import type { Event } from "../../gen/krane/admin/v1/admin_pb.ts";
import { type Line, linesOf } from "./events.ts";
import type { Model } from "./model.ts";
import { Age, Section } from "./parts.tsx";
import { counted, eventText } from "./words.ts";

export function History({ model, events }: { readonly model: Model; readonly events: readonly Event[] }) {
  return (
    <Section title="History">
      {events.length === 0 ? (
        <p class="calm-line">Nothing is recorded.</p>
      ) : (
        <ol class="history">
          {linesOf(events).map((line) => (
            // The oldest of it stays while newer ones come.
            <Lines key={String(line.events.at(-1)?.entry)} model={model} line={line} />
          ))}
        </ol>
      )}
    </Section>
  );
}

function Lines({ model, line }: { readonly model: Model; readonly line: Line }) {
  const isOpen = useSignal(false);
  const [newest, ...older] = line.events;
  if (newest === undefined) return null;
  return (
    <>
      <One model={model} event={newest}>
        {older.length > 0 && (
          <button
            type="button"
            class="link"
            aria-expanded={isOpen.value}
            onClick={() => (isOpen.value = !isOpen.value)}
          >
            {isOpen.value ? "Hide" : "Show"} {counted(older.length, "older report")}
          </button>
        )}
      </One>
      {isOpen.value && older.map((event) => <One key={String(event.entry)} model={model} event={event} />)}
    </>
  );
}

function One(props: { readonly model: Model; readonly event: Event; readonly children?: ComponentChildren }) {
  const { model, event, children } = props;
  const { text, tone } = eventText(event);
  return (
    <li class={`event ${tone}`}>
      <Age model={model} atMs={event.atMs} suffix=" ago" />
      <span class="by">{event.by}</span>
      <span>
        {text}
        {event.outcome !== "" && <span class="outcome"> {event.outcome}</span>} {children}
      </span>
      <span class="faint">{event.version === 0n ? "" : `v${event.version}`}</span>
    </li>
  );
}
