// The sessions of docs/scheduler.md, typed against a running agent with the real curl and the pinned grpcurl.
import assert from "node:assert/strict";
import { execFile, spawn } from "node:child_process";
import { dirname } from "node:path";
import { describe, test } from "node:test";
import { grpcurl, resolveGoTool } from "../../tools/go-tool.ts";
import { createSchedulerWorld, schedulerToken } from "../integration/scheduler/scheduler-world.ts";
import { readProjectFile } from "../support/project-files.ts";

interface Exchange {
  readonly command: string;
  readonly output: string;
}

function sessionOf(name: string): readonly Exchange[] {
  const marked = new RegExp(
    `<!-- ${name}:begin -->\\n\`\`\`text\\n([\\s\\S]*?)\`\`\`\\n<!-- ${name}:end -->`,
  );
  const text = marked.exec(readProjectFile("docs/scheduler.md"))?.[1] ?? assert.fail(`no session ${name}`);
  return text
    .split(/^\$ /m)
    .slice(1)
    .map((part) => {
      const [command = "", ...output] = part.split("\n");
      return { command, output: output.join("\n").trim() };
    });
}

/** What it prints, whatever its exit code; curl says nothing of the code that a server answers with. */
function typed(command: string, env: NodeJS.ProcessEnv): Promise<string> {
  return new Promise((resolve) => {
    execFile("sh", ["-c", command], { env, timeout: 60_000 }, (_, stdout, stderr) =>
      resolve((stdout + stderr).trim()),
    );
  });
}

const goBinary = await resolveGoTool(
  grpcurl,
  process.env,
  { report: (line) => console.error(line) },
  new AbortController().signal,
);

describe("docs/scheduler.md", () => {
  test("the curl session goes as shown", async (t) => {
    const { agent } = await createSchedulerWorld(t);
    const env = { ...process.env, KRANE: agent.url, TOKEN: schedulerToken };
    const session = sessionOf("curl-session");
    assert.ok(session.length >= 6);
    for (const { command, output } of session) assert.equal(await typed(command, env), output, command);
  });

  const skip = goBinary.kind === "missing" && `grpcurl: ${goBinary.what}`;
  test("the grpcurl sessions go as shown", { skip }, async (t) => {
    const path = goBinary.kind === "ready" ? goBinary.path : assert.fail("it was skipped");
    const { agent } = await createSchedulerWorld(t);
    const env = {
      ...process.env,
      PATH: `${dirname(path)}:${process.env["PATH"]}`,
      KRANE: new URL(agent.url).host,
      TOKEN: schedulerToken,
    };
    for (const { command, output } of sessionOf("grpcurl-session"))
      assert.equal(await typed(command, env), output, command);
    const [watch] = sessionOf("grpcurl-watch");
    const child = spawn("sh", ["-c", `exec ${watch?.command}`], {
      env,
      stdio: ["ignore", "pipe", "ignore"],
    });
    t.after(() => child.kill());
    let shown = "";
    for await (const chunk of child.stdout) {
      shown += String(chunk);
      if (shown.trim().length >= (watch?.output.length ?? 0)) break;
    }
    assert.equal(shown.trim(), watch?.output);
  });
});
