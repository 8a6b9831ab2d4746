// JSON patch (RFC 6902). A patch is applied as a whole or not at all.
import { copyJson, equalJson, fieldOf, isObject, type Json, type JsonObject, setField } from "../json.ts";

export class JsonPatchError extends Error {
  override readonly name = "JsonPatchError";
}

type Container = JsonObject | Json[];

export function applyJsonPatch(target: Json, patch: readonly unknown[]): Json {
  // Operations change a copy in place, which is returned only if all of them succeed.
  const holder: JsonObject = { root: copyJson(target) };
  for (const operation of patch) {
    if (!isObject(operation)) throw new JsonPatchError("operation is not an object");
    applyOperation(holder, operation);
  }
  return holder["root"] ?? null;
}

function applyOperation(holder: JsonObject, operation: JsonObject): void {
  const path = parsePointer(operation["path"]);
  const value = copyJson(operation["value"] ?? null);
  switch (operation["op"]) {
    case "add":
      add(holder, path, value);
      break;
    case "remove":
      remove(holder, path);
      break;
    case "replace":
      replace(holder, path, value);
      break;
    case "move":
      add(holder, path, remove(holder, parsePointer(operation["from"])));
      break;
    case "copy":
      add(holder, path, copyJson(read(holder, parsePointer(operation["from"]))));
      break;
    case "test":
      if (!equalJson(read(holder, path), value)) throw new JsonPatchError("test failed");
      break;
    default:
      throw new JsonPatchError(`unexpected kind: ${String(operation["op"])}`);
  }
}

function parsePointer(pointer: Json | undefined): readonly string[] {
  if (typeof pointer !== "string" || (pointer !== "" && !pointer.startsWith("/"))) {
    throw new JsonPatchError("path is not a JSON pointer");
  }
  const steps = pointer.split("/").slice(1);
  return ["root", ...steps.map((step) => step.replaceAll("~1", "/").replaceAll("~0", "~"))];
}

function read(root: Container, path: readonly string[]): Json {
  let value: Json = root;
  for (const step of path) {
    const next: Json | undefined = Array.isArray(value)
      ? value[indexOf(value, step, value.length - 1)]
      : isObject(value)
        ? fieldOf(value, step)
        : undefined;
    if (next === undefined) throw new JsonPatchError(`nothing at ${path.slice(1).join("/")}`);
    value = next;
  }
  return value;
}

function parentOf(root: Container, path: readonly string[]): Container {
  const parent = read(root, path.slice(0, -1));
  if (Array.isArray(parent) || isObject(parent)) return parent;
  throw new JsonPatchError(`nothing can be at ${path.slice(1).join("/")}`);
}

function add(root: Container, path: readonly string[], value: Json): void {
  const parent = parentOf(root, path);
  const step = path.at(-1) ?? "";
  if (Array.isArray(parent)) {
    parent.splice(step === "-" ? parent.length : indexOf(parent, step, parent.length), 0, value);
  } else {
    setField(parent, step, value);
  }
}

function remove(root: Container, path: readonly string[]): Json {
  const removed = read(root, path);
  const parent = parentOf(root, path);
  const step = path.at(-1) ?? "";
  if (Array.isArray(parent)) parent.splice(indexOf(parent, step, parent.length - 1), 1);
  else delete parent[step];
  return removed;
}

// The real server's patch library treats a replacement of an absent member as an addition.
function replace(root: Container, path: readonly string[], value: Json): void {
  if (Array.isArray(parentOf(root, path))) remove(root, path);
  add(root, path, value);
}

function indexOf(list: readonly Json[], step: string, indexMax: number): number {
  const index = /^(0|[1-9]\d*)$/.test(step) ? Number(step) : Number.NaN;
  if (!(index <= indexMax)) throw new JsonPatchError(`no index ${step} in a list of ${list.length}`);
  return index;
}
