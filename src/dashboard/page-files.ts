// The files of the dashboard's page, as tools/bundle-dashboard.ts builds them into the program.
import { gunzipSync } from "node:zlib";

export interface PageFile {
  readonly contentType: string;
  /** Compressed by gzip, which every browser accepts. */
  readonly gzip: Buffer;
}

export interface PageFiles {
  readonly index: PageFile;
  /** By name. A name contains the hash of its content, so that browsers may keep the file for ever. */
  readonly assets: ReadonlyMap<string, PageFile>;
}

/** How the files are written into the program: as text. */
export interface PackedFiles {
  readonly index: PackedFile;
  readonly assets: Readonly<Record<string, PackedFile>>;
}

export interface PackedFile {
  readonly contentType: string;
  /** As base64. */
  readonly gzip: string;
}

export function unpackFiles({ index, assets }: PackedFiles): PageFiles {
  return {
    index: unpack(index),
    assets: new Map(Object.entries(assets).map(([name, file]) => [name, unpack(file)])),
  };
}

function unpack({ contentType, gzip }: PackedFile): PageFile {
  return { contentType, gzip: Buffer.from(gzip, "base64") };
}

/** For a client that does not accept gzip. */
export function plainOf({ gzip }: PageFile): Buffer {
  return gunzipSync(gzip);
}
