/** Bundles the extension into dist; with --vsix, packages it into throughline.vsix as well. */

import { execFileSync } from "node:child_process";
import { copyFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";

const here = dirname(fileURLToPath(import.meta.url));
await build({
  absWorkingDir: here,
  entryPoints: ["src/extension.ts"],
  outfile: "dist/extension.cjs",
  bundle: true,
  platform: "node",
  format: "cjs",
  target: "node20",
  external: ["vscode"],
  minifySyntax: true,
  logLevel: "warning",
});

if (process.argv.includes("--vsix")) {
  copyFileSync(join(here, "../../LICENSE-MIT"), join(here, "LICENSE"));
  const vsce = join(here, "node_modules/@vscode/vsce/vsce");
  const options = [
    "--no-dependencies",
    "--no-rewrite-relative-links",
    "--allow-missing-repository",
    "--skip-license",
    "--out",
    "throughline.vsix",
  ];
  execFileSync(process.execPath, [vsce, "package", ...options], { cwd: here, stdio: "inherit" });
}
