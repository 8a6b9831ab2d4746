// Renders tables for people: columns as wide as their widest cell, no borders, no trailing spaces. Every cell goes
// through `printable`, so that no name can fake a row or inject terminal escapes.

import { printable } from "../../telemetry/scrub.ts";
import type { Paint, Tone } from "./colours.ts";

export type Cell = string | { readonly text: string; readonly tone: Tone | undefined };

const gap = "   ";
// A reason can be a page long; `describe` and -o json show all of it.
const cellCharsMax = 120;

export function renderTable(
  titles: readonly string[],
  rows: readonly (readonly Cell[])[],
  paint: Paint,
): string {
  const shown = [titles.map((text) => ({ text, tone: undefined })), ...rows.map((row) => row.map(show))];
  const widths = titles.map((_, column) =>
    Math.max(...shown.map((row) => lengthOf(row[column]?.text ?? ""))),
  );
  return shown
    .map((row) => {
      const last = row.findLastIndex(({ text }) => text !== "");
      const cells = row.slice(0, last + 1).map(({ text, tone }, column) => {
        const padding = column === last ? 0 : (widths[column] ?? 0) - lengthOf(text);
        return `${paint(text, tone)}${" ".repeat(padding)}`;
      });
      return `${cells.join(gap)}\n`;
    })
    .join("");
}

/** One `Name: value` line per field. Empty values are left out. */
export function renderFields(
  fields: readonly (readonly [name: string, value: Cell])[],
  paint: Paint,
): string {
  const rows = fields.map(([name, value]) => ({ name, ...show(value) })).filter(({ text }) => text !== "");
  const width = Math.max(0, ...rows.map(({ name }) => lengthOf(name))) + 1;
  return rows
    .map(({ name, text, tone }) => `${`${name}:`.padEnd(width)}${gap}${paint(text, tone)}\n`)
    .join("");
}

function show(cell: Cell): { readonly text: string; readonly tone: Tone | undefined } {
  const { text, tone } = typeof cell === "string" ? { text: cell, tone: undefined } : cell;
  const clean = printable(text);
  return { text: clean.length > cellCharsMax ? `${clean.slice(0, cellCharsMax)}…` : clean, tone };
}

function lengthOf(text: string): number {
  return [...text].length;
}

export function indented(text: string): string {
  return text.replaceAll(/^(?=.)/gm, "  ");
}
