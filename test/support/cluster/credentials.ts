// Who may talk to a test cluster. Identities are bearer tokens in a file that
// the API server reads, so there is no certificate authority to keep; the
// serving certificate is made by the API server itself. Only a real node's
// kubelet has a client certificate.

import { generateKeyPairSync, randomBytes } from "node:crypto";
import { writeFile } from "node:fs/promises";
import { join } from "node:path";

export interface Identity {
  readonly user: string;
  readonly token: string;
  readonly kubeconfigPath: string;
  readonly groups: readonly string[];
}

export interface Identities {
  readonly admin: Identity;
  readonly agent: Identity;
  readonly controllerManager: Identity;
  readonly scheduler: Identity;
  readonly kwok: Identity;
  /** Only with a real node. Kubernetes gives this user its rights. */
  readonly kubeProxy: Identity;
}

/** The users whose calls keep the cluster itself going; the audit log leaves them out. */
export const controlPlaneUsers = ["system:apiserver", "kube-controller-manager", "kube-scheduler", "kwok"];

export function createIdentities(dir: string): Identities {
  const identity = (user: string, groups: readonly string[]): Identity => ({
    user,
    groups,
    token: randomBytes(24).toString("base64url"),
    kubeconfigPath: join(dir, `${user}.kubeconfig`),
  });
  return {
    admin: identity("admin", ["system:masters"]),
    agent: identity("krane-agent", []),
    controllerManager: identity("kube-controller-manager", ["system:masters"]),
    scheduler: identity("kube-scheduler", ["system:masters"]),
    kwok: identity("kwok", ["system:masters"]),
    kubeProxy: identity("system:kube-proxy", []),
  };
}

export async function writeTokenFile(path: string, identities: Identities): Promise<void> {
  const lines = Object.values(identities).map(({ user, token, groups }: Identity) =>
    [token, user, user, `"${groups.join(",")}"`].join(","),
  );
  await writeFile(path, `${lines.join("\n")}\n`, { mode: 0o600 });
}

/** The key that signs the tokens of service accounts. */
export async function writeServiceAccountKey(path: string): Promise<void> {
  const { privateKey } = generateKeyPairSync("rsa", { modulusLength: 2048 });
  await writeFile(path, privateKey.export({ type: "pkcs1", format: "pem" }), { mode: 0o600 });
}

export async function writeKubeconfig(identity: Identity, serverUrl: string, ca: string): Promise<void> {
  const text = kubeconfig(identity.user, { token: identity.token }, serverUrl, ca);
  await writeFile(identity.kubeconfigPath, text, { mode: 0o600 });
}

/** `credentials` are the fields of a kubeconfig's user. */
export function kubeconfig(
  user: string,
  credentials: Readonly<Record<string, string>>,
  serverUrl: string,
  ca: string,
): string {
  const name = "krane-test";
  const config = {
    apiVersion: "v1",
    kind: "Config",
    clusters: [
      {
        name,
        cluster: { server: serverUrl, "certificate-authority-data": Buffer.from(ca).toString("base64") },
      },
    ],
    users: [{ name: user, user: credentials }],
    contexts: [{ name, context: { cluster: name, user } }],
    "current-context": name,
  };
  return JSON.stringify(config, null, 2);
}
