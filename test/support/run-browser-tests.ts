// `make test-browser`: runs test/browser in Chromium, or says loudly why not.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findDebianProgram } from "./debian-program.ts";

const testsDir = fileURLToPath(new URL("../browser", import.meta.url));
const suite = fileURLToPath(new URL("../../tools/test-suite.ts", import.meta.url));

const chromium = await findDebianProgram({
  title: "Chromium",
  packageName: "chromium",
  names: ["chromium", "chromium-browser", "google-chrome"],
});
if (chromium.kind === "missing") {
  const { what, isFatal } = chromium;
  console.error(`BROWSER TESTS ${isFatal ? "FAILED, not run" : "SKIPPED"}: ${what}`);
  process.exitCode = isFatal ? 1 : 0;
} else {
  const named = process.argv.slice(2);
  const all = (await readdir(testsDir))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(testsDir, name));
  const files = named.length > 0 ? named : all;
  const child = spawn(process.execPath, [...process.execArgv, suite, "1", ...files], {
    env: { ...process.env, KRANE_TEST_CHROMIUM: chromium.path },
    stdio: "inherit",
  });
  const [status] = await once(child, "close");
  process.exitCode = status === 0 ? 0 : 1;
}
