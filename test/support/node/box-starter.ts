// Runs a shell script in a box, for tests that kill this process: `node box-starter.ts <script> <argument>`.

import { runInBox } from "./box.ts";

const [script = "", argument = ""] = process.argv.slice(2);
const program = { file: "bash", args: ["-c", script, "busy", argument], env: process.env };
await runInBox(() => program, new AbortController().signal);
