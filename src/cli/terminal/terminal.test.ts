import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { describe, test } from "node:test";
import { createTerminal, keysOf } from "./terminal.ts";

describe("the keys that a terminal sends", () => {
  test("come one by one, also when they arrive together", () => {
    assert.deepEqual(keysOf("+-n"), ["+", "-", "n"]);
    assert.deepEqual(keysOf("a\u001b[Ab\u001bOBc"), ["a", "up", "b", "down", "c"]);
    assert.deepEqual(keysOf("\u0003"), ["ctrl-c"]);
  });

  test("are left out where they mean nothing here", () => {
    assert.deepEqual(keysOf("\u001b[1;5C\u001b[3~\u001b\r\t"), []);
    assert.deepEqual(keysOf("\u001b[15~q"), ["q"]);
  });
});

class FakeStdin extends EventEmitter {
  readonly isTTY = true;
  isRaw = false;
  isFlowing = false;
  setRawMode(raw: boolean) {
    this.isRaw = raw;
    return this;
  }
  resume() {
    this.isFlowing = true;
    return this;
  }
  pause() {
    this.isFlowing = false;
    return this;
  }
}

class FakeStdout extends EventEmitter {
  readonly isTTY = true;
  readonly fd = 1;
  columns = 80;
  rows = 24;
  text = "";
  write(text: string) {
    this.text += text;
    return true;
  }
}

function fakeProcess() {
  const stdin = new FakeStdin();
  const stdout = new FakeStdout();
  const env: NodeJS.ProcessEnv = { TERM: "xterm" };
  const process = Object.assign(new EventEmitter(), { stdin, stdout, env });
  const written: string[] = [];
  const terminal = createTerminal(process as unknown as NodeJS.Process, (_, text) => void written.push(text));
  return { stdin, stdout, process, written, terminal: terminal ?? assert.fail("no terminal") };
}

describe("a terminal", () => {
  test("is there only with a person at both ends", () => {
    const { process, stdin } = fakeProcess();
    Object.assign(stdin, { isTTY: false });
    assert.equal(createTerminal(process as unknown as NodeJS.Process), undefined);
  });

  test("is not there if it cannot move its cursor", () => {
    const { process } = fakeProcess();
    process.env["TERM"] = "dumb";
    assert.equal(createTerminal(process as unknown as NodeJS.Process), undefined);
  });

  test("hands over keys and resizes while it is held, and nothing after", () => {
    const { terminal, stdin, stdout } = fakeProcess();
    const seen: string[] = [];
    const held = terminal.hold({ onKey: (key) => seen.push(key), onResize: () => seen.push("resized") });
    assert.equal(stdin.isRaw, true);
    stdin.emit("data", Buffer.from("+q"));
    stdout.emit("resize");
    held.release();
    stdin.emit("data", Buffer.from("x"));
    stdout.emit("resize");
    assert.deepEqual(seen, ["+", "q", "resized"]);
    assert.equal(stdin.isRaw, false);
    assert.equal(stdin.isFlowing, false);
  });

  test("draws over what was there", () => {
    const { terminal, stdout } = fakeProcess();
    const held = terminal.hold({ onKey: () => undefined, onResize: () => undefined });
    stdout.text = "";
    held.draw(["one", "two"]);
    assert.equal(stdout.text, "\u001b[Hone\u001b[K\r\ntwo\u001b[K\u001b[J");
  });

  test("is given back when the process ends without a release, and only once", () => {
    const { terminal, process, stdin, written } = fakeProcess();
    const held = terminal.hold({ onKey: () => undefined, onResize: () => undefined });
    process.emit("exit");
    assert.equal(stdin.isRaw, false);
    held.release();
    assert.equal(written.length, 1);
  });
});
