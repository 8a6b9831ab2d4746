// The part of the benchmark that runs in the box, beside the node: `node box-program.ts <options as JSON> <result file>`.
import { writeFile } from "node:fs/promises";
import { clusterVariable } from "../../test/support/cluster-under-test.ts";
import { equipNode } from "../../test/support/node/equipped-node.ts";
import { installedKrane } from "../../test/support/node/installed-krane.ts";
import { type RealNodeOptions, startRealNode } from "../../test/support/node/real-node.ts";
import { openAdmin } from "./admin-call.ts";
import { measureAgent } from "./agent-container.ts";
import { watchCluster } from "./cluster-watch.ts";
import type { Journey, NodeFigures } from "./figures.ts";
import { openOrders } from "./orders.ts";
import { measureStates } from "./states.ts";

const warmUps = 2;
const rounds = Number(process.env["KRANE_BENCH_ORDERS"] ?? 30);

const [options = "{}", resultPath = ""] = process.argv.slice(2);
const ending = new AbortController();
const cluster = await startRealNode(JSON.parse(options) as RealNodeOptions, ending.signal);
process.env[clusterVariable] = await equipNode(cluster);

const krane = await installedKrane();
const watch = await watchCluster(krane.cluster, ending.signal);
const call = await openAdmin(krane);
const orders = await openOrders(krane, watch, call);
const journeys: { krane: Journey[]; raw: Journey[] } = { krane: [], raw: [] };
for (let round = -warmUps; round < rounds; round += 1) {
  for (const side of ["krane", "raw"] as const) {
    const journey = await orders[side](`${side}${round + warmUps}`);
    if (round >= 0) journeys[side].push(journey);
  }
}
const states = await measureStates(krane, watch, call, rounds);
const figures: NodeFigures = { ...journeys, states, agent: await measureAgent(krane, watch, rounds) };
await writeFile(resultPath, JSON.stringify(figures));
process.exit(0);
