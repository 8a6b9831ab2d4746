// Catalogue entries for the agent: starting and stopping, files, ports.
import type { ErrorClasses } from "./error-entry.ts";

export const agentErrors = {
  AgentError: {
    title: "Starting the agent",
    about: "Ends `krane agent`.",
    codes: {
      file_unusable: {
        exit: "config",
        means: "A file that the configuration names cannot be read, or its content is invalid.",
        remedy:
          "The message names the setting and the path. Check that the file exists, that krane's user can read it, and what is in it: `krane config check` tries them all.",
      },
      cluster_unknown: {
        exit: "config",
        means: "krane has no usable Kubernetes credentials.",
        remedy:
          "Set `kubernetes.kubeconfig`, or the variable `KUBECONFIG`, to a kubeconfig that works with kubectl, or run krane in a pod with a service account token.",
      },
      start_failed: {
        exit: "failure",
        means: "The Kubernetes API server did not respond, or rejected krane, while the agent was starting.",
        remedy:
          "Run `krane doctor` in the pod: it shows whether the API server is unreachable or a permission is missing. Then fix the network, or install krane's ClusterRole.",
      },
    },
  },
  RuntimeError: {
    title: "Running and stopping",
    about: "Ends `krane agent`, `krane server`, `krane vault serve` and `krane dev`.",
    codes: {
      task_failed: {
        exit: "failure",
        means: "A part of the process failed while it was running, and the process stopped.",
        remedy: "The message names the part and its error. Fix that error, then start krane again.",
      },
      stop_failed: {
        exit: "failure",
        means: "A part of the process failed while it was stopping.",
        remedy: "Nothing to repair: the next start finishes the work. Report it if it happens again.",
      },
      stop_timed_out: {
        exit: "failure",
        means: "A part of the process did not stop within the time limit.",
        remedy:
          "Nothing to repair: the next start finishes the work. If it happens again, check what the named part waits for: the control plane, the API server, the vault.",
      },
    },
  },
  ConfigError: {
    title: "Secrets in files",
    about: "Ends a command at its start. Later it is only logged, and krane keeps the last good value.",
    codes: {
      secret_unreadable: {
        exit: "config",
        means: "A file with a secret cannot be read.",
        remedy:
          "Check the path in the setting that the message names, and that krane's user can read the file.",
      },
      secret_invalid: {
        exit: "config",
        means: "A file with a secret was read, but its content is not valid.",
        remedy: "Write a valid value into the file: the message says what is wrong. krane reloads the file.",
      },
    },
  },
  ServiceError: {
    title: "Opening a port",
    about: "Ends `krane agent`, `krane server`, `krane vault serve` and `krane dev` at their start.",
    codes: {
      port_in_use: {
        exit: "failure",
        means: "Another process listens on the port.",
        remedy: "Stop that process (`ss -ltnp` shows it), or change the setting that the message names.",
      },
      port_forbidden: {
        exit: "failure",
        means: "krane's user may not listen on the port.",
        remedy: "Use a port above 1023 in the setting that the message names.",
      },
      port_unavailable: {
        exit: "failure",
        means: "Listening on the port failed for another reason.",
        remedy:
          "The message ends with the operating system's error. Check the address and the port in the setting that it names.",
      },
      certificate_unusable: {
        exit: "config",
        means: "The TLS certificate or its key cannot be read, or they do not belong together.",
        remedy:
          "Check `tls.cert_file` and `tls.key_file`: both must be PEM, readable by krane's user, and belong to the same key pair.",
      },
    },
  },
} as const satisfies ErrorClasses;
