// Catalogue entries for the services that krane calls: Kubernetes, the control plane, the vault.
import type { ErrorClasses } from "./error-entry.ts";

export const peerErrors = {
  KubeApiError: {
    title: "Calling the Kubernetes API server",
    about: "In the agent's log. RPC code: returned by SecretsService when it cannot reach Kubernetes.",
    codes: {
      refused: {
        rpc: "unavailable",
        means: "The API server returned an error status.",
        remedy:
          "Look at the status in the message. 401, 403: krane's credentials or ClusterRole (`krane doctor`). 404: a missing namespace or CRD. 422: an invalid object (`krane why` names the field). 409, 429, 5xx: krane retries.",
      },
      network: {
        rpc: "unavailable",
        means: "The connection to the API server failed or broke.",
        remedy:
          "Check that the API server runs and is reachable from the pod: DNS, network policies, its certificate. krane retries.",
      },
      timeout: {
        rpc: "unavailable",
        means: "The API server did not respond in time, or a watch fell silent.",
        remedy: "Check the load of the API server and its admission webhooks. krane retries.",
      },
      "too-large": {
        rpc: "unavailable",
        means: "A response was larger than krane's limit, and krane stopped reading it.",
        remedy: "Look for oversized objects of the kind that the message names, and make them smaller.",
      },
      malformed: {
        rpc: "unavailable",
        means: "The response does not follow the Kubernetes API.",
        remedy:
          "Check that the address belongs to an API server, and that no proxy in between changes its responses.",
      },
      "invalid-name": {
        rpc: "unavailable",
        means: "A name or namespace cannot be part of a URL. Nothing was sent.",
        remedy: "Correct the name at the control plane: `krane why` shows the object.",
      },
      "no-lease": {
        rpc: "unavailable",
        means:
          "This agent does not hold the lease of its region for long enough, so it may not write. Nothing was sent.",
        remedy:
          "Nothing if another agent of the region leads. Otherwise look at the lease in `krane status`: the API server may be slow, or krane may lack the permission to use Leases (`krane doctor`).",
      },
      credentials: {
        rpc: "unavailable",
        means: "krane has no usable credentials for the API server. Nothing was sent.",
        remedy:
          "Check the pod's service account token, or the user and the exec plugin in the kubeconfig. `krane doctor` says what is missing.",
      },
    },
  },
  ControlPlaneError: {
    title: "Calling the control plane",
    about:
      "In the agent's log, at `/health/ready` and in `krane status`. The code is the one that the control plane returned, or the closest one when there was no response. krane continues with its last known state, and retries.",
    codes: {
      canceled: {
        means: "krane closed the connection, or the server canceled the call.",
        remedy: "Nothing while krane is stopping. Otherwise read the control plane's log.",
      },
      unknown: {
        means: "The call failed without a known reason.",
        remedy:
          "Read the control plane's log of that time. If it has no error, report the message as a bug in krane.",
      },
      invalid_argument: {
        means: "The control plane rejected the request as invalid.",
        remedy: "Use compatible versions of agent and control plane. The message names the field.",
      },
      deadline_exceeded: {
        means: "The control plane did not respond in time.",
        remedy: "Check the load of the control plane and its database, and the network to it.",
      },
      not_found: {
        means: "The control plane does not know the object.",
        remedy:
          "Nothing for a single object: the agent deletes it only after several such responses. If the control plane does not know any object, check `region`, and whether its database was restored or emptied; `krane deletions list` shows the deletions that the agent holds back.",
      },
      already_exists: {
        means: "The control plane says that the object already exists.",
        remedy: "Not expected from a krane server. Check which server is behind `control.url`, and its log.",
      },
      permission_denied: {
        means: "The token is valid, but not for this region.",
        remedy:
          "Put the token of this `region` into `control.token`; the server has it in `server.agent_tokens`.",
      },
      resource_exhausted: {
        means: "The control plane is overloaded, or a response is too large for krane.",
        remedy: "Wait: krane slows down. If it lasts, raise the limits of the control plane.",
      },
      failed_precondition: {
        means: "The state of the control plane does not allow the call. Usually it does not know the region.",
        remedy: "Check `region`, and add a token for this region to `server.agent_tokens`.",
      },
      aborted: {
        means: "The control plane canceled the call because of a concurrent change.",
        remedy: "Nothing: krane retries. If it lasts, read the control plane's log.",
      },
      out_of_range: {
        means:
          "The agent has seen a newer version than the control plane has, for example after its database was restored.",
        remedy:
          "Nothing: the agent reads everything again. After a restore, check `krane deletions list` and restore missing objects.",
      },
      unimplemented: {
        means: "The server at `control.url` does not have this call.",
        remedy:
          "Check that `control.url` points to a control plane. If it only lacks a newer call, the agent works without it.",
      },
      internal: {
        means: "The control plane failed, or its response cannot be read.",
        remedy: "Read the control plane's log. If it has no error, look for a proxy that changes responses.",
      },
      unavailable: {
        means: "The control plane cannot be reached, or is not accepting calls.",
        remedy:
          "Check that `control.url` is reachable from the pod: DNS, network policies, the server itself, its certificate (`control.ca_file`).",
      },
      data_loss: {
        means: "The control plane says that data is lost or damaged.",
        remedy: "Check the control plane's database and its log.",
      },
      unauthenticated: {
        means: "The control plane rejected the token, or krane has none to send.",
        remedy:
          "Check `control.token`, or the file in `control.token_file`, against `server.agent_tokens`. krane reloads the file.",
      },
    },
  },
  VaultError: {
    title: "Encrypting and decrypting",
    about:
      "Ends the commands of `krane vault`, and is in the log of the agent and of `krane vault serve`. `krane secrets set` turns it into a CommandError. RPC code: returned by VaultService, and by SecretsService where it differs.",
    codes: {
      invalid: {
        exit: "failure",
        rpc: "invalid_argument",
        rpcOfSecrets: "internal",
        means:
          "The request is wrong: an invalid keyring name, an empty context, or a value that is too large.",
        remedy: "Correct what the message names.",
      },
      undecryptable: {
        exit: "failure",
        rpc: "invalid_argument",
        rpcOfSecrets: "internal",
        means: "The ciphertext does not belong to this keyring and name, or was changed.",
        remedy:
          "Check that the value was encrypted for this environment, under this name and with this vault. Otherwise set it again: `krane secrets set`.",
      },
      unauthenticated: {
        exit: "failure",
        rpc: "internal",
        rpcOfSecrets: "unavailable",
        means: "The vault rejected the token, or krane has none to send.",
        remedy: "Check `vault.token`, or the file in `vault.token_file`, against the token of the vault.",
      },
      unavailable: {
        exit: "failure",
        rpc: "unavailable",
        means: "The vault or its storage cannot be reached, or is too slow.",
        remedy:
          "Check that `vault.url`, or the folder or S3 bucket of an embedded vault, can be reached from the pod: network, credentials, free space. Retrying is safe.",
      },
      unusable_key: {
        exit: "failure",
        rpc: "internal",
        means: "A stored data key is damaged, or encrypted with a master key that is not configured.",
        remedy:
          "Put the missing master key back into `vault.master_keys`, before the newest one. Restore a damaged object from a backup: the message names it.",
      },
      internal: {
        exit: "failure",
        rpc: "internal",
        means: "The vault failed, or its response is invalid.",
        remedy: "Read the vault's log, and check that `vault.url` points to a vault.",
      },
    },
  },
  DeadlineError: {
    title: "Time limits",
    about: "In the log, usually as the cause of another error. RPC code: returned by SecretsService.",
    codes: {
      deadline_exceeded: {
        exit: "failure",
        rpc: "unavailable",
        means: "A call did not end within its time limit.",
        remedy: "The log line names the call. Check the load of the called server, and the network to it.",
      },
    },
  },
  CircuitOpenError: {
    title: "Circuit breakers",
    about:
      "In the log, or in the message of another error. krane did not make the call, because the peer keeps failing.",
    codes: {
      tripped: {
        means: "The peer failed several times within seconds, so krane does not call it for up to a minute.",
        remedy: "Fix the peer: the log lines before this one have its errors. krane detects its recovery.",
      },
      too_many_probes: {
        means: "krane is probing a failed peer with a few calls, and this call was not one of them.",
        remedy: "Nothing: if the peer responds, calls resume within seconds.",
      },
    },
  },
} as const satisfies ErrorClasses;
