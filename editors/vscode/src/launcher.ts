/** The gateway's program: where it is, and starting it. */

import { spawn } from "node:child_process";
import { accessSync, closeSync, constants, openSync, readFileSync } from "node:fs";
import { delimiter, join } from "node:path";

const NAME = process.platform === "win32" ? "throughline.exe" : "throughline";

/** Returns the program to run: the one that is set, else the bundled one, else the one on `PATH`. */
export function findProgram(set: string, bundled: string, path = process.env["PATH"] ?? ""): string | undefined {
  if (set !== "") return set;
  const places = [bundled, ...path.split(delimiter).filter((place) => place !== "")];
  return places.map((place) => join(place, NAME)).find(isExecutable);
}

function isExecutable(file: string): boolean {
  try {
    accessSync(file, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

/** Returns what the program is to listen on; none when the address is not on this machine, or not plain HTTP. */
export function listenAddress(url: string): string | undefined {
  const { protocol, hostname, port } = new URL(url);
  const isLocal = ["127.0.0.1", "localhost", "[::1]"].includes(hostname);
  return isLocal && protocol === "http:"
    ? `${hostname === "localhost" ? "127.0.0.1" : hostname}:${port || 80}`
    : undefined;
}

/**
 * Starts the gateway, which outlives the editor: terminals and other windows use it too. Resolves when `isUp` says so,
 * and fails with the end of its log when it ends instead.
 */
export async function startProgram(options: {
  program: string;
  address: string;
  log: string;
  isUp: () => Promise<boolean>;
}): Promise<void> {
  const { program, address, log, isUp } = options;
  const file = openSync(log, "a");
  const child = spawn(program, ["serve", "--listen", address], { detached: true, stdio: ["ignore", file, file] });
  closeSync(file);
  let problem: string | undefined;
  child.on("error", (error) => {
    problem = `${program} could not be started: ${error.message}`;
  });
  child.on("exit", (code) => {
    problem ??= `${program} ended with ${code}: ${readFileSync(log, "utf8").trim().slice(-500)}`;
  });
  child.unref();
  while (!(await isUp())) {
    if (problem !== undefined) throw new Error(problem);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}
