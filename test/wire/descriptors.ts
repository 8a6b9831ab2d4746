// Finds the descriptors of the whole contract by looking at what src/gen really
// holds, so that a new .proto file cannot stay outside the tests.
import { readdir } from "node:fs/promises";
import { fileURLToPath, pathToFileURL } from "node:url";
import type { DescFile } from "@bufbuild/protobuf";

export const projectRoot = fileURLToPath(new URL("../../", import.meta.url));

/** The paths of all files below a folder, relative to it, in order. */
export async function listFiles(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile())
    .map((entry) => `${entry.parentPath}/${entry.name}`.slice(folder.length + 1))
    .sort();
}

/** The file descriptors of the generated code, by package. */
export async function loadContract(): Promise<Map<string, DescFile[]>> {
  const contract = new Map<string, DescFile[]>();
  const folder = `${projectRoot}src/gen`;
  for (const path of await listFiles(folder)) {
    const generated: Record<string, unknown> = await import(pathToFileURL(`${folder}/${path}`).href);
    for (const file of Object.values(generated).filter(isFile)) {
      contract.set(file.proto.package, [...(contract.get(file.proto.package) ?? []), file]);
    }
  }
  return contract;
}

function isFile(value: unknown): value is DescFile {
  return typeof value === "object" && value !== null && "kind" in value && value.kind === "file";
}
