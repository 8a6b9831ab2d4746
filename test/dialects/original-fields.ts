// Which fields the messages of the original have, from the table of the contract: what is marked as an addition is krane's.
import { readFile } from "node:fs/promises";
import { projectRoot } from "../support/project-files.ts";
import { parseGoldenTable } from "../wire/wire-table.ts";

/** By the names in the .proto file, in the order of their numbers. `message`: without its package, which is ctrl.v1. */
export async function fieldsOf(message: string): Promise<readonly string[]> {
  const table = parseGoldenTable(await readFile(`${projectRoot}testdata/wire/ctrl.v1.txt`, "utf8"));
  const pattern = new RegExp(String.raw`^message ctrl\.v1\.${message} / \d+ (\w+) `);
  return table.flatMap(({ text, isAddition }) => (isAddition ? [] : (pattern.exec(text)?.[1] ?? [])));
}
