// What git would commit: tracked files and untracked ones that are not ignored, as
// they are in the working tree. Tests about the project itself read it through this.
import { execFileSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

export const projectRoot = fileURLToPath(new URL("../..", import.meta.url));

export function projectFiles(pattern: RegExp): string[] {
  const listed = execFileSync("git", ["ls-files", "--cached", "--others", "--exclude-standard"], {
    cwd: projectRoot,
    encoding: "utf8",
  });
  const names = listed.split("\n").filter((name) => pattern.test(name));
  // A file that was deleted but not yet committed is still listed by git.
  return names.filter((name) => existsSync(join(projectRoot, name)));
}

export function readProjectFile(name: string): string {
  return readFileSync(join(projectRoot, name), "utf8");
}
