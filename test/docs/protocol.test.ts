// docs/protocol.md is read by people who write the other side of the wire. What
// it lists is compared with the contract in both directions, so it can neither
// forget an RPC nor invent one.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { listFiles, loadContract, projectRoot } from "../wire/descriptors.ts";
import { parseGoldenTable } from "../wire/wire-table.ts";

/** The table rows of the page with the heading that they stand under, as cells. */
async function readTables(): Promise<{ heading: string; cells: string[] }[]> {
  const rows: { heading: string; cells: string[] }[] = [];
  let heading = "";
  for (const line of (await readFile(`${projectRoot}docs/protocol.md`, "utf8")).split("\n")) {
    if (line.startsWith("#")) heading = line.replace(/^#+ /, "").replaceAll("`", "");
    if (line.startsWith("|")) rows.push({ heading, cells: line.split("|").slice(1, -1) });
  }
  return rows;
}

const codeSpans = (cell = "") => [...cell.matchAll(/`([^`]+)`/g)].map((match) => match[1] ?? "");

test("the page lists every RPC with its kind and its messages, and no other", async () => {
  const documented = (await readTables())
    .filter(({ heading, cells }) => /^[a-z\d.]+\.[A-Z]\w+$/.test(heading) && codeSpans(cells[0]).length > 0)
    .map(
      ({ heading, cells }) => `${heading}: ${cells.map((cell) => cell.replaceAll("`", "").trim()).join(" ")}`,
    );
  const kinds = {
    unary: "unary",
    server_streaming: "server stream",
    client_streaming: "client stream",
    bidi_streaming: "two-way stream",
  };
  const defined = [...(await loadContract()).values()]
    .flat()
    .flatMap((file) => file.services.flatMap((service) => service.methods))
    .map(
      ({ parent, name, methodKind, input, output }) =>
        `${parent.typeName}: ${name} ${kinds[methodKind]} ${input.name} ${output.name}`,
    );
  assert.deepEqual(documented.sort(), defined.sort());
});

test("the page lists every addition to the original, and no other", async () => {
  const documented = (await readTables())
    .filter(({ heading }) => heading === "What krane adds")
    .flatMap(({ cells }) => codeSpans(cells[0]));
  const marked: string[] = [];
  for (const path of await listFiles(`${projectRoot}testdata/wire`)) {
    const table = parseGoldenTable(await readFile(`${projectRoot}testdata/wire/${path}`, "utf8"));
    marked.push(...table.filter((line) => line.isAddition).map((line) => nameOfLine(line.text)));
  }
  assert.deepEqual(documented.sort(), marked.sort());
});

// "message a.B" is a.B, "message a.B / 10 c string" is "a.B.c = 10", and
// "service a.S / M a.R -> a.T" is a.S/M.
function nameOfLine(line: string): string {
  const [heading = "", content] = line.split(" / ");
  const [kind, owner] = heading.split(" ");
  const [first, second] = content?.split(" ") ?? [];
  if (first === undefined) return `${owner}`;
  return kind === "service" ? `${owner}/${first}` : `${owner}.${second} = ${first}`;
}
