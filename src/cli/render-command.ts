// krane render: prints the manifests that an agent would apply for some documents, without a cluster or a control
// plane. The code for documents is imported only when it runs, to keep the start of the agent fast.
import { type Command, Option } from "commander";
import type { Config } from "../config/config.ts";
import type { ProcessEnv } from "../config/expand.ts";
import { createSecretSource } from "../config/secret-source.ts";
import { defaultAudience } from "../config/settings.ts";
import type { AnyDocument } from "../kinds/documents.ts";
import type { RenderSettings } from "../kinds/kind-document.ts";
import { allKinds } from "../kinds/kinds.ts";
import type { KubeObject } from "../kube/types.ts";
import { CommandError } from "./command-error.ts";
import { loadConfig } from "./config-source.ts";
import { exitCodes } from "./exit-codes.ts";
import type { Io } from "./io.ts";
import { addFileOption, filePaths } from "./objects/file-option.ts";
import { runInterruptible } from "./process/interruptible.ts";
import { jsonText } from "./terminal/output.ts";

interface RenderFlags {
  readonly config?: string;
  readonly region?: string;
  readonly kraneNamespace?: string;
  readonly showSecrets?: true;
  readonly output: "yaml" | "json";
}

interface RenderDeps {
  readonly env: ProcessEnv;
  readonly io: Io;
}

const examples = `
Examples:
  krane render -f hello.yaml                          with the agent's default settings
  krane render -f hello.yaml --config krane.toml      with this agent's settings
  krane render -f a.yaml -f b.yaml -o json            one List of all objects

Pass all documents of an environment at once: its deployments share a network policy, which allows the ports
of all of them. Environments and their secrets are not cluster objects and are not shown.
`;

export function addRenderCommand(program: Command, deps: RenderDeps, exitWith: (code: number) => void): void {
  const render = program
    .command("render")
    .description("print the manifests that krane would apply, without a cluster");
  addFileOption(render)
    .option("-c, --config <path>", "the agent's configuration: registry, secrets, isolation and region")
    .option("--region <name>", "only documents of this region, or without a region")
    .option("--krane-namespace <name>", "the namespace that krane runs in")
    .option("--show-secrets", "show the registry password (default: redacted)")
    .addOption(new Option("-o, --output <format>", "output format").choices(["yaml", "json"]).default("yaml"))
    .addHelpText("after", examples)
    .action(async () =>
      exitWith(await runInterruptible(deps.io, (signal) => runRender(render, deps, signal))),
    );
}

async function runRender(command: Command, { env, io }: RenderDeps, signal: AbortSignal): Promise<number> {
  const flags = command.opts<RenderFlags>();
  const loaded = flags.config === undefined ? undefined : await loadConfig(command, env, io, signal);
  if (flags.config !== undefined && loaded === undefined) return exitCodes.config;
  const config = loaded?.config;
  const { readDocumentFiles } = await import("./objects/document-files.ts");
  const files = await readDocumentFiles(filePaths(command), io, signal);
  const { parseDocuments } = await import("../documents/parse.ts");
  const { renderDocumentProblems } = await import("../documents/problem.ts");
  const stateNamespace = config?.kubernetes.namespace;
  const rules = {
    registries: config?.isolation.registries ?? [],
    ...(flags.kraneNamespace !== undefined && { ownNamespace: flags.kraneNamespace }),
    ...(stateNamespace !== undefined && { stateNamespace }),
  };
  const { loadDocumentKinds } = await import("../kinds/documents.ts");
  const kinds = await loadDocumentKinds();
  const parsed = parseDocuments(files, kinds, rules);
  if (parsed.kind === "invalid")
    throw new CommandError("failed", renderDocumentProblems(parsed.problems).trimEnd());
  const { documents, region } = await chosen(parsed.documents, config?.region.label ?? flags.region, io);
  const { clashesOf } = await import("../documents/clashes.ts");
  const clashes = clashesOf(
    documents.map((document) => ({ ...document, region })),
    kinds,
  );
  if (clashes.length > 0) throw new CommandError("failed", renderDocumentProblems(clashes).trimEnd());
  const settings = await settingsOf(config, region, flags, io, signal);
  const { renderedObjects } = await import("../kinds/documents.ts");
  await print(await renderedObjects(documents, settings, rules), flags, io);
  return exitCodes.ok;
}

