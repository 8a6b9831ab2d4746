// Each controller has parts of its own (K6). Whatever goes wrong with those of one, the other two go on as
// if nothing were: nothing of theirs is lost or late, and no error of theirs is counted. Once it is over,
// the one that was disturbed catches up by itself (K12).

import assert from "node:assert/strict";
import { describe, test } from "node:test";
import type { ControllerName } from "./faulty-parts.ts";
import { controllerNames, floodIndex, ThreeControllers } from "./three-controllers.ts";

interface Disturbance {
  readonly name: string;
  /** One after the other; each takes the place of the one before. */
  readonly phases: readonly ((all: ThreeControllers, disturbed: ControllerName) => Promise<void>)[];
  /** Nothing that is ordered of the disturbed one is done while it lasts. */
  readonly stalls: boolean;
  readonly isCostly?: boolean;
  /** That it is as bad as it was meant to be. */
  check?(all: ThreeControllers, disturbed: ControllerName): Promise<void>;
  end(all: ThreeControllers, disturbed: ControllerName): Promise<void>;
  /** That nothing is left of it. */
  checkEnd?(all: ThreeControllers, disturbed: ControllerName): Promise<boolean>;
}

// Under a fake clock every message of a flood costs a whole apply; the full one is for when there is time.
const isLong = process.env["KRANE_TEST_LONG"] === "1";
const messages = isLong ? 50_000 : 5_000;
const keys = 200;
const moreOfTheDisturbed = [11, 12, 13, 14];
const poisonIndex = 500;
const poisons = 10;
// Long enough for every breaker to open and every back-off to grow.
const lastsMs = 120_000;
// The longest that a stream which fell silent can go unnoticed, and the wait that comes after it.
const recoveryMs = 660_000;

const disturbances: readonly Disturbance[] = [
  ...(["errors", "hangs", "crash"] as const).map(
    (kind): Disturbance => ({
      name: { errors: "errors on every call", hangs: "calls that hang", crash: "crashing loops" }[kind],
      stalls: true,
      phases: (["control plane", "Kubernetes"] as const).map(
        (peer) => async (all, disturbed) => all.switches[disturbed].begin({ kind, peer }),
      ),
      async check(all, disturbed) {
        const counted = await errorsOf(all, disturbed);
        assert.notDeepEqual(counted, {});
        if (kind === "crash") assert.ok((counted["unkey_internal_panics_total"] ?? 0) > 0);
      },
      end: async (all, disturbed) => all.switches[disturbed].end(),
    }),
  ),
  {
    name: `a flood of ${messages} messages`,
    stalls: false,
    isCostly: true,
    phases: [
      async (all, disturbed) => {
        const states = await all.flood(disturbed, messages, keys);
        all.switches[disturbed].begin({ kind: "messages", states });
      },
    ],
    end: async (all, disturbed) => all.switches[disturbed].end(),
    async checkEnd(all, disturbed) {
      for (let key = 0; key < keys; key++)
        if (!(await all.isCurrent(disturbed, floodIndex + key, messages / keys))) return false;
      return true;
    },
  },
  {
    name: "poison",
    stalls: false,
    phases: [
      async (all, disturbed) => {
        for (let nth = 0; nth < poisons; nth++) await all.poison(disturbed, poisonIndex + nth);
        const states = [all.insertUnreadable(disturbed, poisonIndex + poisons)];
        all.switches[disturbed].begin({ kind: "messages", states });
      },
    ],
    async check(all, disturbed) {
      assert.equal(all.status(disturbed)?.parked, poisons);
    },
    async end(all, disturbed) {
      all.switches[disturbed].end();
      for (let nth = 0; nth <= poisons; nth++) await all.order(disturbed, poisonIndex + nth, 1);
    },
    async checkEnd(all, disturbed) {
      for (let nth = 0; nth <= poisons; nth++)
        if (!(await all.isCurrent(disturbed, poisonIndex + nth, 1))) return false;
      return true;
    },
  },
];

