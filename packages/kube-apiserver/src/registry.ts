// The registry of served resources by group and version: built-in kinds, and custom ones as their definitions come and
// go.
import { apiVersionOf, type ServedResource } from "./resource.ts";

export class ResourceRegistry {
  private readonly builtin: readonly ServedResource[];
  private readonly custom = new Map<string, readonly ServedResource[]>();

  constructor(builtin: readonly ServedResource[]) {
    this.builtin = builtin;
  }

  /** Replaces the resources of a definition; an empty list removes them. */
  setCustom(definition: string, resources: readonly ServedResource[]): void {
    if (resources.length === 0) this.custom.delete(definition);
    else this.custom.set(definition, resources);
  }

  all(): readonly ServedResource[] {
    return [...this.builtin, ...[...this.custom.values()].flat()];
  }

  find(group: string, version: string, plural: string): ServedResource | undefined {
    return this.all().find(
      ({ kind }) => kind.plural === plural && kind.group === group && kind.version === version,
    );
  }

  hasGroup(group: string): boolean {
    return this.all().some(({ kind }) => kind.group === group);
  }

  hasVersion(group: string, version: string): boolean {
    return this.all().some(({ kind }) => kind.group === group && kind.version === version);
  }

  hasKind(apiVersion: string, kind: string): boolean {
    return this.all().some((served) => served.kind.kind === kind && apiVersionOf(served.kind) === apiVersion);
  }
}