/** An agent gets only the documents of its region. */
async function chosen(
  documents: readonly AnyDocument[],
  wanted: string | undefined,
  io: Io,
): Promise<{ readonly documents: readonly AnyDocument[]; readonly region: string }> {
  const named = [...new Set(documents.flatMap(({ region }) => region ?? []))].sort();
  const region = wanted ?? named[0];
  if (wanted === undefined && named.length > 1)
    throw new CommandError(
      "usage",
      `the documents belong to several regions (${named.join(", ")}); choose one with --region`,
    );
  const taken = documents.filter((document) => document.region === undefined || document.region === region);
  const left = documents.length - taken.length;
  if (left > 0)
    io.stderr.write(
      `krane: skipped ${left} of ${documents.length} documents, which belong to other regions\n`,
    );
  if (region === undefined) await refuseMissingRegion(taken);
  return { documents: taken, region: region ?? "" };
}

async function refuseMissingRegion(documents: readonly AnyDocument[]): Promise<void> {
  for (const { name, loadDocument } of allKinds) {
    const first = documents.find(({ kind }) => kind === name);
    if (first === undefined || !(await loadDocument()).namesRegion) continue;
    const { file, line } = first.source;
    throw new CommandError(
      "usage",
      `${file}:${line}: the manifests of a ${name} contain its region; pass --region`,
    );
  }
}

async function settingsOf(
  config: Config | undefined,
  region: string,
  { kraneNamespace, showSecrets }: RenderFlags,
  io: Io,
  signal: AbortSignal,
): Promise<RenderSettings> {
  if (config === undefined) return { region, runtimeClass: "gvisor", secrets: { audience: defaultAudience } };
  const { secrets, registry, scheduler, isolation, gateway } = config;
  const { audience, endpoint } = secrets;
  if (scheduler?.scrape && kraneNamespace === undefined)
    io.stderr.write(
      "krane: scheduler.scrape allows traffic from krane's namespace; pass --krane-namespace to include it\n",
    );
  const source =
    registry && createSecretSource(registry.password, { readTextFile: io.readTextFile, nowMs: () => 0 });
  // The password file may be readable by the agent only, so it is read only when shown.
  const password = showSecrets && source ? await source.current(signal) : { reveal: () => "" };
  return {
    region,
    runtimeClass: isolation.runtimeClass,
    secrets: { audience, ...(endpoint !== undefined && { endpoint }) },
    ...(registry && { registry: { host: registry.url, username: registry.username, password } }),
    ...(gateway !== undefined && { gateway }),
    ...(scheduler?.scrape && kraneNamespace !== undefined && { scraperNamespace: kraneNamespace }),
  };
}

const redacted = "[redacted]";

async function print(
  all: readonly KubeObject[],
  { output, showSecrets }: RenderFlags,
  io: Io,
): Promise<void> {
  const objects = showSecrets ? all : all.map(withoutSecrets);
  for (const each of all) {
    const owner = each.metadata?.ownerReferences?.[0];
    if (owner?.uid === "")
      io.stderr.write(
        `krane: ${nameOf(each)}: the uid of its owner ${owner.kind} is set by the cluster; it is empty here\n`,
      );
    if (each.kind === "Secret" && !showSecrets)
      io.stderr.write(`krane: the data of ${nameOf(each)} is redacted; --show-secrets shows it\n`);
  }
  if (output === "json") {
    io.stdout.write(`${jsonText({ apiVersion: "v1", kind: "List", items: objects }, 2)}\n`);
    return;
  }
  const { renderYaml } = await import("../documents/document-of.ts");
  io.stdout.write(renderYaml(objects));
}

function withoutSecrets(object: KubeObject): KubeObject {
  if (object.kind !== "Secret") return object;
  const { data = {} } = object as { readonly data?: Readonly<Record<string, string>> };
  const hidden = Object.fromEntries(Object.keys(data).map((name) => [name, redacted]));
  return { ...object, data: hidden } as KubeObject;
}

function nameOf({ kind, metadata }: KubeObject): string {
  return `${kind} ${metadata?.namespace}/${metadata?.name}`;
}
