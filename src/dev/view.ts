// Renders the screen of `krane dev`, as a pure function from state to lines that fit the terminal. When space is short,
// a few rows of the table (or the help) have priority, then the keys, the addresses and what happened last, then more of
// the table.

import { printable } from "../telemetry/scrub.ts";
import { actions } from "./actions.ts";
import { statusText } from "./change-lines.ts";
import { type DevObject, type DevState, isHealthy } from "./dev-state.ts";

export interface ViewModel {
  /** By name. */
  readonly urls: Readonly<Record<string, string>>;
  readonly kubeconfigPath: string;
  /** Undefined if no file could be written. */
  readonly cliContextPath: string | undefined;
  readonly region: string;
  /** Undefined before the first poll. */
  readonly state: DevState | undefined;
  /** The id of the selected object. */
  readonly chosen: string;
  /** Recent events, oldest first. */
  readonly recent: readonly string[];
  /** The one of them that the last key led to. */
  readonly result?: string | undefined;
  readonly showsHelp: boolean;
}

export interface ViewSize {
  readonly columns: number;
  readonly rows: number;
  readonly colours: boolean;
}

const recentMax = 8;
/** A key whose result is not shown seems to do nothing. */
const recentRowsMin = 2;
/** The heading and some objects: less is no table. */
const bodyRowsMin = 6;

export function renderView(model: ViewModel, size: ViewSize): readonly string[] {
  const clip = (line: string) => clipped(line, size.columns);
  const page = model.showsHelp
    ? helpLines.flatMap((line) => wrapped(line, size.columns, helpIndent(line)))
    : undefined;
  const objectRows = Math.max(2, (model.state?.objects.length ?? 0) + 1);
  const bodyRows = page?.length ?? Math.min(objectRows, bodyRowsMin);
  let room = size.rows - bodyRows;
  const take = (lines: readonly string[]): readonly string[] => {
    if (lines.length === 0 || lines.length + 1 > room) return [];
    room -= lines.length + 1;
    return lines;
  };
  const foot = take(footLines(size.columns));
  const head = take(headLines(model).map(clip));
  const kept = page === undefined ? take(recentLines(model, size.columns, recentRowsMin)) : [];
  const bodyRoom = room + bodyRows;
  const body = page?.slice(0, bodyRoom) ?? tableLines(model, { ...size, rows: bodyRoom });
  room = bodyRoom - body.length + (kept.length === 0 ? 0 : kept.length + 1);
  const shownRecent = take(recentLines(model, size.columns, Math.min(recentMax, Math.max(0, room - 1))));
  return [head, body, shownRecent, foot]
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? [...part] : ["", ...part]));
}

/** The newest ones. The result of the last key stays while others follow it. */
function recentLines({ recent, result }: ViewModel, columns: number, rowsMax: number): readonly string[] {
  if (rowsMax === 0) return [];
  const rowsOf = (line: string) => wrapped(`  ${printable(line)}`, columns, "    ");
  const at = result === undefined ? -1 : recent.lastIndexOf(result);
  if (at < 0) return recent.slice(-recentMax).flatMap(rowsOf).slice(-rowsMax);
  const later = recent.slice(at + 1).flatMap(rowsOf);
  const own = rowsOf(recent[at] ?? "").slice(0, rowsMax);
  const earlier = recent.slice(0, at).flatMap(rowsOf);
  const laterCount = Math.min(later.length, rowsMax - own.length);
  const earlierCount = rowsMax - own.length - laterCount;
  return [
    ...earlier.slice(earlier.length - Math.min(earlier.length, earlierCount)),
    ...own,
    ...later.slice(later.length - laterCount),
  ];
}

function headLines({ region, state, urls, kubeconfigPath, cliContextPath }: ViewModel): readonly string[] {
  const addresses = Object.entries(urls).map(([name, url]) => `  ${name.padEnd(14)}${url}`);
  return [
    `krane dev, region ${region}, streams ${state?.stream ?? "not open"}`,
    ...addresses,
    `  export KUBECONFIG=${kubeconfigPath}`,
    ...(cliContextPath === undefined ? [] : [`  export KRANE_CONFIG=${cliContextPath}`]),
  ];
}

interface Column {
  readonly title: string;
  /** Below this width of the terminal the column is left out. */
  readonly columnsMin: number;
  readonly cell: (object: DevObject) => string;
}

const tableColumns: readonly Column[] = [
  { title: "KIND", columnsMin: 60, cell: ({ kind }) => kind },
  { title: "OBJECT", columnsMin: 0, cell: ({ key }) => printable(key) },
  { title: "ENVIRONMENT", columnsMin: 100, cell: ({ environment }) => printable(environment) },
  {
    title: "IMAGE",
    columnsMin: 120,
    cell: ({ image }) => printable(image.slice(image.lastIndexOf("/") + 1)),
  },
  { title: "DESIRED", columnsMin: 60, cell: ({ desiredVersion }) => `v${desiredVersion}` },
  { title: "APPLIED", columnsMin: 60, cell: ({ appliedVersion }) => `v${appliedVersion}` },
  { title: "READY", columnsMin: 0, cell: ({ pods }) => (pods ? `${pods.ready}/${pods.total}` : "-") },
];