for (const disturbance of disturbances)
  describe(`${disturbance.name} in one controller`, () => {
    for (const disturbed of disturbance.isCostly && !isLong ? (["cilium"] as const) : controllerNames)
      test(`${disturbed}: the other two do not notice, and it recovers`, () =>
        disturb(disturbance, disturbed));
  });

async function disturb(disturbance: Disturbance, disturbed: ControllerName): Promise<void> {
  const all = await ThreeControllers.start();
  const { world } = all;
  const others = controllerNames.filter((name) => name !== disturbed);
  await orderAll(all, controllerNames, [1, 2], 1);
  // So many that their reports alone can open a breaker.
  await orderAll(all, [disturbed], moreOfTheDisturbed, 1);
  await untilCurrent(all, controllerNames, [1, 2], 1);
  await untilCurrent(all, [disturbed], moreOfTheDisturbed, 1);
  const before = await errorsOfAll(all, others);

  let generation = 1;
  for (const begin of disturbance.phases) {
    await begin(all, disturbed);
    generation += 1;
    await all.replacePods();
    await orderAll(all, controllerNames, [1, 2, 3], generation);
    await untilCurrent(all, others, [1, 2, 3], generation);
    await world.clock.advance(lastsMs);
    await untilCurrent(all, others, [1, 2, 3], generation);
    for (const index of [1, 2, 3])
      assert.equal(await all.isApplied(disturbed, index, generation), !disturbance.stalls);
  }
  await disturbance.check?.(all, disturbed);
  assert.deepEqual(await errorsOfAll(all, others), before);

  await disturbance.end(all, disturbed);
  await untilCurrent(all, [disturbed], [1, 2, 3], generation, recoveryMs);
  await world.until("nothing is left", async () => (await disturbance.checkEnd?.(all, disturbed)) ?? true);
  await orderAll(all, controllerNames, [1, 2, 3, 4], generation + 1);
  await untilCurrent(all, controllerNames, [1, 2, 3, 4], generation + 1, recoveryMs);
  assert.deepEqual(await errorsOfAll(all, others), before);
  await world.stop();
}

async function orderAll(
  all: ThreeControllers,
  names: readonly ControllerName[],
  indexes: readonly number[],
  generation: number,
): Promise<void> {
  for (const name of names) for (const index of indexes) await all.order(name, index, generation);
}

async function untilCurrent(
  all: ThreeControllers,
  names: readonly ControllerName[],
  indexes: readonly number[],
  generation: number,
  withinMs = 60_000,
): Promise<void> {
  for (const name of names)
    for (const index of indexes)
      await all.world.until(
        `${name} ${index} is applied and reported in generation ${generation}`,
        () => all.isCurrent(name, index, generation),
        withinMs,
      );
}

const errorCounters: ReadonlySet<string> = new Set([
  "unkey_krane_controlplane_reconnects_total",
  "unkey_krane_troubled_objects",
  "unkey_circuitbreaker_errors_total",
  "unkey_internal_panics_total",
]);

/** Everything that is counted as trouble of a controller, by metric. */
async function errorsOf(all: ThreeControllers, name: ControllerName): Promise<Record<string, number>> {
  const whose = new Set([name, `${name.replace(/s$/, "")}_state_update`]);
  const errors: Record<string, number> = {};
  for (const metric of await all.world.metrics.snapshot()) {
    if (metric.type === "histogram") continue;
    for (const { labels, value } of metric.points) {
      const isOfIt = [labels["controller"], labels["service"], labels["caller"]].some(
        (label) => label !== undefined && whose.has(label),
      );
      if (!isOfIt || value === 0) continue;
      if (labels["result"] === "error" || errorCounters.has(metric.name))
        errors[metric.name] = (errors[metric.name] ?? 0) + value;
    }
  }
  return errors;
}

async function errorsOfAll(all: ThreeControllers, names: readonly ControllerName[]) {
  const errors: Record<string, unknown> = {};
  for (const name of names) errors[name] = await errorsOf(all, name);
  return errors;
}
