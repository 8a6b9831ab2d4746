// A region and those who use its control plane and its agents.
import { Apps } from "./apps.ts";
import { Caller } from "./caller.ts";
import { SimRegion, type SimRegionOptions } from "./sim-region.ts";

export class World extends SimRegion {
  readonly apps = new Apps(this);
  readonly caller = new Caller(this);

  static async create(options: SimRegionOptions): Promise<World> {
    const world = new World(options);
    await world.start();
    return world;
  }

  override async notePlaneRows(): Promise<void> {
    await super.notePlaneRows();
    await this.apps.restored();
  }
}
