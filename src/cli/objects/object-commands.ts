// Flags and help of apply, diff, get, describe, scale and delete. Their code is imported only when they run, to keep the
// start of the agent fast.
import { type Command, InvalidArgumentError, Option } from "commander";
import { allKinds } from "../../kinds/kinds.ts";
import { replicasMax } from "../../model/message-fields.ts";
import { type Admin, addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";
import { regionFlag } from "../admin/admin-target.ts";
import type { ScaleOptions } from "../apps/scale-app.ts";
import { CommandError } from "../command-error.ts";
import { objectFormats } from "../terminal/output.ts";
import { listed } from "../terminal/word-list.ts";
import type { ApplyOptions } from "./apply-documents.ts";
import { addWaitOptions } from "./command-wait.ts";
import type { DeleteOptions } from "./delete-objects.ts";
import { addFileOption, filePaths } from "./file-option.ts";
import type { GetOptions } from "./get-objects.ts";
import { ifVersion } from "./if-version.ts";

type WaitOptions = Pick<ApplyOptions, "wait" | "timeout">;
type ExitWith = (code: number) => void;

const plurals = ["apps", ...allKinds.map(({ plural }) => plural), "environments"];
const shortForms = [...allKinds.flatMap(({ aliases }) => aliases), "env"];
const kinds = `${listed(plurals, "or")}; singular, or ${listed(shortForms, "and")} for short`;
const names = `OBJECT is an id, a name or NAMESPACE/NAME, alone or behind its kind: hello, app/hello, app hello, demo/hello.
The kinds are ${kinds}.`;
const scaled = ["app", ...allKinds.filter(({ makesPods }) => makesPods).map(({ name }) => name)];

export function addObjectCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  addApply(program, deps, exitWith);
  addDiff(program, deps, exitWith);
  addGet(program, deps, exitWith);
  addDescribe(program, deps, exitWith);
  addEdit(program, deps, exitWith);
  addScale(program, deps, exitWith);
  addDelete(program, deps, exitWith);
}

function addApply(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const apply = program.command("apply").description("apply the documents in these files");
  addFileOption(apply)
    .option("--dry-run", "show what would change, and change nothing")
    .addOption(ifVersion("apply only if the object is at this version; 0 if it must not exist"))
    .addOption(
      new Option(
        "--prune <set>",
        "then delete what was applied before with this set name and is no longer in the files",
      ).argParser(parseSetName),
    )
    .option("-y, --yes", "with --prune: do not ask before deleting");
  addAdminOptions(addWaitOptions(apply, "everything that was applied is ready"))
    .addHelpText(
      "after",
      `
Examples:
  krane apply -f hello.yaml --wait          and wait until it is ready
  krane apply -f manifests/ --dry-run       all .yaml, .yml and .json files of a folder
  render-my-app | krane apply -f -          from standard input
  krane apply -f hello.yaml --if-version 7  only if nobody changed it since version 7
  krane apply -f shop/ --prune shop         and delete, after asking, what is no longer in shop/

All documents are checked before the first one is sent. Environments are sent first.
`,
    )
    .action(async () => {
      const paths = filePaths(apply);
      exitWith(
        await withAdmin(apply, deps, async (admin) => {
          const documents = await loadFiles(apply, deps, admin, paths);
          const options = apply.opts<
            ApplyOptions & Pick<DeleteOptions, "yes"> & { readonly prune?: string }
          >();
          if (options.prune !== undefined) {
            const { applyAndPrune } = await import("./pruned-sets.ts");
            return applyAndPrune(admin, deps.io, documents, { ...options, prune: options.prune });
          }
          if (options.yes) throw new CommandError("usage", "--yes is only for --prune SET");
          const { applyDocuments } = await import("./apply-documents.ts");
          return applyDocuments(admin, deps.io, documents, options);
        }),
      );
    });
}

function addDiff(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const diff = program.command("diff").description("show what an apply would change, field by field");
  addAdminOptions(addFileOption(diff))
    .addHelpText(
      "after",
      `
Examples:
  krane diff -f hello.yaml
  krane diff -f manifests/ || krane apply -f manifests/

The exit code is 0 if nothing would change, 2 if something would. Secrets are not compared.
`,
    )
    .action(async () => {
      const paths = filePaths(diff);
      exitWith(
        await withAdmin(diff, deps, async (admin) => {
          const documents = await loadFiles(diff, deps, admin, paths);
          const { diffDocuments } = await import("./diff-documents.ts");
          return diffDocuments(admin, deps.io, documents);
        }),
      );
    });
}

