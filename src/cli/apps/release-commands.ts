// Flags and help of krane release and krane rollout. Their code is imported only when they run.
import { type Command, InvalidArgumentError, Option } from "commander";
import { type Admin, addAdminOptions, type CommandDeps, withAdmin } from "../admin/admin-access.ts";
import { CommandError } from "../command-error.ts";
import { addWaitOptions, waitTimeout } from "../objects/command-wait.ts";
import { ifVersion } from "../objects/if-version.ts";
import type { ReleaseChange, ReleaseOptions, StatusOptions } from "./release-app.ts";

type ExitWith = (code: number) => void;

const names = `
APP is the app's id or its name: web, app/web, app web or demo/web.
`;

export function addReleaseCommands(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  addRelease(program, deps, exitWith);
  const rollout = program
    .command("rollout")
    .description("follow, undo or pause the releases of an app")
    .addHelpText(
      "after",
      `
Examples:
  krane rollout status web                  wait until the release has ended
  krane rollout history web                 list the releases
  krane rollout undo web --wait             go back to the one before
`,
    );
  addStatus(rollout, deps, exitWith);
  addHistory(rollout, deps, exitWith);
  addUndo(rollout, deps, exitWith);
  addChange(rollout, deps, exitWith, {
    word: "restart",
    about: "start a new release of the same program, with the newest secrets",
  });
  addChange(rollout, deps, exitWith, {
    word: "pause",
    about: "hold back releases: none starts or becomes current until krane rollout resume",
  });
  addChange(rollout, deps, exitWith, {
    word: "resume",
    about: "resume releases, and release what was applied meanwhile",
  });
}

function addRelease(program: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const release = program
    .command("release <app> [name]")
    .description("start a new release of an app")
    .option("--image <image>", "the image to release; everything else stays as it was applied")
    .option("--restart", "release the same program again, with the newest secrets of its environment")
    .addOption(ifVersion("release only if the app is at this version"));
  addAdminOptions(addWaitOptions(release, "the release is current and its pods are ready"))
    .addHelpText(
      "after",
      `${names}
Examples:
  krane release web --image registry.example/web:42 --wait
  krane release app/web --restart           after krane secrets set

The app's document does not change: the next krane apply goes back to the image in it. Change the image there as well.
`,
    )
    .action(async (first: string, second: string | undefined) => {
      const options = release.opts<ReleaseOptions & { image?: string; restart?: true }>();
      if ((options.image === undefined) === (options.restart === undefined))
        throw new CommandError("usage", "nothing to release: pass either --image IMAGE or --restart");
      const change: ReleaseChange =
        options.image === undefined ? { kind: "restart" } : { kind: "image", image: options.image };
      exitWith(
        await withAdmin(release, deps, (admin) => changed(admin, deps, { first, second }, change, options)),
      );
    });
}

async function changed(
  admin: Admin,
  { io }: CommandDeps,
  named: { readonly first: string; readonly second: string | undefined },
  change: ReleaseChange,
  options: ReleaseOptions,
): Promise<number> {
  const { changeReleases } = await import("./release-app.ts");
  return changeReleases(admin, io, named, change, options);
}

function addChange(
  rollout: Command,
  deps: CommandDeps,
  exitWith: ExitWith,
  { word, about }: { readonly word: "restart" | "pause" | "resume"; readonly about: string },
): void {
  const command = rollout
    .command(`${word} <app> [name]`)
    .description(about)
    .addOption(ifVersion(`${word} only if the app is at this version`));
  if (word !== "pause") addWaitOptions(command, "the release is current and its pods are ready");
  addAdminOptions(command)
    .addHelpText("after", `${names}\nExample:\n  krane rollout ${word} app/web\n`)
    .action(async (first: string, second: string | undefined) =>
      exitWith(
        await withAdmin(command, deps, (admin) =>
          changed(admin, deps, { first, second }, { kind: word }, command.opts<ReleaseOptions>()),
        ),
      ),
    );
}

function addUndo(rollout: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const undo = rollout
    .command("undo <app> [name]")
    .description("go back to what an earlier release ran")
    .addOption(
      new Option("--to-release <number>", "the release to go back to (default: the one before)").argParser(
        parseNumber,
      ),
    )
    .addOption(ifVersion("undo only if the app is at this version"));
  addAdminOptions(addWaitOptions(undo, "the release is current and its pods are ready"))
    .addHelpText(
      "after",
      `${names}
Examples:
  krane rollout undo web --wait
  krane rollout undo web --to-release 3     see krane rollout history web

Without --to-release, undo goes back to the release before the current one; while a release is starting, or after it has
failed, to the current one. If the pods of that release still run and are all ready, as while it is Draining, traffic moves
back to them at once. Otherwise what it ran starts as a new release, with the newest secrets of its environment.
`,
    )
    .action(async (first: string, second: string | undefined) => {
      const { toRelease: number = 0, ...options } = undo.opts<ReleaseOptions & { toRelease?: number }>();
      exitWith(
        await withAdmin(undo, deps, (admin) =>
          changed(admin, deps, { first, second }, { kind: "undo", number }, options),
        ),
      );
    });
}

function addStatus(rollout: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const status = rollout
    .command("status <app> [name]")
    .description("wait until a release ends, and show its state")
    .option("--no-wait", "only show its state")
    .addOption(waitTimeout());
  addAdminOptions(status)
    .addHelpText("after", `${names}\nExample:\n  krane rollout status web --timeout 10m\n`)
    .action(async (first: string, second: string | undefined) =>
      exitWith(
        await withAdmin(status, deps, async (admin) => {
          const { showStatus } = await import("./release-app.ts");
          return showStatus(admin, deps.io, { first, second }, status.opts<StatusOptions>());
        }),
      ),
    );
}

function addHistory(rollout: Command, deps: CommandDeps, exitWith: ExitWith): void {
  const history = rollout.command("history <app> [name]").description("list the releases of an app");
  addAdminOptions(history)
    .addHelpText("after", `${names}\nExample:\n  krane rollout history web\n`)
    .action(async (first: string, second: string | undefined) =>
      exitWith(
        await withAdmin(history, deps, async (admin) => {
          const { showHistory } = await import("./release-app.ts");
          return showHistory(admin, deps.io, { first, second });
        }),
      ),
    );
}

function parseNumber(text: string): number {
  if (/^[1-9]\d{0,6}$/.test(text)) return Number(text);
  throw new InvalidArgumentError("Must be the number of a release.");
}
