// The rows of a region's list: objects and apps, those in trouble first, and then the environments. Pure.
import {
  type AppView,
  type Environment,
  type KindWords,
  type ObjectView,
  ObjectView_Phase as Phase,
} from "../../gen/krane/admin/v1/admin_pb.ts";
import { Release_Phase as ReleasePhase } from "../../gen/krane/admin/v1/app_pb.ts";
import type { Filter } from "./route.ts";
import {
  appName,
  appWord,
  counted,
  objectName,
  phaseWord,
  podCounts,
  specText,
  type Tone,
  tellingRelease,
  troubleText,
  type Word,
} from "./words.ts";

export interface ListedRow {
  readonly key: string;
  /** As in URLs: "deployment". */
  readonly kind: string;
  readonly plural: string;
  readonly id: string;
  /** In the cluster. */
  readonly name: string;
  readonly state: Word;
  readonly pods: string;
  readonly environment: string;
  readonly image: string;
  readonly reason: string;
  /** What a search looks through. */
  readonly text: string;
}

/** The row of each object that was listed before: of thousands of objects, few change at a time. */
export type KnownRows = WeakMap<ObjectView, ListedRow>;

const order: Readonly<Record<Tone, number>> = { bad: 0, busy: 1, good: 2, calm: 3 };

export function listedRows(content: {
  readonly objects: readonly ObjectView[];
  readonly apps: readonly AppView[];
  readonly environments: readonly Environment[];
  readonly kinds: readonly KindWords[];
  readonly known?: KnownRows;
}): readonly ListedRow[] {
  const { known = new WeakMap() } = content;
  const byKind = new Map(content.kinds.map((words) => [words.kind, words]));
  const rows = [
    ...content.apps.map(rowOfApp),
    ...content.objects
      .filter(({ phase }) => phase !== Phase.DELETED)
      .map((object) => {
        const row = known.get(object) ?? rowOfObject(object, byKind.get(object.ref?.kind ?? 0));
        known.set(object, row);
        return row;
      }),
  ];
  const environments = rowsOfEnvironments(content.environments, rows);
  return [...sorted(rows), ...sorted(environments)];
}

function sorted(rows: readonly ListedRow[]): readonly ListedRow[] {
  return rows.toSorted(
    (a, b) => order[a.state.tone] - order[b.state.tone] || compare(a.name, b.name) || compare(a.key, b.key),
  );
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}

function rowOfObject(object: ObjectView, words: KindWords | undefined): ListedRow {
  const { phase } = object;
  const pods = podCounts(object, words?.hasPods ?? false);
  return searchable({
    kind: words?.name ?? "object",
    plural: words?.plural ?? "objects",
    id: object.ref?.id ?? "",
    name: objectName(object),
    state: phaseWord(phase),
    pods: pods === undefined ? "" : `${pods.ready}/${pods.wanted}`,
    environment: specText(object, "environmentId"),
    image: specText(object, "image"),
    reason: troubleText(object),
  });
}

function rowOfApp(view: AppView): ListedRow {
  const { app } = view;
  const template = app?.spec?.template;
  const current = app?.releases.find(({ phase }) => phase === ReleasePhase.CURRENT);
  return searchable({
    kind: "app",
    plural: "apps",
    id: template?.deploymentId ?? "",
    name: appName(view),
    state: appWord(view),
    pods: "",
    environment: template?.environmentId ?? "",
    image: current?.template?.image ?? template?.image ?? "",
    reason: tellingRelease(view)?.reason ?? "",
  });
}

/** An environment is as its objects are. */
function rowsOfEnvironments(
  environments: readonly Environment[],
  rows: readonly ListedRow[],
): readonly ListedRow[] {
  const counts = new Map<string, { all: number; bad: number; busy: number }>();
  for (const { environment, state } of rows) {
    const count = counts.get(environment) ?? { all: 0, bad: 0, busy: 0 };
    count.all += 1;
    if (state.tone === "bad" || state.tone === "busy") count[state.tone] += 1;
    counts.set(environment, count);
  }
  return environments.map(({ id, secretNames }) => {
    const { all, bad, busy } = counts.get(id) ?? { all: 0, bad: 0, busy: 0 };
    const tone = bad > 0 ? "bad" : busy > 0 ? "busy" : all > 0 ? "good" : "calm";
    const trouble = [bad > 0 ? `${bad} failed` : "", busy > 0 ? `${busy} not ready` : ""];
    return searchable({
      kind: "environment",
      plural: "environments",
      id,
      name: id,
      state: { text: [counted(all, "object"), ...trouble].filter(Boolean).join(", "), tone },
      pods: "",
      environment: "",
      image: secretNames.length === 0 ? "" : counted(secretNames.length, "secret"),
      reason: "",
    });
  });
}

function searchable(row: Omit<ListedRow, "key" | "text">): ListedRow {
  const { kind, id, name, state, environment, image, reason } = row;
  const text = [kind, id, name, state.text, environment, image, reason].join("\n").toLowerCase();
  return { ...row, key: `${kind}/${id}`, text };
}

/** Those with every word of the search, in any order. */
export function matching(
  rows: readonly ListedRow[],
  { kind, troubledOnly, text }: Filter,
): readonly ListedRow[] {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  return rows.filter(
    (row) =>
      (kind === "" || kind === row.plural) &&
      !(troubledOnly && (row.state.tone === "good" || row.state.tone === "calm")) &&
      words.every((word) => row.text.includes(word)),
  );
}

/** "12 Ready, 2 Failed, 1 Waiting". */
export function summaryOf(rows: readonly ListedRow[]): string {
  const counts = new Map<string, { count: number; tone: Tone }>();
  for (const { kind, state } of rows) {
    if (kind === "app" || kind === "environment") continue;
    const seen = counts.get(state.text) ?? { count: 0, tone: state.tone };
    counts.set(state.text, { ...seen, count: seen.count + 1 });
  }
  return [...counts]
    .toSorted(([, a], [, b]) => order[a.tone] - order[b.tone] || b.count - a.count)
    .map(([text, { count }]) => `${count} ${text.toLowerCase()}`)
    .join(" · ");
}
