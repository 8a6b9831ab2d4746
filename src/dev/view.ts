// The screen of `krane dev` as a pure function: what is known in, lines out, none of them wider or more than
// the terminal has room for. The table of objects comes before everything else when room is short.

import { printable } from "../telemetry/printable.ts";
import { actions } from "./actions.ts";
import { statusText } from "./change-lines.ts";
import { type DevObject, type DevState, isHealthy } from "./dev-state.ts";

export interface ViewModel {
  /** Where to look, by name. */
  readonly urls: Readonly<Record<string, string>>;
  readonly kubeconfigPath: string;
  /** Undefined where there was no place for one. */
  readonly cliContextPath: string | undefined;
  readonly region: string;
  /** Undefined before the first look. */
  readonly state: DevState | undefined;
  /** The id of the chosen object. */
  readonly chosen: string;
  /** What happened lately, oldest first. */
  readonly recent: readonly string[];
  readonly showsHelp: boolean;
}

export interface ViewSize {
  readonly columns: number;
  readonly rows: number;
  readonly colours: boolean;
}

const recentMax = 8;

export function renderView(model: ViewModel, size: ViewSize): readonly string[] {
  const clip = (line: string) => clipped(line, size.columns);
  const head = headLines(model).map(clip);
  const body = model.showsHelp ? helpLines.map(clip).slice(0, size.rows) : tableLines(model, size);
  const recent = model.recent.slice(-recentMax).map((line) => clip(`  ${printable(line)}`));
  const foot = footLines(size.columns);
  // What is left out first comes last here.
  let room = size.rows - body.length;
  const take = (lines: readonly string[]): readonly string[] => {
    if (lines.length === 0 || lines.length + 1 > room) return [];
    room -= lines.length + 1;
    return lines;
  };
  const shownFoot = take(foot);
  const shownHead = take(head);
  const shownRecent = take(recent.slice(-Math.max(0, room - 1)));
  return [shownHead, body, shownRecent, shownFoot]
    .filter((part) => part.length > 0)
    .flatMap((part, index) => (index === 0 ? [...part] : ["", ...part]));
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
  const heading = clipped(`  ${padded(titles)}LAST OUTCOME`, columns);
  if (lines.length === 0) lines.push(clipped("  nothing is asked for", columns));
  // The chosen one stays in sight where not all of them have room.
  const room = Math.max(0, rowsMax - 1);
  const chosenIndex = objects.findIndex(({ id }) => id !== "" && id === chosen);
  const first = Math.max(0, chosenIndex + 1 - room);
  return [heading, ...lines.slice(first, first + room)].slice(0, rowsMax);
}

function painted(object: DevObject, text: string): string {
  if (text === "") return "";
  const isTroubled = object.failing > 0 || object.reason !== "";
  const colour = isTroubled ? 31 : isHealthy(object) ? 32 : 33;
  return `\u001b[${colour}m${text}\u001b[0m`;
}

const keyTitles: readonly (readonly [key: string, title: string])[] = [
  ["up/down", "choose"],
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
  "A control plane asks for deployments, for the sentinels in front of them and for network policies; krane",
  "makes them so in the cluster and tells what runs.",
  "",
  "  + -   asks the control plane for more or fewer pods of the chosen object",
  "  n     asks for a new version of it: of a deployment a new one beside it, of a sentinel a new image",
  "  d     asks for its deletion",
  "  b     asks for what cannot be: krane says what is wrong with which field; again mends it",
  "  p     kills one of its pods: Kubernetes makes another, krane reports both",
  "  c     makes its image crash: krane reports what fails; again mends it",
  "  e     edits it with kubectl's means: krane puts it right at once",
  "  s     cuts the streams from the control plane: krane reconnects and goes on where it was",
  "",
  "A line shows the version that is desired, the one that was applied, the pods that are ready, and what came",
  "of krane's last attempt. A sentinel's pod counts once it was ready for 30 seconds; a policy has no pods.",
  "Use kubectl with the KUBECONFIG above, and krane with the KRANE_CONFIG, for things that have no key.",
  "",
  "Any key closes this page; q quits.",
];

function clipped(line: string, columns: number, isLast = true): string {
  if (line.length <= columns) return isLast ? line.trimEnd() : line;
  return columns <= 3 ? line.slice(0, columns) : `${line.slice(0, columns - 3)}...`;
}
