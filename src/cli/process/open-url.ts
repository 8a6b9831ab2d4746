// Starts the user's browser, which goes on when krane ends.
import { spawn } from "node:child_process";

const openers: Readonly<Partial<Record<NodeJS.Platform, readonly string[]>>> = {
  darwin: ["open"],
  win32: ["rundll32", "url.dll,FileProtocolHandler"],
};

/** Resolves to false if there is no such program. Nothing of what it says reaches the terminal. */
export function openUrl(url: string, platform: NodeJS.Platform): Promise<boolean> {
  const [command = "", ...args] = openers[platform] ?? ["xdg-open"];
  return new Promise((resolve) => {
    const child = spawn(command, [...args, url], { detached: true, stdio: "ignore" });
    child.once("error", () => resolve(false));
    child.once("spawn", () => {
      child.unref();
      resolve(true);
    });
  });
}
