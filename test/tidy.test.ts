// The rules of the house that neither the linter nor the import rules can see.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { ICruiseResult } from "dependency-cruiser";
import { checkLayers, describeViolations } from "../tools/check-layers.ts";
import { projectFiles, projectRoot, readProjectFile } from "./support/project-files.ts";

const code = /^(src|packages|sim|test|tools|bench)\/.*\.tsx?$/;
const product = /^(packages\/[^/]+\/)?src\/.*\.tsx?$/;
const generated = /^src\/gen\//;

// Where the program, or a person, comes in. Everything else of the product must be reachable
// from here, or it is dead.
const entryPoints = [
  "src/cli/entry.ts",
  "src/index.ts",
  "src/testing.ts",
  // In a browser.
  "src/dashboard/page/main.tsx",
  "packages/kube-apiserver/src/index.ts",
  "packages/kube-apiserver/src/testing.ts",
];

function lineCount(name: string): number {
  return readProjectFile(name).trimEnd().split("\n").length;
}

test("no source file is above 500 lines and no test above 800", () => {
  const tooLong = projectFiles(code)
    .filter((name) => !generated.test(name))
    .filter((name) => lineCount(name) > (/\.test\.ts$|^(packages\/[^/]+\/)?test\//.test(name) ? 800 : 500))
    .map((name) => `${name}: ${lineCount(name)} lines; find the second idea in it and give that a file`);
  assert.deepEqual(tooLong, []);
});

test("file names say what is inside", () => {
  // "field-manager" is Kubernetes' own word for whoever owns a field.
  const vague = /(^|[/-])(utils?|helpers?|common|misc|(?<!field-)manager|impl)(-|\.|\/)/;
  assert.deepEqual(
    projectFiles(code).filter((name) => vague.test(name)),
    [],
  );
});

test("a unit test is named after the file that it tests", () => {
  const names = new Set(projectFiles(code));
  const lost = [...names].filter((name) => {
    const tested = /^(src\/.*\/)([^/.]+)(?:\.[^/]+)?\.test\.ts$/.exec(name);
    if (tested === null || tested[2] === "golden") return false;
    return !names.has(`${tested[1]}${tested[2]}.ts`);
  });
  assert.deepEqual(lost, [], "call it <file>.test.ts, or <file>.<aspect>.test.ts if there is one already");
});

test("only the public entry points re-export", () => {
  const barrels = projectFiles(product)
    .filter(
      (name) =>
        !generated.test(name) &&
        !["src/index.ts", "src/testing.ts", "packages/kube-apiserver/src/index.ts"].includes(name),
    )
    .filter((name) => /^export (\*|\{[^}]*\}) from /m.test(readProjectFile(name)));
  assert.deepEqual(barrels, []);
});

// The files that each name is imported from. A module that is loaded when it is needed counts with all its names.
function importedNames(names: readonly string[]): Map<string, Set<string>> {
  const imported = new Map<string, Set<string>>();
  const statements =
    /^(?:import|export) (?:type )?([^;"]*?) from "([^"]+)"|\bimport\(\s*"([^"]+)"|^import "([^"]+)"/gm;
  for (const name of names) {
    for (const [, list = "*", from, loaded, bare] of readProjectFile(name).matchAll(statements)) {
      const target = new URL(from ?? loaded ?? bare ?? "", `file:///${name}`).pathname.slice(1);
      const known = imported.get(target) ?? new Set();
      for (const word of list.matchAll(/\*|\w+/g)) known.add(word[0]);
      imported.set(target, known);
    }
  }
  return imported;
}

// Node calls what it exports.
const loaderHooks = "tools/stripped-modules.ts";

test("an exported value is imported by another file", () => {
  const names = projectFiles(code);
  const imported = importedNames(names);
  const unused = names
    .filter((name) => !generated.test(name) && ![...entryPoints, loaderHooks].includes(name))
    .flatMap((name) =>
      [...readProjectFile(name).matchAll(/^export (?:async )?(?:function\*?|const|let|class) (\w+)/gm)]
        .filter(([, value = ""]) => !imported.get(name)?.has(value) && !imported.get(name)?.has("*"))
        .map(([, value]) => `${name}: ${value}`),
    );
  assert.deepEqual(unused, []);
});

test("a TODO names its issue", () => {
  const loose = projectFiles(/\.(ts|md|proto|toml|ya?ml|sh)$|^Makefile$/)
    .filter((name) => name !== "test/tidy.test.ts" && !generated.test(name))
    .flatMap((name) =>
      readProjectFile(name)
        .split("\n")
        .flatMap((text, index) =>
          /\b(TODO|FIXME|XXX)\b(?!\(#\d+\))/.test(text) ? [`${name}:${index + 1}: write TODO(#issue)`] : [],
        ),
    );
  assert.deepEqual(loose, []);
});

test("a silenced check gives its reason", () => {
  const bare = projectFiles(code)
    .filter((name) => name !== "test/tidy.test.ts" && !generated.test(name))
    .filter((name) =>
      /@ts-(ignore|nocheck|expect-error)(?! \S)|biome-ignore[^:]*:\s*$/m.test(readProjectFile(name)),
    );
  assert.deepEqual(bare, []);
});

test("no seam is gone around through another name", () => {
  const detour = /\bglobalThis\.(fetch|set\w+|Date|performance)\b|from "node:(timers(\/promises)?|process)"/;
  const seams = /^src\/(cli\/|concurrency\/clock\.ts$)|\.test\.ts$/;
  const around = projectFiles(product)
    .filter((name) => !seams.test(name))
    .filter((name) => detour.test(readProjectFile(name)));
  assert.deepEqual(around, []);
});

test("randomness comes in only through its seam", () => {
  const randomSeams = ["src/concurrency/random.ts", "packages/kube-apiserver/src/clock.ts"];
  const direct = projectFiles(product)
    .filter((name) => !randomSeams.includes(name) && !/\.test\.ts$/.test(name))
    .filter((name) => /\bMath\.random\b/.test(readProjectFile(name)));
  assert.deepEqual(direct, []);
});

test("every Markdown file has one title, on its first line", () => {
  const wrong = projectFiles(/\.md$/).flatMap((name) => {
    const outsideCode = readProjectFile(name).replaceAll(/^(```|~~~)[\s\S]*?^\1/gm, "");
    const titles = outsideCode.split("\n").filter((text) => /^# /.test(text));
    return titles.length === 1 && outsideCode.startsWith("# ") ? [] : [`${name}: ${titles.length} titles`];
  });
  assert.deepEqual(wrong, []);
});

// docs/style.md has the vocabulary. These are the phrases that gave away sentences which had to be read twice.
const riddles =
  /\bof before\b(?!\))|\bis no [a-z]+ that\b|\bwhat (came|comes) of (it|them)\b|\ball the same[.,;]|\bas (it|they) should be\b|\bnobody (listens|is there)\b|\bby itself again\b|\bstands? in the way\b|\bmakes? sense of\b|\blooks? after\b|\b(again and again|over and over)\b|\bcarr(y|ies|ied) (it |them )?out\b|\bin (its|their) turn\b|\banew\b|\bgoes? on with\b|\b(it|and|that) is said\b|\bfor good\b|\blets? go\b|\bis heard\b|\bknows? nothing\b|\bto the letter\b|\bwithout a word\b|\bmishaps?\b|\bgives? way\b|\bfor (its|their) own that\b|\b(takes?|took) (it|them|[a-z]+ objects?) for (its|their) own\b/i;

// They name the phrases.
const styleFiles: ReadonlySet<string> = new Set(["docs/style.md", "test/tidy.test.ts"]);

test("no text has the phrases of sentences that have to be read twice", () => {
  const texts = projectFiles(
    /^(src|packages|docs|deploy|examples|proto|test|bench|tools)\/.*\.(ts|md|ya?ml|proto|tpl|txt|toml)$|^[A-Z]+\.md$/,
  );
  const found = texts
    .filter((name) => !styleFiles.has(name) && !generated.test(name))
    .flatMap((name) =>
      readProjectFile(name)
        .split("\n")
        .flatMap((text, index) => {
          const [phrase] = riddles.exec(text) ?? [];
          return phrase === undefined ? [] : [`${name}:${index + 1}: "${phrase}": see docs/style.md`];
        }),
    );
  assert.deepEqual(found, []);
});

function headingAnchors(markdown: string): Set<string> {
  const headings = [...markdown.matchAll(/^#+ (.+)$/gm)].map(([, title = ""]) => title);
  return new Set(
    headings.map((title) =>
      title
        .toLowerCase()
        .replaceAll(/[^\w\- ]/g, "")
        .replaceAll(" ", "-"),
    ),
  );
}

test("relative links in Markdown lead somewhere", () => {
  const known = new Set(projectFiles(/./));
  const broken = projectFiles(/\.md$/).flatMap((name) => {
    const folder = name.includes("/") ? name.slice(0, name.lastIndexOf("/") + 1) : "";
    const links = [...readProjectFile(name).matchAll(/\]\((?!https?:|mailto:)([^)#\s]*)(?:#([^)\s]+))?\)/g)];
    return links.flatMap(([, target = "", anchor]) => {
      const path = target === "" ? name : new URL(target, `file:///${folder}`).pathname.slice(1);
      const exists =
        known.has(path) || [...known].some((file) => file.startsWith(`${path.replace(/\/$/, "")}/`));
      if (!exists) return [`${name}: ${target}`];
      const hasAnchor = anchor === undefined || headingAnchors(readProjectFile(path)).has(anchor);
      return hasAnchor ? [] : [`${name}: ${target}#${anchor}`];
    });
  });
  assert.deepEqual(broken, []);
});

function reachableFrom(result: ICruiseResult, roots: readonly string[]): Set<string> {
  const imports = new Map(result.modules.map((m) => [m.source, m.dependencies.map((d) => d.resolved)]));
  const seen = new Set<string>();
  const waiting = [...roots];
  for (let next = waiting.pop(); next !== undefined; next = waiting.pop()) {
    if (seen.has(next)) continue;
    seen.add(next);
    waiting.push(...(imports.get(next) ?? []));
  }
  return seen;
}

test("imports point down, and no file is dead", async () => {
  const result = await checkLayers(projectRoot, ["src", "packages"]);
  assert.deepEqual(describeViolations(result), []);

  const alive = reachableFrom(result, entryPoints);
  const dead = projectFiles(product).filter((name) => !/\.test\.ts$/.test(name) && !alive.has(name));
  assert.deepEqual(dead, []);
});
