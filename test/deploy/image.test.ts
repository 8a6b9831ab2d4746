// What the Dockerfile says, against what runs. test/node builds the image and runs it.
import assert from "node:assert/strict";
import { test } from "node:test";
import { parse } from "yaml";
import { nodeAssignments, nodeFlags } from "../../tools/bundle.ts";
import { containerProgram, containerUser } from "../support/container.ts";
import { deploymentsOf } from "../support/deployed-parts.ts";
import { manifestsOf } from "../support/deployed-rights.ts";
import { projectFiles, readProjectFile } from "../support/project-files.ts";

const lines = readProjectFile("deploy/image/Dockerfile")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("#"));

function instructions(name: string): readonly string[] {
  return lines.filter((line) => line.startsWith(`${name} `)).map((line) => line.slice(name.length + 1));
}

function instruction(name: string): string {
  const found = instructions(name);
  assert.equal(found.length, 1, name);
  return found[0] ?? "";
}

test("it is one program and its launcher on a base that has Node and no shell", () => {
  assert.deepEqual(
    lines.map((line) => line.split(" ")[0]),
    ["ARG", "FROM", "LABEL", "COPY", "COPY", "COPY", "COPY", "WORKDIR", "ENV", "USER", "ENTRYPOINT", "CMD"],
  );
  assert.equal(instruction("FROM"), "$BASE");
  assert.match(
    instruction("ARG"),
    /^BASE=gcr\.io\/distroless\/nodejs24-debian\d+:nonroot@sha256:[0-9a-f]{64}$/,
  );
  assert.deepEqual(
    instructions("COPY").map((line) => line.split(" ").slice(-2)),
    [
      ["bin/krane", "/krane/program.mjs"],
      [".cache/agent", "/krane/agent"],
      ["deploy/image/krane.mjs", containerProgram[1]],
      ["deploy/image/krane", "/usr/local/bin/krane"],
    ],
  );
});

test("what is copied is not ignored", () => {
  const ignored = readProjectFile("deploy/image/Dockerfile.dockerignore").trim().split("\n");
  const copied = instructions("COPY").map((line) => `!${line.split(" ").at(-2)}`);
  assert.deepEqual(ignored, ["*", ...copied]);
});

test("the launcher runs the program with the image's Node, because there is no shell to find it", () => {
  const [node, program] = containerProgram;
  const launcher = readProjectFile("deploy/image/krane");
  assert.ok(launcher.startsWith(`#!${node}\n`));
  assert.ok(launcher.includes(`import("${program}")`));
});

test("it is started as the tests start it, and as the user that the chart names", () => {
  const [node, program] = containerProgram;
  assert.deepEqual(JSON.parse(instruction("ENTRYPOINT")), [node, ...nodeFlags, program]);
  assert.equal(instruction("ENV"), nodeAssignments);
  assert.equal(instruction("USER"), `${containerUser}:${containerUser}`);
  for (const { spec } of deploymentsOf(
    ["agent", "server", "vault"].flatMap((part) => manifestsOf(`${part}.yaml`)),
  ).values())
    assert.equal(spec?.template.spec?.securityContext?.runAsUser, containerUser);
});

test("the commands on the pages run the launcher", () => {
  const typed = projectFiles(/^docs\/operations\/.*\.md$/).flatMap((name) =>
    [...readProjectFile(name).matchAll(/kubectl \S+ \S+ exec \S+ -- (?:\\\n *)?(\S+)/g)].map(
      ([, command]) => command,
    ),
  );
  assert.ok(typed.length >= 2);
  assert.deepEqual([...new Set(typed)], ["krane"]);
});

test("image and chart name the repository of the program", () => {
  const { homepage, repository } = JSON.parse(readProjectFile("package.json")) as {
    readonly homepage: string;
    readonly repository: { readonly url: string };
  };
  const source = repository.url.replace(/^git\+|\.git$/g, "");
  assert.ok(instruction("LABEL").includes(`org.opencontainers.image.source="${source}"`));
  const chart = parse(readProjectFile("deploy/chart/krane/Chart.yaml"));
  assert.deepEqual([chart.home, chart.sources], [homepage, [source]]);
});

test("the chart, the program and the pages are of one version", () => {
  const { version } = JSON.parse(readProjectFile("package.json")) as { readonly version: string };
  const chart = readProjectFile("deploy/chart/krane/Chart.yaml");
  assert.match(chart, new RegExp(`^version: ${version}\nappVersion: ${version}$`, "m"));
  for (const name of ["deploy/image/Dockerfile", ...projectFiles(/^docs\/operations\/.*\.md$/)])
    for (const [, tag] of readProjectFile(name).matchAll(/(?:krane:|image\.tag=)(\d\S*)/g))
      assert.equal(tag, version, name);
});
