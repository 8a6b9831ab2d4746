// What happened to an object, an app or an environment, newest first.
import type { Event } from "../../gen/krane/admin/v1/admin_pb.ts";
import type { Model } from "./model.ts";
import { Age, Section } from "./parts.tsx";
import { eventText } from "./words.ts";

export function History({ model, events }: { readonly model: Model; readonly events: readonly Event[] }) {
  return (
    <Section title="History">
      {events.length === 0 ? (
        <p class="calm-line">Nothing is recorded.</p>
      ) : (
        <ol class="history">
          {events.map((event) => {
            const { text, tone } = eventText(event);
            return (
              <li key={String(event.entry)} class={`event ${tone}`}>
                <Age model={model} atMs={event.atMs} suffix=" ago" />
                <span class="by">{event.by}</span>
                <span>
                  {text}
                  {event.outcome !== "" && <span class="outcome"> {event.outcome}</span>}
                </span>
                <span class="faint">{event.version === 0n ? "" : `v${event.version}`}</span>
              </li>
            );
          })}
        </ol>
      )}
    </Section>
  );
}
