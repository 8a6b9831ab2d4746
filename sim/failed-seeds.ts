// Seeds whose worlds once violated an invariant, and what was found. They run first in every `make test`. A change of the
// simulation changes what a seed does, so a defect also has a test of its own.
export const failedSeeds: readonly { readonly seed: number; readonly found: string }[] = [
  {
    seed: 8,
    found: "a standby that was cut off from the control plane led, and acted on an old Delete (K5)",
  },
  {
    seed: 1,
    found: "reports of an orphan were taken for those of another namespace, when the world used a name twice",
  },
  {
    seed: 95,
    found:
      "a workload relied on a policy that was deleted during an outage, before its watch was open again (K8)",
  },
  {
    seed: 9,
    found: "a new leader wrote what it knew from before its control plane was restored (K3)",
  },
  {
    seed: 17,
    found:
      "the port of a deployment that was deleted for its absence stayed open until the next resync (K11)",
  },
  {
    seed: 50,
    found:
      "an agent cannot know the new version of what it applied, if responses of a restored control plane have none",
  },
  {
    seed: 54,
    found: "an object seemed younger than it was, because Kubernetes rounds the time of creation",
  },
  {
    seed: 115,
    found: "a new leader applied an old state to an object whose deletion it held back (K3)",
  },
  ...[6010, 6011].map((seed) => ({
    seed,
    found: "a workload relied on a policy that had left its watch and was not looked up yet (K8)",
  })),
  {
    seed: 5008,
    found: "a webhook refused that people release a finalizer, and the world never asked again",
  },
  {
    seed: 6006,
    found: "a bad network that began during another one lasted after the adversary had stopped",
  },
  {
    seed: 6009,
    found:
      "what was ordered again after the control plane had lost its rows stayed deleted, because its number was below that of the Delete",
  },
  {
    seed: 7014,
    found: "a stalled agent stopped at once when it was told to, before it could run again",
  },
  {
    seed: 7050,
    found: "a write that its client had given up waited in a webhook, and was executed long after",
  },
  {
    seed: 7043,
    found:
      "a workload returned before its policy, which had gone with the namespace too (K8); an order was never recorded, and was said to stay in force",
  },
  {
    seed: 7090,
    found: "a new workload relied on a policy that was gone, because its watch lagged (K8)",
  },
  {
    seed: 7094,
    found: "the deletion of an object with a finalizer was taken for a write of its spec",
  },
  {
    seed: 7126,
    found: "a request that was sent before a replica took over was still answered by the primary",
  },
  {
    seed: 7178,
    found: "the budget of deletions was counted from their requests instead of their decisions",
  },
  {
    seed: 7219,
    found: "copies of policies that people had made were counted as managed",
  },
];
