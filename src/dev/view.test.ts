import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { describe, test } from "node:test";
import fc from "fast-check";
import type { DevObject } from "./dev-state.ts";
import { renderView, type ViewModel } from "./view.ts";

const web: DevObject = {
  kind: "deployment",
  key: "krane-dev/web-1",
  id: "d_web-1",
  environment: "env_production",
  image: "docker.io/nginxinc/nginx-unprivileged:1.25",
  want: "run",
  desiredVersion: 4n,
  appliedVersion: 4n,
  pods: { ready: 2, total: 2 },
  failing: 0,
  outcome: "unchanged",
  reason: "",
};
const api: DevObject = {
  ...web,
  key: "krane-dev/api-1",
  id: "d_api-1",
  desiredVersion: 12n,
  appliedVersion: 2n,
  pods: { ready: 1, total: 3 },
  failing: 2,
  outcome: "parked",
  reason: "apply.port: must be from 1 to 65535, but is 99999",
};
const preview: DevObject = {
  ...web,
  key: "krane-dev/preview-1",
  id: "d_preview-1",
  want: "delete",
  pods: { ready: 0, total: 2 },
};
const { pods: _, ...podless } = web;
const policy: DevObject = {
  ...podless,
  kind: "policy",
  key: "krane-dev/to-web-1",
  id: "net_web-1",
  environment: "",
  image: "",
};

const model: ViewModel = {
  urls: { kubernetes: "http://127.0.0.1:7443", "control plane": "http://127.0.0.1:7091" },
  kubeconfigPath: "/home/me/.local/state/krane/dev-7443.kubeconfig",
  cliContextPath: "/home/me/.local/state/krane/dev-7443.cli.toml",
  region: "local.dev",
  state: { stream: "open", objects: [api, preview, web, policy] },
  chosen: "d_web-1",
  recent: ["scaled web-1 to 3 (v4)", "stream: open"],
  showsHelp: false,
};

function rendered(columns: number, rows: number, colours = false, over: Partial<ViewModel> = {}): string {
  return `\n${renderView({ ...model, ...over }, { columns, rows, colours }).join("\n")}\n`;
}

describe("the screen", () => {
  test("on a tiny terminal keeps the table", () => {
    assert.equal(
      rendered(40, 5),
      `
  OBJECT               READY  LAST OU...
  krane-dev/api-1      1/3    parked,...
  krane-dev/preview-1  0/2    deleting
> krane-dev/web-1      2/2    unchanged
  krane-dev/to-web-1   -      unchanged
`,
    );
  });

  test("with room for one line only shows the chosen one", () => {
    assert.match(rendered(40, 2), /^\n {2}OBJECT.*\n> krane-dev\/web-1 .*\n$/);
  });

  const many = Array.from({ length: 65 }, (_, index) => ({
    ...web,
    id: `d_${index}`,
    key: `krane-dev/app-${index}`,
  }));

  const screens: Readonly<Record<string, Partial<ViewModel>>> = {
    few: {},
    many: {
      state: { stream: "open", objects: many },
      chosen: "d_40",
      recent: [
        "killed pod app-40-x7k2p",
        "set 5 replicas and another project on ReplicaSet app-40; krane repaired it after 12 ms",
      ],
    },
    help: { showsHelp: true },
  };
  const sizes = [
    [80, 24],
    [120, 40],
    [200, 50],
  ] as const;

  for (const [columns, rows] of sizes)
    for (const [name, over] of Object.entries(screens))
      test(`${name} at ${columns}x${rows} is as in testdata`, () => {
        const file = new URL(`../../testdata/dev/${name}-${columns}x${rows}.txt`, import.meta.url);
        const shown = rendered(columns, rows, false, over).slice(1);
        if (process.env["UPDATE_GOLDEN"] === "1") writeFileSync(file, shown);
        assert.equal(shown, readFileSync(file, "utf8"));
      });

  for (const [columns, rows] of sizes)
    test(`of ${columns}x${rows} keeps addresses, keys and the last result with 65 objects`, () => {
      const shown = rendered(columns, rows, false, screens["many"]);
      assert.match(shown, /^\nkrane dev, region local\.dev, streams open\n/);
      assert.match(shown, /\? help {3}q quit\n$/);
      assert.match(shown, /\n> deployment {2}krane-dev\/app-40 /);
      assert.match(shown, /krane repaired it\s+after 12 ms\n/);
      assert.equal(shown.split("\n").length - 2, rows);
    });

  test("keeps the whole result of the last key while events follow it", () => {
    const result = screens["many"]?.recent?.at(-1) ?? assert.fail("it has none");
    const recent = [result, "deployment krane-dev/app-40: desired v4, applied v4", "streams: open"];
    const shown = rendered(80, 24, false, { ...screens["many"], recent, result });
    assert.match(shown, /set 5 replicas and another project.*\n +after 12 ms\n/);
    assert.equal(shown.split("\n").length - 2, 24);
    const large = rendered(120, 40, false, { recent, result });
    assert.match(large, /after 12 ms\n.*applied v4\n.*streams: open\n/);
  });

  test("has help that is wrapped and not cut at 80 columns", () => {
    const page = rendered(80, 40, false, { showsHelp: true });
    assert.doesNotMatch(page, /\.\.\.\n/);
    assert.match(page, /beside it, a\n {8}sentinel a new image\n/);
    assert.match(rendered(80, 24, false, { showsHelp: true }), /Any key closes this page; q quits\.\n/);
  });

  test("has a page of help in place of the table", () => {
    const page = rendered(120, 40, false, { showsHelp: true });
    assert.match(page, /Any key closes this page/);
    assert.doesNotMatch(page, /LAST OUTCOME/);
  });

  test("shows that there are no objects", () => {
    assert.match(rendered(80, 24, false, { state: { stream: "open", objects: [] } }), /no objects/);
  });

  test("with colours is green if all is well, red in trouble and yellow in progress", () => {
    const coloured = rendered(80, 24, true);
    for (const part of ["2/2    \u001b[32munchanged\u001b[0m", "\u001b[31mparked", "\u001b[33mdeleting"])
      assert.ok(coloured.includes(part), part);
  });

  test("without colours has no control character, whatever a server says", () => {
    const nasty = { ...web, reason: "a\u001b[2Jb\r\nc" };
    const lines = renderView(
      { ...model, state: { stream: "open", objects: [nasty] }, recent: ["x\u001b[1my"] },
      { columns: 120, rows: 40, colours: false },
    );
    for (const line of lines) assert.doesNotMatch(line, /\p{Cc}/u);
  });

  test("never has more lines or longer ones than the terminal has room for", () => {
    fc.assert(
      fc.property(fc.nat(200), fc.nat(60), fc.boolean(), (columns, rows, showsHelp) => {
        const lines = renderView({ ...model, showsHelp }, { columns, rows, colours: false });
        assert.ok(lines.length <= rows, `${lines.length} lines`);
        for (const line of lines) assert.ok(line.length <= columns, line);
      }),
    );
  });
});
