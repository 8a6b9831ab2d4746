// Bugs that `make sim-mutants` plants, one at a time: small changes of the source, each of which takes one protection away.
// They show whether the oracles would find such a bug. Every `from` occurs exactly once in its file, which a test checks.

export interface PlantedBug {
  /** The protection that is gone. */
  readonly without: string;
  readonly file: string;
  readonly from: string;
  readonly to: string;
}

const engine = (file: string): ((without: string, from: string, to: string) => PlantedBug) =>
  at(`src/engine/${file}`);

function at(file: string) {
  return (without: string, from: string, to: string): PlantedBug => ({ without, file, from, to });
}

const store = engine("desired-store.ts");
const guard = engine("deletion-guard.ts");
const reconcile = engine("reconcile.ts");
const steps = engine("apply-steps.ts");
const writer = engine("object-writer.ts");
const repair = engine("drift-repair.ts");
const resync = engine("resync.ts");
const takeOver = engine("take-over.ts");
const watched = engine("watched-kind.ts");
const ingress = at("src/kinds/deployment/ingress-policy-plan.ts");
const projections = at("src/kinds/deployment/projections.ts");
const deployment = at("src/kinds/deployment/controller.ts");
const fence = at("src/kube/fenced-transport.ts");
const lease = at("src/kube/lease-state.ts");
const reflector = at("src/kube/reflector.ts");
const ownership = at("src/model/ownership.ts");
const seal = at("src/model/seal.ts");
const secrets = at("src/services/secrets-service.ts");
const identity = at("src/services/workload-identity.ts");
const history = at("src/control-plane/server-history.ts");
const feed = at("src/server/desired-feed.ts");
const served = at("src/server/served-incarnation.ts");
const releases = at("src/server/apps/releases.ts");
const kept = engine("kept-orders.ts");

