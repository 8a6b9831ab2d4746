// A real Prometheus on a loopback port, which scrapes processes of krane and evaluates the rules of the chart.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import type { TestContext } from "node:test";
import { eventually } from "./eventually.ts";
import { freePort } from "./krane-process.ts";

export interface ScrapedProcess {
  /** Its `/metrics`. */
  readonly url: string;
  readonly labels: Readonly<Record<string, string>>;
}

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
}

export interface RunningPrometheus {
  query(expr: string): Promise<readonly Series[]>;
  rules(): Promise<
    readonly { readonly name: string; readonly health: string; readonly lastError?: string }[]
  >;
}

/** It has scraped every process when this resolves. */
export async function startPrometheus(
  t: TestContext,
  promtool: string,
  processes: readonly ScrapedProcess[],
  ruleFile: string,
): Promise<RunningPrometheus> {
  const folder = await mkdtemp(join(tmpdir(), "krane-prometheus-"));
  const port = await freePort();
  const config = {
    global: { scrape_interval: "1s", scrape_timeout: "1s", evaluation_interval: "1s" },
    rule_files: [ruleFile],
    scrape_configs: [
      {
        job_name: "krane",
        static_configs: processes.map(({ url, labels }) => ({ targets: [new URL(url).host], labels })),
      },
    ],
  };
  // JSON is YAML as well.
  await writeFile(join(folder, "prometheus.yml"), JSON.stringify(config));
  const child = spawn(
    join(dirname(promtool), "prometheus"),
    [
      `--config.file=${folder}/prometheus.yml`,
      `--storage.tsdb.path=${folder}/data`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    { stdio: ["ignore", "ignore", "pipe"] },
  );
  let log = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    log = `${log}${text}`.slice(-4_000);
  });
  const gone = once(child, "close");
  t.after(async () => {
    child.kill("SIGKILL");
    await gone;
    await rm(folder, { recursive: true });
  });
  const get = async (path: string): Promise<unknown> => {
    const response = await fetch(`http://127.0.0.1:${port}/api/v1/${path}`);
    const answer = (await response.json()) as { status: string; data: unknown; error?: string };
    assert.equal(answer.status, "success", `${decodeURIComponent(path)}: ${answer.error}`);
    return answer.data;
  };
  const prometheus: RunningPrometheus = {
    query: async (expr) =>
      ((await get(`query?query=${encodeURIComponent(expr)}`)) as { result: readonly Series[] }).result,
    async rules() {
      const { groups } = (await get("rules")) as { groups: { rules: never[] }[] };
      return groups.flatMap(({ rules }) => rules);
    },
  };
  await eventually("Prometheus has scraped all processes", async () => {
    assert.equal(child.exitCode, null, log);
    assert.equal((await prometheus.query("up == 1")).length, processes.length);
  });
  return prometheus;
}
