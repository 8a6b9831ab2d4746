// The commands for what is wanted: apply, get, describe, scale, delete, diff. Here are their words and flags; what
// they do is imported when it is done, because an agent must not pay for it at its start.
import { type Command, InvalidArgumentError, Option } from "commander";
import { allKinds } from "../../kinds/kinds.ts";
import { replicasMax } from "../../model/message-fields.ts";
import { type Admin, addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";
import { regionFlag } from "../admin/admin-target.ts";
import { CommandError } from "../command-error.ts";
import { listed } from "../terminal/word-list.ts";
import type { ApplyOptions } from "./apply-documents.ts";
import { addWaitOptions } from "./command-wait.ts";
import type { DeleteOptions } from "./delete-objects.ts";
import type { GetOptions } from "./get-objects.ts";
import type { ScaleOptions } from "./scale-object.ts";

type ExitWith = (code: number) => void;

const plurals = [...allKinds.map(({ plural }) => plural), "environments"];
const shortForms = [...allKinds.flatMap(({ aliases }) => aliases), "env"];
const kinds = `${listed(plurals, "or")}; singular, or ${listed(shortForms, "and")} for short`;
const scaled = allKinds.filter(({ makesPods }) => makesPods).map(({ name }) => name);

export function addObjectCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  addApply(program, deps, exitWith);
  addDiff(program, deps, exitWith);
  addGet(program, deps, exitWith);
  addDescribe(program, deps, exitWith);
  addScale(program, deps, exitWith);
  addDelete(program, deps, exitWith);
}

function addApply(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const apply = program.command("apply").description("make what files describe the desired state");
  addFiles(apply)
    .option("--dry-run", "say what would come of it and change nothing")
    .addOption(ifVersion("apply only if the object is at this version; 0 if there must be none"));
  addAdminOptions(addWaitOptions(apply, "everything that was applied is ready"))
    .addHelpText(
      "after",
      `
Examples:
  krane apply -f hello.yaml --wait          and say when it is ready
  krane apply -f manifests/ --dry-run       every .yaml, .yml and .json of a folder
  render-my-app | krane apply -f -          from standard input
  krane apply -f hello.yaml --if-version 7  only if nobody has changed it since

Several documents are all checked before the first is sent, and environments are sent first.
`,
    )
    .action(async () =>
      exitWith(
        await withAdmin(apply, deps, async (admin) => {
          const documents = await loadFiles(apply, deps, admin);
          const { applyDocuments } = await import("./apply-documents.ts");
          return applyDocuments(admin, deps.io, documents, apply.opts<ApplyOptions>());
        }),
      ),
    );
}

function addDiff(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const diff = program.command("diff").description("show what an apply would change, field by field");
  addAdminOptions(addFiles(diff))
    .addHelpText(
      "after",
      `
Examples:
  krane diff -f hello.yaml
  krane diff -f manifests/ || krane apply -f manifests/

Exits with 0 where nothing would change, with 2 where something would. Secrets are not compared.
`,
    )
    .action(async () =>
      exitWith(
        await withAdmin(diff, deps, async (admin) => {
          const documents = await loadFiles(diff, deps, admin);
          const { diffDocuments } = await import("./diff-documents.ts");
          return diffDocuments(admin, deps.io, documents);
        }),
      ),
    );
}

function addGet(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const get = program
    .command("get [kind] [id]")
    .description("list objects, or show one")
    .option("--environment <id>", "only what belongs to this environment")
    .option("--deleted", "also what was deleted");
  addAdminOptions(get, { output: true })
    .addHelpText(
      "after",
      `
KIND is ${kinds}, or all.
An object is named by its id, or by its name in the cluster where only one has it.

Examples:
  krane get deployments
  krane get deployment d_hello -o yaml
  krane get deployment/demo/hello           by namespace and name
  krane get all -o wide                     with versions and reasons
  krane get deployments -o json | jq -r '.objects[] | select(.phase != "PHASE_READY") | .ref.id'
`,
    )
    .action(async (kind: string | undefined, name: string | undefined) => {
      // The first that many a person tries: that an argument is missing does not tell them what there is.
      if (kind === undefined)
        throw new CommandError("usage", `which kind? krane get ${listed([...plurals, "all"], "or")}`);
      exitWith(
        await withAdmin(get, deps, async (admin) => {
          const { getObjects } = await import("./get-objects.ts");
          return getObjects(admin, deps.io, { kind, name }, get.opts<GetOptions>());
        }),
      );
    });
}

