// krane completion: prints a shell completion script.
import { Argument, type Command } from "commander";
import type { CommandDeps } from "../admin/admin-access.ts";

const examples = `
Examples:
  source <(krane completion bash)                                     for this shell
  krane completion bash > ~/.local/share/bash-completion/completions/krane
  krane completion zsh > "\${fpath[1]}/_krane"                         then start a new shell
  krane completion fish > ~/.config/fish/completions/krane.fish

Names of objects, contexts and regions are completed too, with the context or the flags that are typed before.
`;

export function addCompletionCommand(program: Command, deps: CommandDeps): void {
  const { io } = deps;
  program
    .command("completion")
    .description("print a shell completion script")
    .addArgument(new Argument("<shell>", "which shell").choices(["bash", "zsh", "fish"]))
    .addHelpText("after", examples)
    .action(async (shell: "bash" | "zsh" | "fish") => {
      const { completedCommands } = await import("./completion-model.ts");
      const { completionScript } = await import("./completion-scripts.ts");
      const { kindNames } = await import("../../kinds/kinds.ts");
      const { scaledKinds, wordsOfKinds } = await import("../objects/object-names.ts");
      const { liveCommands, liveFlags } = await import("./live-words.ts");
      const first = new Map([
        ["krane get", [...wordsOfKinds(), "pods", "all"]],
        ["krane describe", wordsOfKinds()],
        ["krane edit", wordsOfKinds()],
        ["krane delete", wordsOfKinds()],
        ["krane events", wordsOfKinds()],
        ["krane scale", wordsOfKinds(scaledKinds)],
        ["krane why", wordsOfKinds(["app", ...kindNames])],
        ["krane explain", wordsOfKinds()],
      ]);
      const commands = completedCommands(program, { first, live: liveCommands, liveFlags });
      io.stdout.write(completionScript(shell, commands));
    });
  program
    .command("complete-words", { hidden: true })
    .argument("[words...]")
    .action(async (words: readonly string[]) => {
      const { printLiveWords } = await import("./live-words.ts");
      await printLiveWords(program, words, deps);
    });
}
