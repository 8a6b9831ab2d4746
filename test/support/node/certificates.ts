// The certificates of a cluster with a real node: one authority, and a certificate for each end of each connection
// between the API server and the kubelet. The kubelet's names it as one node, as NodeRestriction and the Node authorizer
// expect.

import { execFile } from "node:child_process";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { promisify } from "node:util";

export interface KeyPair {
  readonly certificate: string;
  readonly key: string;
}

/** Paths of PEM files. */
export interface Certificates {
  readonly authority: string;
  readonly apiServer: KeyPair;
  readonly kubeletClient: KeyPair;
  readonly kubeletServer: KeyPair;
  /** With which the API server calls the kubelet. */
  readonly apiServerAsClient: KeyPair;
}

/** The user that the kubelet sees when the API server calls it. */
export const kubeletCaller = "kube-apiserver-kubelet-client";

const run = promisify(execFile);
const days = ["-days", "2"];
const newKey = ["-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-noenc"];

export async function createCertificates(
  dir: string,
  node: { readonly name: string; readonly address: string },
): Promise<Certificates> {
  await mkdir(dir, { mode: 0o700 });
  const config = join(dir, "openssl.cnf");
  // The machine's own configuration adds extensions.
  await writeFile(config, "[req]\ndistinguished_name = name\n[name]\n");
  const request = (name: string, subject: string, ...more: string[]) =>
    run("openssl", [
      "req",
      "-x509",
      "-config",
      config,
      "-subj",
      subject,
      ...newKey,
      ...days,
      ...files(dir, name),
      ...more,
    ]);
  await request("ca", "/CN=krane-test-ca", "-addext", "basicConstraints=critical,CA:TRUE");
  const issue = async (name: string, subject: string, usage: string, subjectAltName?: string) => {
    const signer = ["-CA", join(dir, "ca.crt"), "-CAkey", join(dir, "ca.key")];
    const extensions = ["basicConstraints=critical,CA:FALSE", `extendedKeyUsage=${usage}`];
    if (subjectAltName !== undefined) extensions.push(`subjectAltName=${subjectAltName}`);
    await request(name, subject, ...signer, ...extensions.flatMap((extension) => ["-addext", extension]));
    return { certificate: join(dir, `${name}.crt`), key: join(dir, `${name}.key`) };
  };
  const services = [
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
  ];
  const serverNames = [
    ...services.map((each) => `DNS:${each}`),
    "IP:10.96.0.1",
    "IP:127.0.0.1",
    `IP:${node.address}`,
  ];
  const nodeSubject = `/O=system:nodes/CN=system:node:${node.name}`;
  const [apiServer, kubeletClient, kubeletServer, apiServerAsClient] = await Promise.all([
    issue("api-server", "/CN=kube-apiserver", "serverAuth", serverNames.join(",")),
    issue("kubelet-client", nodeSubject, "clientAuth"),
    issue("kubelet-server", nodeSubject, "serverAuth", `DNS:${node.name},IP:${node.address}`),
    issue("api-server-as-client", `/CN=${kubeletCaller}`, "clientAuth"),
  ]);
  return { authority: join(dir, "ca.crt"), apiServer, kubeletClient, kubeletServer, apiServerAsClient };
}

function files(dir: string, name: string): readonly string[] {
  return ["-keyout", join(dir, `${name}.key`), "-out", join(dir, `${name}.crt`)];
}