function addGet(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const get = program
    .command("get [kind] [id]")
    .description("list objects, or show one")
    .option("--environment <id>", "only objects of this environment")
    .option("-l, --selector <conditions>", "only objects that match, such as environment=env_prod")
    .option("--deleted", "include deleted objects")
    .option("--sort-by <column>", "sort the table by this column, such as image")
    .option("-w, --watch", "print each change too, until Ctrl-C");
  addAdminOptions(get, { output: objectFormats })
    .addHelpText(
      "after",
      `
KIND is ${kinds}; pods; or all.
ID is the object's id, its name, or NAMESPACE/NAME. It also works without the kind. For pods, it names a pod, an app or
a deployment.
CONDITIONS are KEY=VALUE or KEY!=VALUE with commas between them. KEY is workspace, project, environment, namespace,
app or phase.

Examples:
  krane get deployments
  krane get deployment d_hello -o yaml
  krane get app/hello                       by kind and name
  krane get hello                           by its name alone
  krane get all -o wide                     with versions and reasons
  krane get pods web                        the pods of an app or a deployment
  krane get all -l environment=env_prod,phase!=ready
  krane get deployments --watch
  krane get deployments --sort-by image
  krane get app web -o document             a document that krane apply accepts
  krane get apps -o name                    one name per line, as commands accept it
  krane get pods web -o path=address        the value of a field, one per line
  krane get deployments -o json | jq -r '.objects[] | select(.phase != "PHASE_READY") | .ref.id'
`,
    )
    .action(async (kind: string | undefined, name: string | undefined) => {
      // Many users try this first; "missing argument" would not tell them the kinds.
      if (kind === undefined)
        throw new CommandError("usage", `which kind? krane get ${listed([...plurals, "pods", "all"], "or")}`);
      exitWith(
        await withAdmin(get, deps, async (admin) => {
          const { getObjects } = await import("./get-objects.ts");
          return getObjects(admin, deps.io, { kind, name }, get.opts<GetOptions>());
        }),
      );
    });
}

function addDescribe(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const describe = program.command("describe <object> [id]").description("show everything about one object");
  addAdminOptions(describe, { output: true })
    .addHelpText(
      "after",
      `
${names}

Examples:
  krane describe hello
  krane describe deployment d_hello
  krane describe app/hello
  krane describe env env_demo
  krane describe app web -o yaml            with its last events, for programs
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

function addEdit(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const edit = program.command("edit <object> [id]").description("change an object in your editor");
  addAdminOptions(addWaitOptions(edit, "what was changed is ready"))
    .addHelpText(
      "after",
      `
${names}

Examples:
  krane edit web
  KRANE_EDITOR="code --wait" krane edit deployment/d_hello --wait

The editor is $KRANE_EDITOR, $VISUAL or $EDITOR, else vi. If somebody else changes the object meanwhile, nothing is
applied, and your changes stay in a file.
`,
    )
    .action(async (kind: string, name: string | undefined) =>
      exitWith(
        await withAdmin(edit, deps, async (admin) => {
          const { editObject } = await import("./edit-object.ts");
          const { KRANE_EDITOR, VISUAL, EDITOR } = deps.env;
          const editor = KRANE_EDITOR || VISUAL || EDITOR || undefined;
          return editObject(admin, deps.io, { kind, name }, { ...edit.opts<WaitOptions>(), editor });
        }),
      ),
    );
}

function addScale(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const scale = program
    .command("scale <object> [id]")
    .description(`change how many pods an ${listed(scaled, "or")} has`)
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
OBJECT is an id, a name or NAMESPACE/NAME, alone or behind its kind: hello, app/hello, app hello, demo/hello.
An app keeps its current release. Its document still has the previous number, and the next krane apply goes back to that.

Examples:
  krane scale hello --replicas 3 --wait
  krane scale app/hello --replicas 2
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
    .description("delete an object, or all objects in these files")
    .option("-f, --file <path...>", "files or folders of documents to delete; - for standard input")
    .option("-y, --yes", "do not ask for confirmation")
    .addOption(ifVersion("delete only if the object is at this version"));
  addAdminOptions(addWaitOptions(command, "it is gone from the cluster"))
    .addHelpText(
      "after",
      `
KIND is ${kinds}.
ID is the object's id, its name, or NAMESPACE/NAME. It also works without the kind, if krane asks before it deletes.

Examples:
  krane delete hello                                asks first
  krane delete deployment d_hello --yes --wait
  krane delete -f hello.yaml --yes                  in the reverse order of apply

With --yes, name the object by its id, or by namespace and name as in demo/hello.
Only the kinds and ids in the files matter. Environments are deleted last.
Deleting a deployment deletes its policies. Deleting an environment deletes its secrets.
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
  const { deleteObjects, namedTarget, targetsOf } = await import("./delete-objects.ts");
  if ((kind === undefined) === (options.file === undefined))
    throw new CommandError("usage", "nothing to delete: pass either KIND ID or -f FILE");
  const targets =
    kind === undefined
      ? targetsOf(await loadFileNames(command, deps, admin))
      : [await namedTarget(admin, { kind, name }, options)];
  return deleteObjects(admin, deps.io, targets, options);
}

async function loadFiles(command: Command, { io }: CommandDeps, admin: Admin, paths: readonly string[]) {
  const { loadDocuments } = await import("./loaded-documents.ts");
  return loadDocuments(admin, io, { paths, regionFlag: regionFlag(command) });
}

async function loadFileNames(command: Command, { io }: CommandDeps, admin: Admin) {
  const { loadNames } = await import("./loaded-documents.ts");
  const { file: paths = [] } = command.opts<{ file?: readonly string[] }>();
  return loadNames(admin, io, { paths, regionFlag: regionFlag(command) });
}

function parseSetName(text: string): string {
  if (/^[a-z0-9][a-z0-9._-]{0,62}$/.test(text)) return text;
  throw new InvalidArgumentError("Must have at most 63 lower-case letters, digits, '-', '_' and '.'.");
}

function parseReplicas(text: string): number {
  if (/^\d{1,9}$/.test(text) && Number(text) <= replicasMax) return Number(text);
  throw new InvalidArgumentError(`Must be a whole number from 0 to ${replicasMax}.`);
}
