// Generates src/gen from proto/ as configured in buf.gen.yaml, with the generator pinned in
// package.json and without the network.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const projectRoot = fileURLToPath(new URL("../", import.meta.url));
execFileSync(`${projectRoot}node_modules/.bin/buf`, ["generate"], { cwd: projectRoot, stdio: "inherit" });
