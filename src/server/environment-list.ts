// The environments of one region in memory. Versions are counted per region, not per
// environment, so that an environment that is deleted and created again never repeats a
// version.
import { isSameEnvironment } from "./environment-rules.ts";
import type { EnvironmentContent, StoredEnvironment } from "./store.ts";

export class EnvironmentList {
  private readonly byId = new Map<string, StoredEnvironment>();
  private counter = 0n;

  get(id: string): StoredEnvironment | undefined {
    return this.byId.get(id);
  }

  /** Ordered by id. */
  behind(afterId: string, limit: number): readonly StoredEnvironment[] {
    const rest = [...this.byId.values()].filter(({ id }) => id > afterId);
    return rest.sort((a, b) => (a.id < b.id ? -1 : 1)).slice(0, limit);
  }

  change(
    id: string,
    decide: (environment: StoredEnvironment | undefined) => EnvironmentContent | undefined,
  ): StoredEnvironment | undefined {
    const before = this.byId.get(id);
    const wanted = decide(before);
    if (wanted === undefined || (before !== undefined && isSameEnvironment(before, wanted))) return before;
    this.counter += 1n;
    const { workspaceId, projectId, secrets } = wanted;
    const after = { id, workspaceId, projectId, secrets: new Map(secrets), version: this.counter };
    this.byId.set(id, after);
    return after;
  }

  delete(id: string): boolean {
    return this.byId.delete(id);
  }
}
