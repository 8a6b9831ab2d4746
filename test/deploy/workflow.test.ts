// The workflow in .github/, as far as it can be checked without GitHub.
import assert from "node:assert/strict";
import { execFile } from "node:child_process";
import { test } from "node:test";
import { promisify } from "node:util";
import { parse } from "yaml";
import { actionlint, resolveGoTool } from "../../tools/go-tool.ts";
import { releaseFiles } from "../../tools/release-files.ts";
import { projectFiles, projectRoot, readProjectFile } from "../support/project-files.ts";

interface Step {
  readonly uses?: string;
  readonly run?: string;
  readonly with?: Readonly<Record<string, unknown>>;
}

interface Workflow {
  readonly jobs: Readonly<
    Record<string, { readonly if?: string; readonly needs?: string; readonly steps: readonly Step[] }>
  >;
}

const files = projectFiles(/^\.github\/workflows\//);
const report = (line: string) => console.error(line);
const binary = await resolveGoTool(actionlint, process.env, { report }, new AbortController().signal);
const skip = binary.kind === "missing" && `actionlint: ${binary.what}`;

test("actionlint finds nothing wrong", { skip }, async () => {
  const program = binary.kind === "ready" ? binary.path : assert.fail("it was skipped");
  assert.ok(files.length > 0);
  // Without programs that a machine may or may not have.
  const flags = ["-no-color", "-shellcheck=", "-pyflakes="];
  const found = await promisify(execFile)(program, [...flags, ...files], { cwd: projectRoot }).catch(
    (error: { readonly stdout: string }) => {
      // It could not be run.
      if (error.stdout === "") throw error;
      return error;
    },
  );
  assert.equal(found.stdout, "");
});

const { jobs } = parse(readProjectFile(".github/workflows/ci.yml")) as Workflow;

function scriptOf(job: string): string {
  return (jobs[job]?.steps ?? assert.fail(job)).map(({ run = "" }) => run).join("\n");
}

test("every push is tested with the whole history, and only a tag that passed is released", () => {
  for (const job of Object.values(jobs)) {
    const checkout = job.steps.find(({ uses }) => uses?.startsWith("actions/checkout@"));
    assert.equal(checkout?.with?.["fetch-depth"], 0, "upgrade tests need the history");
  }
  assert.match(scriptOf("test"), /^make test$/m);
  assert.equal(jobs["release"]?.needs, "test");
  assert.equal(jobs["release"]?.if, "startsWith(github.ref, 'refs/tags/v')");
});

test("what is published is what `make release` made, and only after that", () => {
  const script = scriptOf("release");
  const version = "$VERSION";
  const { program, apiServer, notes } = releaseFiles(version);
  const made = script.indexOf(`make release version="${version}"`);
  assert.ok(made > 0);
  const names = /for name in (.*); do/.exec(script)?.[1]?.split(" ");
  assert.deepEqual(
    names?.map((name) => `${name}-${version}.tgz`),
    // krane depends on the other.
    [apiServer, program],
  );
  for (const used of [
    "npm publish",
    "buildah manifest push",
    `--notes-file release/${notes}`,
    "gh release create",
  ])
    assert.ok(script.indexOf(used) > made, used);
});
