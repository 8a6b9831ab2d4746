// Writes the type declarations of a package: those that its entries reach, and no others. They may refer only to
// packages that are installed with it; a type from elsewhere would silently be `any` for its users.
import { mkdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";

const root = fileURLToPath(new URL("..", import.meta.url));

/** `entries` are below src/ of the folder. Types are checked by `make check`; here they are only written. */
export async function emitTypes(folder: string, entries: readonly string[], outdir: string): Promise<void> {
  const source = join(folder, "src");
  const files = entries.map((entry) => join(folder, entry));
  const declarations = declarationsOf(source, files);
  const shipped = await dependencies(folder);
  const reached = new Set<string>();
  const waiting = files.map((file) => declarationName(source, file));
  for (let name = waiting.pop(); name !== undefined; name = waiting.pop()) {
    if (reached.has(name)) continue;
    reached.add(name);
    const text = declarations.get(name);
    if (text === undefined) throw new Error(`${name} was not written`);
    for (const { fileName } of ts.preProcessFile(text).importedFiles) {
      if (fileName.startsWith("."))
        waiting.push(declarationName(source, join(source, dirname(name), fileName)));
      else if (!fileName.startsWith("node:") && !shipped.some((one) => isOf(one, fileName)))
        throw new Error(
          `${join(source, name)}: the published types refer to ${fileName}, which is not a dependency`,
        );
    }
  }
  for (const name of reached) {
    await mkdir(dirname(join(outdir, name)), { recursive: true });
    await writeFile(join(outdir, name), declarations.get(name) ?? "");
  }
}

/** The texts, by their names below `source`. */
function declarationsOf(source: string, files: readonly string[]): Map<string, string> {
  const { config } = ts.readConfigFile(join(root, "tsconfig.json"), ts.sys.readFile);
  const { options } = ts.parseJsonConfigFileContent(config, ts.sys, root);
  const program = ts.createProgram([...files], {
    ...options,
    noEmit: false,
    noCheck: true,
    declaration: true,
    emitDeclarationOnly: true,
    rootDir: source,
    outDir: source,
  });
  const texts = new Map<string, string>();
  const { diagnostics } = program.emit(undefined, (path, text) => texts.set(relative(source, path), text));
  if (diagnostics.length > 0) throw new Error(ts.formatDiagnostics(diagnostics, formatHost));
  return texts;
}

const formatHost: ts.FormatDiagnosticsHost = {
  getCurrentDirectory: () => root,
  getCanonicalFileName: (name) => name,
  getNewLine: () => "\n",
};

function declarationName(source: string, path: string): string {
  return relative(source, path).replace(/(\.d)?\.ts$/, ".d.ts");
}

async function dependencies(folder: string): Promise<readonly string[]> {
  const manifest = JSON.parse(await readFile(join(folder, "package.json"), "utf8")) as {
    readonly dependencies: Readonly<Record<string, string>>;
  };
  return Object.keys(manifest.dependencies);
}

function isOf(dependency: string, specifier: string): boolean {
  return specifier === dependency || specifier.startsWith(`${dependency}/`);
}
