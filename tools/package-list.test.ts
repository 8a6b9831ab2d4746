import assert from "node:assert/strict";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { loadPackageList } from "./package-list.ts";

const root = fileURLToPath(new URL("..", import.meta.url));
const never = new AbortController().signal;

interface Manifest {
  readonly dependencies?: Readonly<Record<string, string>>;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface LockFile {
  readonly packages: Readonly<
    Record<string, Manifest & { readonly version?: string; readonly link?: boolean }>
  >;
}

const lock = JSON.parse(await readFile(join(root, "package-lock.json"), "utf8")) as LockFile;

/** What Node would load from the root on, as `name version`; the marks of the lock file are not used. */
function reachable(withOptional: boolean): readonly string[] {
  const found = new Set<string>();
  const visit = (path: string) => {
    const { dependencies, optionalDependencies } = lock.packages[path] ?? assert.fail(path);
    for (const name of Object.keys({ ...dependencies, ...(withOptional && optionalDependencies) })) {
      const place = resolve(path, name);
      if (found.has(place)) continue;
      found.add(place);
      visit(place);
    }
  };
  visit("");
  return [...found].map((path) => {
    const name = path.startsWith("packages/")
      ? path.replace("packages/", "@krane/")
      : path.replace(/^.*node_modules\//, "");
    return `${name} ${lock.packages[path]?.version}`;
  });
}

/** The nearest node_modules that has it. */
function resolve(from: string, name: string): string {
  const place = `${from}${from === "" ? "" : "/"}node_modules/${name}`;
  if (lock.packages[place]?.link === true) return name.replace("@krane/", "packages/");
  if (lock.packages[place] !== undefined) return place;
  assert.notEqual(from, "", `${name} is not in the lock file`);
  return resolve(
    from.includes("/node_modules/") ? from.replace(/\/node_modules\/(@[^/]+\/)?[^/]+$/, "") : "",
    name,
  );
}

for (const withOptional of [true, false])
  test(`the list has what krane needs at run time and nothing else, optional packages ${withOptional ? "included" : "left out"}`, async () => {
    const { metadata, components, dependencies } = await loadPackageList(root, { withOptional }, never);
    assert.equal(metadata.component.name, "krane");
    const listed = components.map(({ name, version }) => `${name} ${version}`);
    assert.deepEqual(listed.sort(), [...new Set(reachable(withOptional))].sort());
    assert.ok(
      listed.some((one) => one.startsWith("@bufbuild/protobuf ")),
      "development needs it too",
    );
    const refs = new Set([metadata.component, ...components].map((one) => one["bom-ref"]));
    for (const { ref, dependsOn } of dependencies)
      for (const each of [ref, ...dependsOn]) assert.ok(refs.has(each), each);
  });
