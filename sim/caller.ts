// A program that gives orders by SchedulerService instead of by the control plane. It knows from the responses which of its
// orders are in force. Some of its deployments are handed over to the control plane, which decides about them from then on.
import { Code, ConnectError } from "@connectrpc/connect";
import { SchedulerService } from "../src/gen/krane/v1/scheduler_pb.ts";
import type { Choices } from "./choices.ts";
import { orderDeployment } from "./orders.ts";
import { namespaces } from "./places.ts";
import { type SimAgent, schedulerToken } from "./sim-agent.ts";
import type { SimRegion } from "./sim-region.ts";

// Longer than an agent waits for an order. A call to a process that is killed is never answered.
const answerMaxMs = 70_000;
const headers = { authorization: `Bearer ${schedulerToken}` };
const idPart = "job";

/** What is in force. Unclear after a call without an answer. */
export type Called =
  | { readonly state: "running"; readonly number: number }
  | { readonly state: "stopped" | "unclear" | "handed over" };

export interface CalledPlace {
  readonly id: string;
  readonly namespace: string;
  readonly name: string;
}

export function isCalled(id: string): boolean {
  return id.includes(idPart);
}

export class Caller {
  private readonly world: SimRegion;
  private readonly calls = new Map<
    string,
    { readonly place: CalledPlace; called: Called; isBusy: boolean }
  >();

  constructor(world: SimRegion) {
    this.world = world;
  }

  /** What it gave orders about. */
  all(): Iterable<{ readonly place: CalledPlace; readonly called: Called }> {
    return this.calls.values();
  }

  async apply(choices: Choices): Promise<void> {
    const { namespace, environment, place } = anyPlace(choices);
    const { ledger } = this.world;
    const number = ledger.next;
    const replicas = choices.index(3);
    await this.call(choices, place, { state: "running", number }, (agent) => {
      ledger.add("deployment", place.id, "running");
      return agent.client(SchedulerService)?.applyDeployment(
        {
          k8sNamespace: namespace,
          k8sName: place.name,
          workspaceId: `ws_${namespace}`,
          projectId: `proj_${namespace}`,
          environmentId: environment,
          deploymentId: place.id,
          image: `registry.example/${namespace}/web:${number}`,
          replicas,
          cpuMillicores: 250n,
          memoryMib: 256n,
        },
        { headers },
      );
    });
  }

  async remove(choices: Choices): Promise<void> {
    const { namespace, place } = anyPlace(choices);
    await this.call(choices, place, { state: "stopped" }, (agent) => {
      this.world.ledger.add("deployment", place.id, "stopped");
      const ref = { k8sNamespace: namespace, k8sName: place.name };
      return agent.client(SchedulerService)?.deleteDeployment(ref, { headers });
    });
  }

  /** The control plane takes one over, with a spec of its own. */
  async handOver(choices: Choices): Promise<void> {
    const { namespace, environment, place } = anyPlace(choices);
    const call = this.calls.get(place.id);
    if (call === undefined || call.isBusy || call.called.state === "handed over") return;
    call.called = { state: "handed over" };
    const owner = { workspaceId: `ws_${namespace}`, projectId: `proj_${namespace}` };
    const wish = { replicas: choices.index(3), port: 8080, hasSecrets: false };
    await orderDeployment(this.world, { ...place, environment, ...owner }, place.id, wish);
  }

  private async call(
    choices: Choices,
    place: CalledPlace,
    wanted: Called,
    send: (agent: SimAgent) => Promise<unknown> | undefined,
  ): Promise<void> {
    const agent = choices.one(this.world.agents);
    const call = this.calls.get(place.id) ?? { place, called: { state: "stopped" }, isBusy: false };
    if (call.isBusy || call.called.state === "handed over" || agent.client(SchedulerService) === undefined)
      return;
    this.calls.set(place.id, call);
    const { trace } = this.world;
    trace.add(
      "caller",
      `order ${this.world.ledger.next}: ${wanted.state} ${place.id}, of agent ${agent.name}`,
    );
    call.isBusy = true;
    const answer = await this.answerTo(send(agent));
    call.isBusy = false;
    trace.add("caller", `${place.id}: ${answer}`);
    if (answer === "accepted") call.called = wanted;
    else if (answer === "unclear") call.called = { state: "unclear" };
  }

  private answerTo(sent: Promise<unknown> | undefined): Promise<"accepted" | "refused" | "unclear"> {
    return new Promise((resolve) => {
      const timer = this.world.clock.setTimer(answerMaxMs, () => resolve("unclear"));
      const settle = (answer: "accepted" | "refused" | "unclear") => {
        timer.cancel();
        resolve(answer);
      };
      (sent ?? Promise.reject(new Error("not served"))).then(
        () => settle("accepted"),
        (error: unknown) => settle(verdictOf(ConnectError.from(error))),
      );
    });
  }
}

/** As docs/scheduler.md says what the statuses of an order mean. */
function verdictOf({ code, rawMessage }: ConnectError): "accepted" | "refused" | "unclear" {
  if (code === Code.InvalidArgument || /^(order not accepted|not done:)/.test(rawMessage)) return "refused";
  if (/stays in force/.test(rawMessage)) return "accepted";
  const isInForce = code === Code.AlreadyExists || code === Code.FailedPrecondition;
  return isInForce ? "accepted" : "unclear";
}

function anyPlace(choices: Choices) {
  const namespace = choices.one(namespaces);
  const slot = choices.index(2);
  const place = { id: `d_${namespace}${idPart}${slot}`, namespace, name: `${namespace}-${idPart}-${slot}` };
  return { namespace, environment: `env_${namespace}${slot}`, place };
}
