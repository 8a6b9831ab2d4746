// Writes src/gen from proto/, as buf.gen.yaml says: with the pinned generator of
// package.json and without the network.
import { execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";

const projectRoot = fileURLToPath(new URL("../", import.meta.url));
execFileSync(`${projectRoot}node_modules/.bin/buf`, ["generate"], { cwd: projectRoot, stdio: "inherit" });
