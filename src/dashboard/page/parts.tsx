// The small parts that all views are made of.
import type { ComponentChildren } from "preact";
import { exactTime, isoTime } from "./browser.ts";
import type { Model } from "./model.ts";
import { type Route, urlOf } from "./route.ts";
import { ageText, type Word } from "./words.ts";

export interface ViewProps {
  readonly model: Model;
}

/** A link to another view, which opens without loading the page again. */
export function Link(props: {
  readonly model: Model;
  readonly to: Exclude<Route, { view: "unknown" }>;
  readonly children: ComponentChildren;
  readonly class?: string;
  /** "within": the page is below it. */
  readonly isCurrent?: boolean | "within";
}) {
  const { model, to, children, isCurrent } = props;
  const open = (event: MouseEvent) => {
    // With a modifier, the browser opens a tab or a window.
    if (event.ctrlKey || event.metaKey || event.shiftKey || event.altKey || event.button !== 0) return;
    event.preventDefault();
    model.navigate(to);
  };
  return (
    <a
      href={urlOf(to)}
      class={props.class}
      aria-current={isCurrent === "within" ? "true" : isCurrent ? "page" : undefined}
      onClick={open}
    >
      {children}
    </a>
  );
}

/** A state as a word with a mark; the colour alone never says it. `isStale`: it may have changed since. */
export function State({ word, isStale = false }: { readonly word: Word; readonly isStale?: boolean }) {
  const tone = isStale && word.tone === "good" ? "stale" : word.tone;
  return (
    <span class={`state ${tone}`}>
      <span class="mark" aria-hidden="true" />
      {word.text}
    </span>
  );
}

/** How long ago; the exact time, in the reader's zone, on hover. */
export function Age({
  model,
  atMs,
  suffix = "",
}: {
  readonly model: Model;
  readonly atMs: number | bigint;
  readonly suffix?: string;
}) {
  const ms = Number(atMs);
  if (ms === 0) return <span class="faint">never</span>;
  const text = ageText(ms, model.nowMs());
  return (
    <time dateTime={isoTime(ms)} title={exactTime(ms)}>
      {text === "now" ? "just now" : `${text}${suffix}`}
    </time>
  );
}

export function Notice({
  tone,
  children,
}: {
  readonly tone: "bad" | "busy" | "calm";
  readonly children: ComponentChildren;
}) {
  return (
    <p class={`notice ${tone}`} role={tone === "bad" ? "alert" : "status"}>
      {children}
    </p>
  );
}

/** What a page shows that has nothing else to show; `isBelow` the title of the page. */
export function Lone(props: {
  readonly title: string;
  readonly isBelow?: boolean;
  readonly children: ComponentChildren;
}) {
  const { title, isBelow = false, children } = props;
  return (
    <div class="lone">
      {isBelow ? <h2>{title}</h2> : <h1>{title}</h1>}
      {children}
    </div>
  );
}

export function Loading() {
  return (
    <p class="loading" role="status">
      Loading…
    </p>
  );
}

export function Section({
  title,
  extra,
  children,
}: {
  readonly title: string;
  readonly extra?: ComponentChildren;
  readonly children: ComponentChildren;
}) {
  return (
    <section aria-label={title}>
      <header class="section">
        <h2>{title}</h2>
        {extra}
      </header>
      {children}
    </section>
  );
}