function tableLines({ state, chosen }: ViewModel, size: ViewSize): readonly string[] {
  const { columns, rows: rowsMax, colours } = size;
  const objects = state?.objects ?? [];
  const shown = tableColumns.filter(({ columnsMin }) => columns >= columnsMin);
  const titles = shown.map(({ title }) => title);
  const rows = objects.map((object) => shown.map(({ cell }) => cell(object)));
  const widths = titles.map((title, index) =>
    Math.max(title.length, ...rows.map((cells) => cells[index]?.length ?? 0)),
  );
  const padded = (cells: readonly string[]) =>
    cells.map((text, index) => text.padEnd((widths[index] ?? 0) + 2)).join("");
  const lines = objects.map((object, index) => {
    const marker = object.id !== "" && object.id === chosen ? ">" : " ";
    const start = `${marker} ${padded(rows[index] ?? [])}`;
    const status = clipped(statusText(object), Math.max(0, columns - start.length));
    return clipped(start, columns, status === "") + (colours ? painted(object, status) : status);
  });
  if (lines.length === 0) lines.push(clipped("  no objects", columns));
  const heading = clipped(`  ${padded(titles)}LAST OUTCOME`, columns);
  // The selected object stays visible if not all of them fit.
  const isLong = lines.length >= rowsMax && rowsMax > 3;
  const room = Math.max(0, rowsMax - (isLong ? 2 : 1));
  const first = Math.max(0, objects.findIndex(({ id }) => id !== "" && id === chosen) + 1 - room);
  const visible = lines.slice(first, first + room);
  const range = clipped(`  ${first + 1} to ${first + visible.length} of ${lines.length} objects`, columns);
  return [heading, ...visible, ...(isLong ? [range] : [])].slice(0, rowsMax);
}

function painted(object: DevObject, text: string): string {
  if (text === "") return "";
  const isTroubled = object.failing > 0 || object.reason !== "";
  const colour = isTroubled ? 31 : isHealthy(object) ? 32 : 33;
  return `\u001b[${colour}m${text}\u001b[0m`;
}

const keyTitles: readonly (readonly [key: string, title: string])[] = [
  ["up/down", "select"],
  ...actions.map(({ key, title }) => [key, title] as const),
  ["?", "help"],
  ["q", "quit"],
];

/** As many keys on a line as fit. */
function footLines(columns: number): readonly string[] {
  const lines: string[] = [];
  for (const [key, title] of keyTitles) {
    const word = `${key} ${title}`;
    const last = lines.at(-1);
    if (last !== undefined && last.length + 3 + word.length <= columns) {
      lines[lines.length - 1] = `${last}   ${word}`;
    } else lines.push(clipped(`  ${word}`, columns));
  }
  return lines;
}

const helpLines: readonly string[] = [
  "The control plane requests deployments, the sentinels in front of them and network policies; krane applies them to the cluster and reports what is running.",
  "",
  "  + -   scale the selected object up or down",
  "  n     request a new version: a deployment gets a successor beside it, a sentinel a new image",
  "  d     delete it",
  "  b     request an invalid spec: krane reports which field is wrong; press again to fix it",
  "  p     kill one of its pods: Kubernetes replaces it, krane reports both",
  "  c     make its image crash: krane reports what fails; press again to fix it",
  "  e     edit it as kubectl would: krane repairs it at once",
  "  s     cut the streams from the control plane: krane reconnects and continues where it was",
  "  o     open the dashboard in a browser",
  "",
  "A row shows the desired version, the applied version, the ready pods, and the result of krane's last attempt. A sentinel's pod counts once it has been ready for 30 seconds; a policy has no pods.",
  "For everything else, use kubectl with the KUBECONFIG above, or krane with the KRANE_CONFIG.",
  "",
  "Any key closes this page; q quits.",
];

/** What follows a key stays below its explanation. */
function helpIndent(line: string): string {
  return /^ {2}\S.{5}/.test(line) ? " ".repeat(8) : "";
}

/** Breaks a line between words, and indents what follows. */
function wrapped(line: string, columns: number, indent: string): readonly string[] {
  const lines: string[] = [];
  let rest = line;
  while (rest.length > columns) {
    const at = rest.lastIndexOf(" ", columns);
    if (at <= indent.length) break;
    lines.push(rest.slice(0, at).trimEnd());
    rest = `${indent}${rest.slice(at + 1)}`;
  }
  return [...lines, clipped(rest, columns)];
}

function clipped(line: string, columns: number, isLast = true): string {
  if (line.length <= columns) return isLast ? line.trimEnd() : line;
  return columns <= 3 ? line.slice(0, columns) : `${line.slice(0, columns - 3)}...`;
}
