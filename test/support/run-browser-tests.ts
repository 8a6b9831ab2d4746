// `make test-browser`: runs test/browser in Chromium, or says loudly why not. A machine without Chromium passes without these tests;
// in CI, as root, it is installed, and a skip is a failure.
import { spawn } from "node:child_process";
import { once } from "node:events";
import { access, readdir } from "node:fs/promises";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { installPackages } from "./node/machine.ts";

const testsDir = fileURLToPath(new URL("../browser", import.meta.url));
const suite = fileURLToPath(new URL("../../tools/test-suite.ts", import.meta.url));
const names = ["chromium", "chromium-browser", "google-chrome"];

async function findChromium(): Promise<string | undefined> {
  const places = (process.env["PATH"] ?? "")
    .split(":")
    .flatMap((folder) => names.map((name) => join(folder, name)));
  for (const place of places) {
    const isThere = await access(place).then(
      () => true,
      () => false,
    );
    if (isThere) return place;
  }
  return undefined;
}

/** Undefined, with the reason on one line, where there is none. */
async function prepareChromium(): Promise<{ readonly path?: string; readonly what: string }> {
  const found = await findChromium();
  const what = "Chromium is missing; install it: apt-get install --yes --no-install-recommends chromium";
  if (found !== undefined) return { path: found, what };
  if (process.env["CI"] !== "true" || process.getuid?.() !== 0) return { what };
  console.error("browser tests: installing chromium");
  try {
    await installPackages(["chromium"]);
  } catch (error) {
    const reason = error instanceof Error ? error.message.trim().split("\n").at(-1) : String(error);
    return { what: `${what} (tried: ${reason})` };
  }
  const installed = await findChromium();
  return installed === undefined ? { what } : { path: installed, what };
}

const { path, what } = await prepareChromium();
if (path === undefined) {
  const isFatal = process.env["CI"] === "true";
  console.error(`BROWSER TESTS ${isFatal ? "FAILED, not run" : "SKIPPED"}: ${what}`);
  process.exitCode = isFatal ? 1 : 0;
} else {
  const named = process.argv.slice(2);
  const all = (await readdir(testsDir))
    .filter((name) => name.endsWith(".test.ts"))
    .map((name) => join(testsDir, name));
  const files = named.length > 0 ? named : all;
  const child = spawn(process.execPath, [...process.execArgv, suite, "1", ...files], {
    env: { ...process.env, KRANE_TEST_CHROMIUM: path },
    stdio: "inherit",
  });
  const [status] = await once(child, "close");
  process.exitCode = status === 0 ? 0 : 1;
}
