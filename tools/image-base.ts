// Makes a stand-in for the base image of deploy/image/Dockerfile where no registry can be reached: the same libraries
// from Debian packages, the same Node from npm, the same user, and no shell. It proves the instructions of the
// Dockerfile, not the base image that production uses.

import { execFile } from "node:child_process";
import { createHash } from "node:crypto";
import { chmod, copyFile, mkdir, mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { withBuildLock } from "./build-lock.ts";
import { type Architecture, extractPackagesFor, ownArchitecture } from "./debian-tool.ts";
import { type ImageStore, requireImageTools, withImageStore } from "./image-store.ts";

export interface BaseOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly report: (line: string) => void;
  /** Default: that of this machine. */
  readonly architecture?: Architecture;
}

const run = promisify(execFile);
const self = fileURLToPath(import.meta.url);
const node24Dir = fileURLToPath(new URL("node24", import.meta.url));
/** The Debian release of the base. */
export const baseSuite = "trixie";
const packages = ["base-files", "ca-certificates", "libc6", "libgcc-s1", "libstdc++6", "netbase", "tzdata"];
const user = 65532;

// Programs that come with the packages above. Production's base has none.
const programs = [
  "./usr/bin",
  "./usr/sbin",
  "./usr/share/doc",
  "./usr/share/man",
  "./usr/share/perl*",
  "./var/lib/dpkg",
];

/** Only root can make them, and a container gets its own. */
const devices = "./dev/*";

const accounts = {
  passwd: `root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:${user}:${user}:nonroot:/home/nonroot:/sbin/nologin\n`,
  group: `root:x:0:\nnonroot:x:${user}:\n`,
} as const;

/** Returns an OCI archive with the image under that name. */
export async function resolveStandInBase(
  name: string,
  { env, report, architecture = ownArchitecture }: BaseOptions,
  signal: AbortSignal,
): Promise<string> {
  const facts = [
    name,
    architecture,
    await readFile(self, "utf8"),
    await readFile(join(node24Dir, "package-lock.json"), "utf8"),
  ];
  const key = createHash("sha256").update(facts.join("\n")).digest("hex").slice(0, 12);
  const cache = join(env["XDG_CACHE_HOME"] || join(homedir(), ".cache"), "krane", "image-base");
  const archive = join(cache, key, "base.tar");
  const build = async () => {
    if (await isFile(archive)) return;
    await requireImageTools();
    report(`image: making a stand-in for the ${architecture} base image from Debian packages, once`);
    const work = await mkdtemp(join(tmpdir(), "krane-image-base-"));
    try {
      const node = await provideNode24(architecture, join(work, "node24"), signal);
      await makeRoot(join(work, "root"), { architecture, node }, signal);
      await pack(name, { work, architecture }, archive, signal);
    } finally {
      await rm(work, { recursive: true, force: true });
    }
  };
  const onWait = () => report("image: another process is making the base image; waiting for it");
  await withBuildLock(join(cache, `${key}.lock`), onWait, build, signal);
  return archive;
}

/** The Node that production runs on, from npm. `make .cache/node24` installs that of this machine. */
async function provideNode24(
  architecture: Architecture,
  folder: string,
  signal: AbortSignal,
): Promise<string> {
  const cpu = architecture === "amd64" ? "x64" : architecture;
  const installed = join(`node_modules/node-linux-${cpu}`, "bin/node");
  const own = join(node24Dir, installed);
  if (await isFile(own)) return own;
  if (architecture === ownArchitecture) throw new Error("Node 24 is not installed: run `make .cache/node24`");
  await mkdir(folder);
  for (const file of ["package.json", "package-lock.json"])
    await copyFile(join(node24Dir, file), join(folder, file));
  const flags = ["--no-progress", "--ignore-scripts", "--os=linux", `--cpu=${cpu}`];
  await run("npm", ["ci", ...flags], { cwd: folder, signal });
  return join(folder, installed);
}

async function makeRoot(
  root: string,
  { architecture, node }: { readonly architecture: Architecture; readonly node: string },
  signal: AbortSignal,
): Promise<void> {
  const archive = `${root}.tar`;
  await extractPackagesFor(architecture, packages, baseSuite, archive, signal);
  await mkdir(root);
  const without = [devices, ...programs].map((path) => `--exclude=${path}`);
  const exactly = ["--same-permissions", "--anchored", "--wildcards", ...without];
  await run("tar", ["-xf", archive, "-C", root, ...exactly], { signal });
  await rm(archive);
  for (const [file, text] of Object.entries(accounts)) await writeFile(join(root, "etc", file), text);
  // The package's own script would write this file, but scripts of packages are not run.
  const certificates = join(root, "usr/share/ca-certificates/mozilla");
  const texts = await Promise.all(
    (await readdir(certificates)).sort().map((each) => readFile(join(certificates, each), "utf8")),
  );
  await writeFile(join(root, "etc/ssl/certs/ca-certificates.crt"), texts.join("\n"));
  await mkdir(join(root, "nodejs/bin"), { recursive: true });
  await copyFile(node, join(root, "nodejs/bin/node"));
  await chmod(join(root, "nodejs/bin/node"), 0o555);
  await mkdir(join(root, "tmp"), { recursive: true });
  await chmod(join(root, "tmp"), 0o1777);
}

async function pack(
  name: string,
  { work, architecture }: { readonly work: string; readonly architecture: Architecture },
  archive: string,
  signal: AbortSignal,
): Promise<void> {
  const dockerfile = join(work, "Dockerfile");
  const lines = [
    "FROM scratch",
    "COPY root/ /",
    "ENV PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin SSL_CERT_FILE=/etc/ssl/certs/ca-certificates.crt",
    "WORKDIR /home/nonroot",
    `USER ${user}:${user}`,
    'ENTRYPOINT ["/nodejs/bin/node"]',
  ];
  await writeFile(dockerfile, `${lines.join("\n")}\n`);
  const build = async (store: ImageStore) => {
    await store.build({ tag: name, dockerfile, context: work, args: platformOf(architecture) });
    await store.save(name, archive);
  };
  await withImageStore(build, signal);
}

/** Nothing runs while an image is built, so any machine builds for any architecture. */
export function platformOf(architecture: Architecture): readonly string[] {
  return ["--platform", `linux/${architecture}`];
}

async function isFile(path: string): Promise<boolean> {
  return stat(path).then(
    (entry) => entry.isFile(),
    () => false,
  );
}
