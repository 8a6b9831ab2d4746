// Pins every number, type and name of the contract. The tables in testdata/wire
// are written by hand and not from the .proto files: an edit of one alone, which
// would silently stop old peers from understanding us, is seen here.
import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { test } from "node:test";
import { listFiles, loadContract, projectRoot } from "./descriptors.ts";
import { describeFiles, parseGoldenTable } from "./wire-table.ts";

const contract = await loadContract();

test("every package has a golden table, and every golden table a package", async () => {
  const tables = (await listFiles(`${projectRoot}testdata/wire`)).map((path) => path.replace(/\.txt$/, ""));
  assert.deepEqual([...contract.keys()].sort(), tables);
  assert.deepEqual(tables, [
    "ctrl.v1",
    "grpc.health.v1",
    "grpc.reflection.v1",
    "grpc.reflection.v1alpha",
    "krane.admin.v1",
    "krane.v1",
    "vault.v1",
  ]);
});

for (const [name, files] of contract) {
  test(`the numbers, types and names of ${name} are those of its golden table`, async () => {
    const table = parseGoldenTable(await readFile(`${projectRoot}testdata/wire/${name}.txt`, "utf8"));
    const golden = table.map((line) => line.text);
    const generated = describeFiles(files);
    const onlyInTable = golden.filter((line) => !generated.includes(line));
    const onlyInProto = generated.filter((line) => !golden.includes(line));
    assert.deepEqual({ onlyInTable, onlyInProto }, { onlyInTable: [], onlyInProto: [] });
    assert.equal(new Set(golden).size, golden.length, `testdata/wire/${name}.txt says something twice`);
  });
}

test("every request of ClusterService carries the region key", () => {
  const service = contract
    .get("ctrl.v1")
    ?.flatMap((file) => file.services)
    .find((desc) => desc.name === "ClusterService");
  for (const method of service?.methods ?? []) {
    const keys = method.input.fields.filter((field) => field.message?.typeName === "ctrl.v1.RegionKey");
    const expected = method.name === "Heartbeat" ? "1 region" : "10 region_key";
    assert.deepEqual(
      keys.map((field) => `${field.number} ${field.name}`),
      [expected],
      method.input.typeName,
    );
  }
  assert.ok(service !== undefined && service.methods.length > 0);
});
