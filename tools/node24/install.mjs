// Installs Node 24 from npm into this folder: `node tools/node24/install.mjs`. Its packages are optional dependencies, one
// per platform. npm skips an optional one whose download fails, without a word and with exit code 0, so that the result is
// checked here and the download retried.
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const attemptsMax = 3;
const name = `node-${process.platform}-${process.arch}`;
const program = join(folder, "node_modules", name, "bin", "node");
const hasPackage = process.platform === "linux" && ["arm64", "x64"].includes(process.arch);

for (let attempt = 1; attempt <= attemptsMax; attempt++) {
  execFileSync("npm", ["ci", "--no-progress", "--ignore-scripts", "--prefix", folder], { stdio: "inherit" });
  if (!hasPackage || existsSync(program)) break;
  console.error(`npm left out ${name} without an error (attempt ${attempt} of ${attemptsMax})`);
}
if (!hasPackage) {
  console.error(`Node 24 is not installed: npm has no package of it for ${process.platform} ${process.arch}`);
} else if (!existsSync(program)) {
  console.error(
    `Node 24 is not installed: npm did not download ${name}; check the network and npm's registry`,
  );
  process.exitCode = 1;
}
