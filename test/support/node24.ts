// The Node of the image, which `make test` installs beside whatever Node runs the tests.
import { existsSync, readdirSync } from "node:fs";
import { join } from "node:path";
import { projectRoot } from "./project-files.ts";

/** Undefined if it is not installed. */
export function findNode24(): string | undefined {
  const folder = join(projectRoot, "tools/node24/node_modules");
  if (!existsSync(folder)) return undefined;
  const packages = readdirSync(folder).filter((name) => name.startsWith("node-"));
  return packages.map((name) => join(folder, name, "bin/node")).find((path) => existsSync(path));
}
