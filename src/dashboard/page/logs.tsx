// The logs of an object's pods. Nothing is read before somebody asks for it, and nothing after the section is closed.
import { useSignal } from "@preact/signals";
import { Component } from "preact";
import { useEffect, useLayoutEffect, useMemo, useRef } from "preact/hooks";
import { dayTime, isoTime } from "./browser.ts";
import { type LogLine, type LogTexts, linesMax } from "./log-lines.ts";
import { LogReading, type LogTarget } from "./log-reading.ts";
import type { Model } from "./model.ts";
import { Notice, Section } from "./parts.tsx";
import { counted } from "./words.ts";

const tails = [100, 500, linesMax] as const;

export function Logs(props: {
  readonly model: Model;
  readonly what: LogTarget;
  readonly pods: readonly string[];
}) {
  const { model, what, pods } = props;
  const reading = useMemo(() => new LogReading(model, what), []);
  useEffect(() => () => reading.close(), []);
  const isOpen = reading.state.value.kind !== "closed";
  return (
    <Section
      title="Logs"
      extra={
        <button
          type="button"
          class="link"
          aria-expanded={isOpen}
          onClick={() => (isOpen ? reading.close() : reading.open())}
        >
          {isOpen ? "Hide logs" : "Show logs"}
        </button>
      }
    >
      {isOpen && (
        <>
          <Choices reading={reading} pods={pods} />
          <Progress reading={reading} />
          <Lines texts={reading.texts.value} isNamed={pods.length > 1} />
        </>
      )}
    </Section>
  );
}

function Choices({ reading, pods }: { readonly reading: LogReading; readonly pods: readonly string[] }) {
  const { podName, container, previous, tailLines } = reading.choice.value;
  const names = [...new Set([...pods, ...(podName === "" ? [] : [podName])])].toSorted();
  const { kind } = reading.state.value;
  return (
    <div class="filters">
      {kind === "paused" ? (
        <button type="button" onClick={() => reading.resume()}>
          Continue
        </button>
      ) : (
        <button
          type="button"
          disabled={kind === "refused" || kind === "ended"}
          onClick={() => reading.pause()}
        >
          Pause
        </button>
      )}
      {names.length > 1 && (
        <label>
          Pod{" "}
          <select value={podName} onChange={(event) => reading.open({ podName: event.currentTarget.value })}>
            <option value="">all</option>
            {names.map((name) => (
              <option key={name} value={name}>
                {name}
              </option>
            ))}
          </select>
        </label>
      )}
      <label>
        Container{" "}
        <input
          type="text"
          size={12}
          placeholder="the only one"
          autocomplete="off"
          spellcheck={false}
          value={container}
          onChange={(event) => reading.open({ container: event.currentTarget.value.trim() })}
        />
      </label>
      <label>
        Last lines{" "}
        <select
          value={tailLines}
          onChange={(event) => reading.open({ tailLines: Number(event.currentTarget.value) })}
        >
          {tails.map((lines) => (
            <option key={lines} value={lines}>
              {lines}
            </option>
          ))}
        </select>
      </label>
      <label>
        <input
          type="checkbox"
          checked={previous}
          onChange={(event) => reading.open({ previous: event.currentTarget.checked })}
        />{" "}
        Before the last restart
      </label>
    </div>
  );
}

function Progress({ reading }: { readonly reading: LogReading }) {
  const { value: state } = reading.state;
  if (state.kind === "refused")
    return (
      <>
        <Notice tone="bad">{state.reason}</Notice>
        <p>
          <button type="button" onClick={() => reading.open()}>
            Try again
          </button>
        </p>
      </>
    );
  if (state.kind === "cut")
    return <Notice tone="busy">The stream was cut: {state.reason}. Reconnecting…</Notice>;
  const texts = {
    closed: "",
    opening: "Waiting for lines…",
    following: "New lines appear below.",
    paused: "Paused: nothing is read.",
    ended: "The log was read to its end.",
  } as const;
  return (
    <p class="faint" role="status">
      {texts[state.kind]}
    </p>
  );
}

/** At its end, it stays there as lines come. */
function Lines({ texts, isNamed }: { readonly texts: LogTexts; readonly isNamed: boolean }) {
  const { lines, gone } = texts;
  const box = useRef<HTMLDivElement>(null);
  const isAtEnd = useSignal(true);
  useLayoutEffect(() => {
    const { current } = box;
    if (current !== null && isAtEnd.peek()) current.scrollTop = current.scrollHeight;
  }, [lines]);
  if (lines.length === 0) return null;
  return (
    <div
      class="log"
      role="log"
      aria-label="Lines"
      // A screen reader would never come to an end.
      aria-live="off"
      // biome-ignore lint/a11y/noNoninteractiveTabindex: without it, the keyboard could not scroll the lines in every browser.
      tabIndex={0}
      ref={box}
      onScroll={({ currentTarget: { scrollHeight, scrollTop, clientHeight } }) =>
        (isAtEnd.value = scrollHeight - scrollTop - clientHeight < 8)
      }
    >
      {gone > 0 && (
        <div class="note">
          {counted(gone, "older line")} left out: the page keeps {counted(linesMax, "line")}.
        </div>
      )}
      {lines.map((line) => (
        <Line key={line.number} line={line} isNamed={isNamed} />
      ))}
    </div>
  );
}

/** Drawn once, however many lines follow. */
class Line extends Component<{ readonly line: LogLine; readonly isNamed: boolean }> {
  override shouldComponentUpdate({ isNamed }: { readonly isNamed: boolean }): boolean {
    return isNamed !== this.props.isNamed;
  }

  override render() {
    const { line, isNamed } = this.props;
    const { podName, timeMs, text, isNote } = line;
    return (
      <div class={isNote ? "note" : undefined}>
        {timeMs > 0 && (
          <time dateTime={isoTime(timeMs)} title={isoTime(timeMs)}>
            {dayTime(timeMs)}
          </time>
        )}
        {isNamed && podName !== "" && <span class="pod"> {podName}</span>} {text}
      </div>
    );
  }
}
