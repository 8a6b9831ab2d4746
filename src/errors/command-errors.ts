// Catalogue entries for commands that people run, and for `krane exec` in containers.
import type { ErrorClasses } from "./error-entry.ts";

export const commandErrors = {
  CommandError: {
    title: "Commands",
    about: "Ends commands that people and scripts run, such as `krane apply`.",
    codes: {
      failed: {
        exit: "failure",
        means: "The control plane rejected the request, a file is wrong, or something was not ready in time.",
        remedy: "The message says what to change. For an object that does not become ready: `krane why`.",
      },
      not_found: {
        exit: "notFound",
        means: "The object, region or file does not exist.",
        remedy: "Check the spelling and the region: `krane get` lists what exists.",
      },
      usage: {
        exit: "usage",
        means: "The command line is wrong.",
        remedy: "Run the command with `--help`.",
      },
      unreachable: {
        exit: "unreachable",
        means: "There is no control plane or vault at the address, or it cannot be reached.",
        remedy: "Check that the server runs, and the URL and the CA in the context: `krane context show`.",
      },
      denied: {
        exit: "denied",
        means: "The token was rejected, or does not allow this.",
        remedy:
          "Use another token: `krane context show` shows where it comes from. Changes need one with the role `read-write`.",
      },
      config: {
        exit: "config",
        means: "The context, the configuration, or a file that it names is wrong.",
        remedy: "Correct what the message names: `krane context show`, `krane config check`.",
      },
    },
  },
  InputError: {
    title: "Reading a file or standard input",
    about: "Ends commands that read a file or standard input.",
    codes: {
      too_large: {
        exit: "failure",
        means: "The input is larger than the command accepts.",
        remedy: "Make it smaller: the message states the limit.",
      },
      unreadable: {
        exit: "failure",
        means: "The file or standard input cannot be read.",
        remedy: "Check the path, and that you may read the file.",
      },
      not_text: {
        exit: "failure",
        means: "The input is not UTF-8 text.",
        remedy: "Save it as UTF-8, or encode binary data, for example with base64.",
      },
    },
  },
  ExecError: {
    title: "Starting a program with its secrets",
    about: "Ends `krane exec` in a pod, before the program starts.",
    codes: {
      setup_wrong: {
        exit: "config",
        means: "A variable or file that krane puts into the pod is missing or wrong.",
        remedy:
          "Check that krane created the pod, and that neither the image nor a webhook changes its `UNKEY_` variables or its token. If the message names `secrets.endpoint`, correct that.",
      },
      refused: {
        exit: "failure",
        means: "krane refused to give this pod the secrets.",
        remedy:
          "Read the agent's log: a line with the component `secrets` says why. A pod that krane does not know yet gets them at a later restart.",
      },
      unavailable: {
        exit: "failure",
        means: "krane could not be reached, or could not respond, for as long as the command tried.",
        remedy:
          "Check that the agent runs, is reachable from the pod at `secrets.endpoint`, and reaches the Kubernetes API and its vault: `krane doctor`.",
      },
      unusable: {
        exit: "failure",
        means: "krane responded, but no program can be started with the response.",
        remedy:
          "Encode values that contain NUL characters, for example with base64, and keep each variable and argument below 128 KiB.",
      },
      command_missing: {
        exit: "commandMissing",
        means: "The command was not found.",
        remedy: "Check the deployment's command, and that the image has it in its `PATH`.",
      },
      command_unusable: {
        exit: "commandUnusable",
        means: "The command exists, but cannot be run.",
        remedy: "Check that the file is executable, and built for the node's architecture.",
      },
    },
  },
  DevError: {
    title: "krane dev",
    about: "Ends `krane dev`, or is shown when an action fails.",
    codes: {
      cluster_in_use: {
        exit: "failure",
        means: "Another krane manages the cluster that `--kubeconfig` names.",
        remedy: "Use a cluster without krane, or leave the flag out to get an embedded one.",
      },
      cluster_unusable: {
        exit: "failure",
        means: "The cluster did not respond, or does not give krane access.",
        remedy: "Check the kubeconfig: `kubectl get namespaces` must work with it.",
      },
      file_unusable: {
        exit: "failure",
        means: "The kubeconfig or the contexts file cannot be written.",
        remedy: "Choose another place with `--write-kubeconfig`.",
      },
      nothing_to_do: {
        means: "No object matches the action.",
        remedy: "Choose an object that the action is for, or wait until it exists.",
      },
    },
  },
} as const satisfies ErrorClasses;
