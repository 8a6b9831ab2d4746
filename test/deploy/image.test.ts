// The image cannot be built where there is no container engine, but what it says can be held against what runs.
import assert from "node:assert/strict";
import { test } from "node:test";
import { nodeFlags } from "../../tools/bundle.ts";
import { containerProgram, containerUser } from "../support/container.ts";
import { deploymentsOf } from "../support/deployed-parts.ts";
import { manifestsOf } from "../support/deployed-rights.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const lines = readProjectFile("deploy/image/Dockerfile")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

function instruction(name: string): string {
  const found = lines.filter((line) => line.startsWith(`${name} `));
  assert.equal(found.length, 1, name);
  return found[0]?.slice(name.length + 1) ?? "";
}

test("it is one file on a base that has Node and no shell", () => {
  assert.deepEqual(
    lines.map((line) => line.split(" ")[0]),
    ["FROM", "COPY", "WORKDIR", "USER", "ENTRYPOINT", "CMD"],
  );
  assert.match(instruction("FROM"), /^gcr\.io\/distroless\/nodejs24-debian\d+:nonroot$/);
  const [copied, place] = instruction("COPY").split(" ").slice(-2);
  assert.deepEqual([copied, place], ["bin/krane", containerProgram[1]]);
});

test("it is started as the tests start it, and as the user that the chart names", () => {
  const [node, program] = containerProgram;
  assert.deepEqual(JSON.parse(instruction("ENTRYPOINT")), [node, ...nodeFlags, program]);
  assert.equal(instruction("USER"), `${containerUser}:${containerUser}`);
  for (const { spec } of deploymentsOf(
    ["agent", "server", "vault"].flatMap((part) => manifestsOf(`${part}.yaml`)),
  ).values())
    assert.equal(spec?.template.spec?.securityContext?.runAsUser, containerUser);
});

test("the commands on the pages run the program where it is", () => {
  for (const name of projectFiles(/^docs\/operations\/.*\.md$/))
    for (const [typed] of readProjectFile(name).matchAll(/\/nodejs\S+ \S+/g))
      assert.equal(typed, containerProgram.join(" "), name);
});

test("the chart, the program and the pages are of one version", () => {
  const { version } = JSON.parse(readProjectFile("package.json")) as { readonly version: string };
  const chart = readProjectFile("deploy/chart/krane/Chart.yaml");
  assert.match(chart, new RegExp(`^version: ${version}\nappVersion: ${version}$`, "m"));
  for (const name of ["deploy/image/Dockerfile", ...projectFiles(/^docs\/operations\/.*\.md$/)])
    for (const [, tag] of readProjectFile(name).matchAll(/(?:krane:|image\.tag=)(\d\S*)/g))
      assert.equal(tag, version, name);
});
