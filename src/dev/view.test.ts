import assert from "node:assert/strict";
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
  test("at 130 columns shows everything", () => {
    assert.equal(
      rendered(130, 40),
      `
krane dev, region local.dev, streams open
  kubernetes    http://127.0.0.1:7443
  control plane http://127.0.0.1:7091
  export KUBECONFIG=/home/me/.local/state/krane/dev-7443.kubeconfig
  export KRANE_CONFIG=/home/me/.local/state/krane/dev-7443.cli.toml

  KIND        OBJECT               ENVIRONMENT     IMAGE                    DESIRED  APPLIED  READY  LAST OUTCOME
  deployment  krane-dev/api-1      env_production  nginx-unprivileged:1.25  v12      v2       1/3    parked, 2 failing: apply.p...
  deployment  krane-dev/preview-1  env_production  nginx-unprivileged:1.25  v4       v4       0/2    deleting
> deployment  krane-dev/web-1      env_production  nginx-unprivileged:1.25  v4       v4       2/2    unchanged
  policy      krane-dev/to-web-1                                            v4       v4       -      unchanged

  scaled web-1 to 3 (v4)
  stream: open

  up/down select   + scale up   - scale down   n new version   d delete   b bad spec   p kill a pod   c crash the image
  e edit behind krane's back   s cut the streams   ? help   q quit
`,
    );
  });

  test("at 80 columns leaves out environment and image", () => {
    assert.equal(
      rendered(80, 24),
      `
krane dev, region local.dev, streams open
  kubernetes    http://127.0.0.1:7443
  control plane http://127.0.0.1:7091
  export KUBECONFIG=/home/me/.local/state/krane/dev-7443.kubeconfig
  export KRANE_CONFIG=/home/me/.local/state/krane/dev-7443.cli.toml

  KIND        OBJECT               DESIRED  APPLIED  READY  LAST OUTCOME
  deployment  krane-dev/api-1      v12      v2       1/3    parked, 2 failing...
  deployment  krane-dev/preview-1  v4       v4       0/2    deleting
> deployment  krane-dev/web-1      v4       v4       2/2    unchanged
  policy      krane-dev/to-web-1   v4       v4       -      unchanged

  scaled web-1 to 3 (v4)
  stream: open

  up/down select   + scale up   - scale down   n new version   d delete
  b bad spec   p kill a pod   c crash the image   e edit behind krane's back
  s cut the streams   ? help   q quit
`,
    );
  });

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

  for (const [columns, rows, range] of [
    [80, 24, "30 to 41"],
    [120, 40, "13 to 41"],
    [200, 50, "2 to 41"],
  ] as const)
    test(`of ${columns}x${rows} keeps addresses and keys with 65 objects, and shows the chosen one`, () => {
      const shown = rendered(columns, rows, false, {
        state: { stream: "open", objects: many },
        chosen: "d_40",
      });
      assert.match(shown, /^\nkrane dev, region local\.dev, streams open\n/);
      assert.match(shown, /\? help {3}q quit\n$/);
      assert.match(shown, /\n> deployment {2}krane-dev\/app-40 /);
      assert.ok(shown.includes(`\n  ${range} of 65 objects\n`), shown);
      assert.equal(shown.split("\n").length - 2, rows);
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
