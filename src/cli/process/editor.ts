// Opens the user's editor on a text, in a file that only the user can read.
import { spawn } from "node:child_process";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { CommandError } from "../command-error.ts";
import type { EditedFile } from "../io.ts";

export interface EditorOptions {
  /** As a shell reads it, such as `code --wait`. */
  readonly command: string;
  /** Where folders for temporary files are made. */
  readonly folder?: string;
}

export async function createEditedFile(
  name: string,
  { command, folder = tmpdir() }: EditorOptions,
): Promise<EditedFile> {
  // The folder is made with a random name and without rights for others.
  const path = join(await mkdtemp(join(folder, "krane-edit-")), name);
  return {
    path,
    async edit(text, signal) {
      await writeFile(path, text, { mode: 0o600 });
      await run(command, path, signal);
      return readFile(path, "utf8");
    },
    discard: () => rm(dirname(path), { recursive: true, force: true }),
  };
}

/** Like git: the shell splits the command, and the path is passed beside it, so that nothing in it is a command. */
function run(command: string, path: string, signal: AbortSignal): Promise<void> {
  return new Promise((resolve, reject) => {
    const child = spawn("/bin/sh", ["-c", `${command} "$1"`, "sh", path], { stdio: "inherit", signal });
    child.once("error", reject);
    child.once("exit", (code, ended) => {
      if (code === 0) resolve();
      else
        reject(
          new CommandError(
            "failed",
            `the editor ended with ${code ?? ended}; nothing was changed; set EDITOR`,
          ),
        );
    });
  });
}