export const plantedBugs: readonly PlantedBug[] = [
  store(
    "the newest version wins",
    'if (known === undefined || message.version > known.entry.version)\n      return this.takeNewer(known, message, "stream");',
    'return this.takeNewer(known, message, "stream");',
  ),
  store(
    "the sequence check of a response",
    'if (known.entry.sequence !== question.sequence) return "stale";',
    "",
  ),
  store("a lagging replica is not believed", 'if (this.isNamed() && !known.isRestored) return "stale";', ""),
  store(
    "a Delete outlives a response of a lagging replica",
    'if (this.confirmed.has(entry.key) || this.isNamed()) return "stale";',
    'return this.put(message, "resync");',
  ),
  store(
    "versions are void in a new incarnation",
    "this.forgetVersions();\n    return deleted",
    "return deleted",
  ),
  store("tombstones", "const tombstoneMs = 3_600_000;", "const tombstoneMs = -1;"),
  guard(
    "three confirmations of an absence",
    "if (suspicion.confirmations < confirmations)",
    "if (suspicion.confirmations < 1)",
  ),
  guard("three passes before a suspicion", "passes >= this.options.confirmations ||", "passes >= 1 ||"),
  guard(
    "half of the objects must be known",
    "const isTrustworthy = present * 2 >= managed;",
    "const isTrustworthy = true;",
  ),
  guard(
    "the budget of deletions",
    "if (this.deletedAtMs.length < budget) return undefined;",
    "return undefined;",
  ),
  guard("the minimum age", 'return "the object is too young";', "return undefined;"),
  guard(
    "no deletions for ten minutes after a take-over",
    "this.clock.nowMs() + this.options.budgetWindowMs;",
    "0;",
  ),
  guard("absences start again with an incarnation", "suspicion.confirmations = 0;\n", ""),
  guard(
    "a wanted object is no longer suspected",
    "clear(key: string): void {\n    this.suspicions.delete(key);",
    "clear(_key: string): void {",
  ),
  guard(
    "the guard asks whose object it is",
    'if (!isSealed && (ownership.kind !== "unsealed" || authority === "unused"))',
    'if (ownership.kind === "other-id")',
  ),
  reconcile(
    "the uid of a delete",
    'const options = { uid, propagation: "Background" } as const;',
    'const options = { uid: "", propagation: "Background" } as const;',
  ),
  reconcile(
    "absence goes through the guard",
    'await this.remove(key, definition.targets(key, entry), "absence", progress, signal)',
    'await this.remove(key, definition.targets(key, entry), "order", progress, signal)',
  ),
  reconcile(
    "an absent object is not only forgotten",
    "if (isThere ? guard.isSuspected(key) : guard.isConfirmed(key)) {",
    "if (!isThere && guard.isConfirmed(key)) {",
  ),
  reconcile(
    "a key is retried after a failure",
    'return { kind: "retry", backoff: backoffs[kind], atLeastMs };',
    "return done;",
  ),
  steps(
    "strangers are not written to",
    "if (!isClaimable(live.ownership)) return conflict(name, live.ownership);",
    "",
  ),
  steps(
    "a workload waits for its policy",
    "if (step.isReady && (isCertain || (await step.confirm(signal)))) continue;",
    "continue;",
  ),
  steps("what lost its seal is sealed again", "live.deleting || !isSealed(live.ownership)", "live.deleting"),
  steps(
    "in-sync objects are not written",
    "if (isSealed(cached.ownership)) return applied(0, { left });",
    "",
  ),
  steps("drift is noticed", "if (live.contentHash === contentHash) return true;", "return true;"),
  steps("labels are put back", "if (!target.isStray()) continue;", "continue;"),
  writer(
    "an apply forces only onto krane's own",
    "force: live !== undefined, ...(dryRun",
    "force: true, ...(dryRun",
  ),
  writer("an apply carries the uid", "live === undefined ? {} : { uid: live.uid };", "{};"),
  repair(
    "fields that others added are removed",
    "if (operations.length === 0) return unchanged;",
    "return unchanged;",
  ),
  resync(
    "a failed request is no absence",
    "if (answer === undefined) return;\n",
    "if (answer === undefined) return guard.suspect(key, id);\n",
  ),
  resync("a pass looks for drift", "await this.enqueueOutOfSync(signal);", ""),
  resync("one pass is one suspicion", "this.takeConfirmed(confirmed, tally);\n", ""),
  engine("unconfirmed-keys.ts")(
    "a new leader asks before it acts",
    "if (sequence === undefined) return true;",
    "return true;",
  ),
  engine("incarnation.ts")("the guard hears of an incarnation", "guard.startOver();\n", ""),
  takeOver(
    "a new leader looks at every key",
    "for (const { key } of definition.managed()) keys.add(key);",
    "",
  ),
  engine("reporter.ts")(
    "a failed report is sent again",
    'if (failure.kind === "retry") {',
    'if (failure.kind === "delivered") {',
  ),
  watched(
    "an object without its labels may live",
    "mayLive: (entry: CacheEntry<P>) => this.mayLive(entry),",
    "",
  ),
  ingress(
    "the policy stays while it is needed",
    "if (wanted === undefined) return this.planUnused(key, environment);",
    "if (wanted === undefined || wanted.ports.length < 2) return this.planUnused(key, environment);",
  ),
  ingress("a policy that is going is not relied on", "!this.going.has(policyKey(spec)) &&", ""),
  ingress("the policy admits the port first", "entry.value.ports.includes(spec.port)", "true"),
  ingress(
    "the policy is there first",
    'return [{ kind: "await", key, isReady: this.isReady(spec, ref), isCertain, confirm }];',
    "return [];",
  ),
  ingress(
    "a policy is read before a workload is created",
    "policies.isShown(objectKey(ref)) && (!isNew || isRead);",
    "true;",
  ),
  at("src/kinds/deployment/pod-template.ts")(
    "the runtime class",
    '...(runtimeClass !== "" && { runtimeClassName: runtimeClass }),',
    "",
  ),
  projections(
    "only ready pods run",
    'return isRunning && !isDoubtful ? "running" : "pending";',
    'return "running";',
  ),
  projections(
    "pods that are being deleted are left out",
    'if (metadata?.deletionTimestamp !== undefined) return "omitted";\n',
    "",
  ),
  deployment(
    "only what is gone is reported so",
    "if (this.replicaSets.get(key) !== undefined) return undefined;",
    "",
  ),
  deployment(
    "a report is about the named deployment",
    'if (holder !== "this") return holder === "unclear" ? "unclear" : undefined;',
    "",
  ),
  engine("pod-replacement.ts")("isolated pods stay", "return pod.weakness !== undefined;", "return true;"),
  fence("the fence", 'return method !== "GET" && !storesNothing.test(path);', "return false;"),
  fence(
    "the fence right before a write is sent",
    "if (fence.leftMs() < 2 * timeoutMs) throw refusal(request);",
    "",
  ),
  fence(
    "a write may take half of the lease",
    "const timeoutMs = Math.floor((leftMs - waitMaxMs) / 2);",
    "const timeoutMs = Math.floor(leftMs + 60_000);",
  ),
  lease(
    "the renew deadline",
    "return held && nowMs < held.renewedMs + this.times.renewDeadlineMs ? held.term : undefined;",
    "return held?.term;",
  ),
  lease(
    "a candidate waits until the lease expires",
    "return nowMs >= sinceMs + durationMs + clockMarginMs;",
    "return nowMs >= sinceMs + 3_000;",
  ),
  lease(
    "a holder that another one replaced stops",
    "if (lease?.spec?.holderIdentity !== this.identity) this.held = undefined;",
    "",
  ),
  reflector(
    "the state is read again after a 410",
    "if (error.isExpired || isUnreadable) this.resumeAt = undefined;",
    "",
  ),
  reflector(
    "a stale list is not taken",
    "if (this.lagging < laggingMax && this.isBehind(resourceVersion)) {",
    "if (Number.isNaN(this.lagging)) {",
  ),
  ownership(
    "a foreign object is foreign",
    "label !== managedBy && !isOriginalGossip(labels)",
    "label === undefined && false",
  ),
  ownership(
    "a wrong id is a conflict",
    "if (!isClaimable(ownership) || id.live === id.wanted) return ownership;",
    "return ownership;",
  ),
  seal(
    "a seal is verified",
    "if (!isEqual(text, this.textOf({ kind, namespace, name }, claims, key))) return broken;",
    "",
  ),
  secrets(
    "the log has no values",
    "this.record(inquiry, outcome, clock.nowMs() - startedMs);",
    'this.record(inquiry, outcome, clock.nowMs() - startedMs);\n    if (decided.kind === "given") this.deps.log.info("given", { reason: [...decided.variables.values()].join() });',
  ),
  secrets(
    "the keyring is that of the pod",
    "return this.decrypt(request.encryptedBlob, wanted.environmentId, signal);",
    "return this.decrypt(request.encryptedBlob, request.environmentId || wanted.environmentId, signal);",
  ),
  identity(
    "the owner's ids are compared",
    'if (named.environmentId !== environmentId) return "ReplicaSet belongs to another environment";',
    "",
  ),
  identity(
    "a pod that is going gets nothing",
    'if (metadata.deletionTimestamp !== undefined) return "pod is being deleted";',
    "",
  ),
  identity(
    "the owner is krane's",
    'if (!isClaimable(judgeOwnership(reading, metadata))) return "ReplicaSet is not krane\'s";',
    "",
  ),
  history(
    "no way back to an older incarnation",
    "if (from !== undefined && compareIncarnations(incarnation, from) < 0) {",
    "if (from === undefined && compareIncarnations(incarnation, incarnation) < 0) {",
  ),
  feed(
    "a cursor of another incarnation is void",
    "if (!isKnown && cursor > 0n) {",
    "if (!isKnown && cursor < 0n) {",
  ),
  served("a replica that lags turns agents away", 'case "lagging":', 'case "lagging":\n      return true;'),
  served(
    "a server that was rolled back starts a new incarnation",
    'case "rolled-back": {',
    'case "rolled-back": {\n      return true;',
  ),
  served(
    "a new agent asks the primary first",
    "if (incarnation.isReplica) throw turnedAway(unprovenReason);",
    "",
  ),
  releases("one release is current", "from.phase = Phase.DRAINING;", ""),
  releases("a release ends after traffic has left it", "if (release.movedAtMs === 0n) return;", ""),
  at("src/server/apps/sights.ts")(
    "a release becomes current when its pods are ready",
    'return { state: "waiting", reason, heardSinceMs };',
    'return { state: "ready", heardSinceMs };',
  ),
  at("src/kinds/route/desired.ts")(
    "a route leads to its target",
    'selector: backendLabels(spec, to?.deploymentId ?? ""),',
    'selector: backendLabels(spec, spec.backends[0]?.deploymentId ?? ""),',
  ),
  kept(
    "an order is recorded",
    "const refusal = await this.tryWrite(key, { record: numbered, number, untilMs }, signal);",
    "const refusal = numbered ? undefined : await this.tryWrite(key, { record: numbered, number, untilMs }, signal);",
  ),
  kept(
    "the deletion of an order removes its record",
    "const refusal = await this.tryWrite(key, { record: numbered, number, untilMs }, signal);",
    "const refusal = numbered && (await this.tryWrite(key, { record: numbered, number, untilMs }, signal));",
  ),
];
