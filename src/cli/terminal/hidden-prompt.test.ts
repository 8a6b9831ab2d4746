import assert from "node:assert/strict";
import { EventEmitter } from "node:events";
import { test } from "node:test";
import { askHidden } from "./hidden-prompt.ts";

/** A process whose terminal a test types into. */
function createProcess() {
  const raw: boolean[] = [];
  const killed: string[] = [];
  let shown = "";
  const stdin = Object.assign(new EventEmitter(), {
    isTTY: true,
    setRawMode(isRaw: boolean) {
      raw.push(isRaw);
    },
    resume: () => stdin,
    pause: () => stdin,
  });
  const stderr = {
    isTTY: true,
    write(text: string) {
      shown += text;
    },
  };
  const process = Object.assign(new EventEmitter(), {
    stdin,
    stderr,
    pid: 1,
    kill: (_: number, signal: string) => killed.push(signal),
  });
  return {
    process: process as unknown as NodeJS.Process,
    type: (text: string) => stdin.emit("data", Buffer.from(text)),
    get shown() {
      return shown;
    },
    get isRaw() {
      return raw.at(-1) ?? false;
    },
    get listeners() {
      return stdin.listenerCount("data") + process.listenerCount("exit");
    },
    killed,
  };
}

const never = new AbortController().signal;

test("what is typed is taken up to Enter, and not shown", async () => {
  const terminal = createProcess();
  const answer = askHidden(terminal.process, "Value: ", never);
  assert.equal(terminal.isRaw, true);
  terminal.type("wrong\u0015p\u00e4x\u007fss");
  terminal.type("\r");
  assert.equal(await answer, "p\u00e4ss");
  assert.equal(terminal.shown, "Value: \n");
  assert.deepEqual([terminal.isRaw, terminal.listeners], [false, 0]);
});

test("Ctrl-C ends the command as everywhere, and the terminal is as before", async () => {
  const terminal = createProcess();
  const stopping = new AbortController();
  const answer = askHidden(terminal.process, "Value: ", stopping.signal);
  terminal.type("half\u0003");
  assert.deepEqual(terminal.killed, ["SIGINT"]);
  stopping.abort(new Error("stopped"));
  await assert.rejects(answer, /stopped/);
  assert.deepEqual([terminal.isRaw, terminal.listeners], [false, 0]);
});

test("without a terminal there is no prompt", async () => {
  const { process } = createProcess();
  const piped = { ...process, stdin: { isTTY: false } } as unknown as NodeJS.Process;
  assert.equal(await askHidden(piped, "Value: ", never), undefined);
});
