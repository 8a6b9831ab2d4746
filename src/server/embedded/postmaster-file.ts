// Reads the PID file that a running PostgreSQL leaves in its data folder: its process and
// where it listens. The file stays behind after a crash, so it proves nothing.
import { readFile } from "node:fs/promises";
import { join } from "node:path";

export interface PostmasterFile {
  readonly pid: number;
  readonly port: number;
  readonly socketFolder: string;
}

export async function readPostmasterFile(data: string): Promise<PostmasterFile | undefined> {
  const text = await readFile(join(data, "postmaster.pid"), "utf8").catch(() => "");
  const [pid = "", , , port = "", socketFolder = ""] = text.split("\n").map((line) => line.trim());
  // It is written line by line while the database starts.
  if (!/^\d+$/.test(pid) || !/^\d+$/.test(port) || socketFolder === "") return undefined;
  return { pid: Number(pid), port: Number(port), socketFolder };
}