function addDescribe(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const describe = program
    .command("describe <kind> [id]")
    .description("show everything that is known of one object");
  addAdminOptions(describe)
    .addHelpText(
      "after",
      `
KIND is ${kinds}.

Examples:
  krane describe deployment d_hello
  krane describe deployment/hello
  krane describe env env_demo
`,
    )
    .action(async (kind: string, name: string | undefined) =>
      exitWith(
        await withAdmin(describe, deps, async (admin) => {
          const { describeObject } = await import("./describe-object.ts");
          return describeObject(admin, deps.io, { kind, name });
        }),
      ),
    );
}

function addScale(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const scale = program
    .command("scale <kind> [id]")
    .description(`change how many pods a ${listed(scaled, "or")} has`)
    .addOption(
      new Option("--replicas <n>", "the number of pods; 0 pauses it")
        .argParser(parseReplicas)
        .makeOptionMandatory(),
    )
    .addOption(ifVersion("scale only if the object is at this version"));
  addAdminOptions(addWaitOptions(scale, "that many pods are ready"))
    .addHelpText(
      "after",
      `
Examples:
  krane scale deployment d_hello --replicas 3 --wait
  krane scale sentinel/gateway --replicas 2
  krane scale deployment d_hello --replicas 0       pause it
`,
    )
    .action(async (kind: string, name: string | undefined) =>
      exitWith(
        await withAdmin(scale, deps, async (admin) => {
          const { scaleObject } = await import("./scale-object.ts");
          return scaleObject(admin, deps.io, { kind, name }, scale.opts<ScaleOptions>());
        }),
      ),
    );
}

function addDelete(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const command = program
    .command("delete [kind] [id]")
    .description("delete an object, or everything that files describe")
    .option("-f, --file <path...>", "files or folders with what to delete; - is standard input")
    .option("-y, --yes", "do not ask")
    .addOption(ifVersion("delete only if the object is at this version"));
  addAdminOptions(addWaitOptions(command, "nothing of it is left in the cluster"))
    .addHelpText(
      "after",
      `
KIND is ${kinds}.

Examples:
  krane delete deployment d_hello                   asks first
  krane delete deployment d_hello --yes --wait
  krane delete -f hello.yaml --yes                  in the opposite order of an apply

With --yes an object is named by its id, or by namespace and name as in demo/hello.
Of files only kinds and ids matter, and environments go last.
With a deployment its policies are deleted. An environment takes its secrets with it.
`,
    )
    .action(async (kind: string | undefined, name: string | undefined) =>
      exitWith(await withAdmin(command, deps, (admin) => runDelete(command, deps, admin, { kind, name }))),
    );
}

async function runDelete(
  command: Command,
  deps: CommandDeps,
  admin: Admin,
  { kind, name }: { readonly kind: string | undefined; readonly name: string | undefined },
): Promise<number> {
  const options = command.opts<DeleteOptions & { readonly file?: readonly string[] }>();
  const { deleteObjects, namedVictim, victimsOf } = await import("./delete-objects.ts");
  if ((kind === undefined) === (options.file === undefined))
    throw new CommandError("usage", "say what to delete: either KIND ID, or -f FILE");
  const victims =
    kind === undefined
      ? victimsOf(await loadFileNames(command, deps, admin))
      : [await namedVictim(admin, { kind, name }, options)];
  return deleteObjects(admin, deps.io, victims, options);
}

function addFiles(command: Command): Command {
  return command.requiredOption("-f, --file <path...>", "files or folders; - is standard input");
}

async function loadFiles(command: Command, { io }: CommandDeps, admin: Admin) {
  const { loadDocuments } = await import("./loaded-documents.ts");
  return loadDocuments(admin, io, fileFlags(command));
}

async function loadFileNames(command: Command, { io }: CommandDeps, admin: Admin) {
  const { loadNames } = await import("./loaded-documents.ts");
  return loadNames(admin, io, fileFlags(command));
}

function fileFlags(command: Command) {
  const { file: paths = [] } = command.opts<{ file?: readonly string[] }>();
  return { paths, regionFlag: regionFlag(command) };
}

function ifVersion(about: string): Option {
  return new Option("--if-version <version>", about).argParser((text) => {
    if (/^\d{1,19}$/.test(text)) return BigInt(text);
    throw new InvalidArgumentError("It must be a version, a whole number.");
  });
}

function parseReplicas(text: string): number {
  if (/^\d{1,9}$/.test(text) && Number(text) <= replicasMax) return Number(text);
  throw new InvalidArgumentError(`It must be a whole number from 0 to ${replicasMax}.`);
}
