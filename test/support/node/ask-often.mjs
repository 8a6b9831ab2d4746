// Runs in a pod, given to `node --input-type=module --eval`: asks a URL every 10 ms, each time on a new connection, until
// another process creates the file, or for an hour at most. Prints which deployment answered when, and what failed.
import { lookup } from "node:dns/promises";
import { existsSync } from "node:fs";
import { get } from "node:http";

const [url, stopFile] = process.argv.slice(1);
const intervalMs = 10;
const asksMax = 360_000;
const timeoutMs = 10_000;

const { hostname } = new URL(url);
const { address } = await lookup(hostname);
const direct = url.replace(hostname, address);
const answers = {};
const failures = [];
let asked = 0;
let pending = 0;

function ask() {
  const sentMs = Date.now();
  asked++;
  pending++;
  const request = get(direct, { agent: false, timeout: timeoutMs }, (response) => {
    let body = "";
    response.on("data", (part) => {
      body += part;
    });
    response.on("error", fail);
    response.on("end", () => {
      pending--;
      if (response.statusCode !== 200) failures.push({ sentMs, what: `status ${response.statusCode}` });
      else count(JSON.parse(body).UNKEY_DEPLOYMENT_ID, sentMs);
    });
  });
  const fail = (error) => {
    pending--;
    failures.push({ sentMs, endedMs: Date.now(), what: error.code ?? error.message });
  };
  request.on("timeout", () => request.destroy(new Error("no answer in time")));
  request.on("error", fail);
}

function count(id, sentMs) {
  answers[id] ??= { count: 0, firstMs: sentMs, lastMs: sentMs };
  const seen = answers[id];
  seen.count++;
  seen.firstMs = Math.min(seen.firstMs, sentMs);
  seen.lastMs = Math.max(seen.lastMs, sentMs);
}

const timer = setInterval(() => {
  if (asked < asksMax && !existsSync(stopFile)) return ask();
  if (pending > 0) return;
  clearInterval(timer);
  console.log(JSON.stringify({ asked, answers, failures }));
}, intervalMs);
