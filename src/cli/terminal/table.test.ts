import assert from "node:assert/strict";
import { describe, test } from "node:test";
import { FakeOutput } from "../../../test/support/fake-io.ts";
import { printable } from "../../telemetry/scrub.ts";
import { ageOf, momentOf } from "./age.ts";
import { createPaint } from "./colours.ts";
import { createProgressLine } from "./progress-line.ts";
import { renderFields, renderTable } from "./table.ts";

const plain = createPaint({ isTerminal: false, backlogBytes: 0, write: () => undefined }, {});
const terminal = { isTerminal: true, backlogBytes: 0, write: () => undefined };

describe("a table", () => {
  test("has columns as wide as their widest cell and nothing at the end of a row", () => {
    const text = renderTable(
      ["ID", "NAME", "NOTE"],
      [
        ["d_1", "a/long-name", ""],
        ["d_22", "b", "x"],
      ],
      plain,
    );
    assert.equal(text, "ID     NAME          NOTE\nd_1    a/long-name\nd_22   b             x\n");
  });

  test("is as wide with colours as without", () => {
    const row = [{ text: "Ready", tone: "good" as const }, "x"];
    const painted = renderTable(["PHASE", "Y"], [row], createPaint(terminal, {}));
    assert.ok(painted.endsWith("\u001b[32mReady\u001b[0m   x\n"));
    const bare = painted.replace("\u001b[32m", "").replace("\u001b[0m", "");
    assert.equal(bare, renderTable(["PHASE", "Y"], [row], plain));
  });

  test("lets no cell forge a row or drive the terminal", () => {
    const text = renderTable(["NAME"], [["a\nROOT  \u001b[31mowned\u009b2J\u202e"]], plain);
    assert.equal(text, "NAME\na ROOT   [31mowned 2J\n");
  });

  test("of one thing leaves out what is empty", () => {
    assert.equal(
      renderFields(
        [
          ["Name", "a"],
          ["Reason", ""],
          ["Version", "7"],
        ],
        plain,
      ),
      "Name:      a\nVersion:   7\n",
    );
  });
});

describe("colours", () => {
  test("are for a terminal, and not with NO_COLOR or a dumb one", () => {
    assert.notEqual(createPaint(terminal, {})("x", "bad"), "x");
    assert.equal(createPaint(terminal, { NO_COLOR: "1" })("x", "bad"), "x");
    assert.equal(createPaint(terminal, { TERM: "dumb" })("x", "bad"), "x");
    assert.equal(plain("x", "bad"), "x");
  });
});

describe("moments", () => {
  test("are told by age, and one that never was is empty", () => {
    const day = 86_400_000;
    assert.deepEqual(
      [500, 3_000, 119_000, 7_200_000, 3 * day].map((ms) => ageOf(BigInt(10 * day - ms), 10 * day)),
      ["0s", "3s", "1m", "2h", "3d"],
    );
    assert.equal(ageOf(0n, day), "");
    assert.equal(momentOf(0), "");
    assert.equal(momentOf(1_700_000_000_123n), "2023-11-14T22:13:20Z");
  });

  test("ahead of our clock were just now", () => {
    assert.equal(ageOf(2_000, 1_000), "0s");
  });
});

test("printable text is one line without anything that a terminal obeys", () => {
  assert.equal(printable(" a\r\n\tb\u2028c\u0007 "), "a b c");
});

describe("a progress line", () => {
  test("is written over on a terminal, and taken away at the end", () => {
    const output = Object.assign(new FakeOutput(), { isTerminal: true });
    const progress = createProgressLine(output);
    progress.show("waiting", ", 1s");
    progress.show("waiting", ", 2s");
    progress.clear();
    progress.clear();
    assert.equal(output.text, "\r\u001b[Kwaiting, 1s\r\u001b[Kwaiting, 2s\r\u001b[K");
  });

  test("is cut where it would wrap, as far as the terminal says how wide it is", () => {
    const shownOn = (columns: number | undefined) => {
      const output = Object.assign(new FakeOutput(), { isTerminal: true, columns });
      createProgressLine(output).show("x".repeat(100));
      return output.text.length - "\r\u001b[K".length;
    };
    assert.deepEqual([20, 200, 0, undefined].map(shownOn), [19, 100, 79, 79]);
  });

  test("is a line for each change elsewhere", () => {
    const output = new FakeOutput();
    const progress = createProgressLine(output);
    for (const [text, detail] of [
      ["a", ", 1s"],
      ["a", ", 2s"],
      ["b", ", 3s"],
    ] as const)
      progress.show(text, detail);
    progress.clear();
    assert.equal(output.text, "a\nb\n");
  });
});
