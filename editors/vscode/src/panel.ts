/** The page that the inspector's panel shows, and the script that connects it with the extension. */

/** Returns the files that a module imports, as paths below the inspector's folder. */
export function importsOf(name: string, source: string): string[] {
  const found = source.matchAll(/(?:from|import)\s*\(?\s*"(\.{1,2}\/[^"]+)"/g);
  return [...found].map(([, path]) => new URL(path ?? "", `http://x/${name}`).pathname.slice(1));
}

export function panelPage(page: {
  style: string;
  script: string;
  source: string;
  nonce: string;
  bridge: string;
}): string {
  const { style, script, source, nonce, bridge } = page;
  const policy = `default-src 'none'; script-src ${source} 'nonce-${nonce}'; style-src ${source}; img-src ${source} data:;`;
  return `<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="${policy}">
<meta name="color-scheme" content="light dark">
<link rel="stylesheet" href="${style}">
<script nonce="${nonce}">${bridge}</script>
<script type="module" nonce="${nonce}" src="${script}"></script>
</head>
<body><div id="page"></div></body>
</html>`;
}

/** The script that stands in for the network: requests become messages, messages become responses. */
export function panelScript(hash: string, icon: string): string {
  const settings = JSON.stringify({ hash, icon }).replaceAll("<", "\\u003c");
  return `(${bridge.toString()})(${settings});`;
}

/** Runs in the panel. It may use nothing from this file. */
function bridge({ hash, icon }: { hash: string; icon: string }): void {
  // biome-ignore lint/suspicious/noExplicitAny: the panel's own world, which has no types here
  const page = globalThis as any;
  const host = page.acquireVsCodeApi();
  const waiting = new Map();
  let last = 0;
  page.location.hash = hash;
  page.fetch = (path: string, options: { method?: string; body?: string; signal?: AbortSignal } = {}) =>
    new Promise((resolve, reject) => {
      const id = ++last;
      let controller: ReadableStreamDefaultController<Uint8Array>;
      const body = new ReadableStream<Uint8Array>({
        start: (given) => {
          controller = given;
        },
      });
      const fail = (error: Error) => {
        waiting.delete(id);
        reject(error);
        try {
          controller.error(error);
        } catch {
          // It has ended already.
        }
      };
      waiting.set(
        id,
        (told: { kind: string; status: number; contentType: string; chunk: number[]; message: string }) => {
          if (told.kind === "head") {
            resolve(new Response(body, { status: told.status, headers: { "content-type": told.contentType } }));
          } else if (told.kind === "chunk") {
            controller.enqueue(new Uint8Array(told.chunk));
          } else if (told.kind === "end") {
            waiting.delete(id);
            controller.close();
          } else {
            fail(new TypeError(told.message));
          }
        },
      );
      options.signal?.addEventListener("abort", () => {
        host.postMessage({ type: "abort", id });
        fail(new DOMException("aborted", "AbortError"));
      });
      host.postMessage({ type: "fetch", id, method: options.method ?? "GET", path, body: options.body });
    });
  page.addEventListener("message", ({ data }: { data: { id: number } }) => waiting.get(data.id)?.(data));
  // The editor takes links to a fragment for itself, and would only scroll.
  page.addEventListener(
    "click",
    // biome-ignore lint/suspicious/noExplicitAny: as above
    (event: any) => {
      const link = event.target.closest?.('a[href^="#"]');
      if (link === null || link === undefined || link.classList.contains("skip")) return;
      event.preventDefault();
      event.stopPropagation();
      page.location.hash = link.getAttribute("href");
    },
    true,
  );
  new page.MutationObserver(() => {
    for (const image of page.document.querySelectorAll('img[src="/inspector/icon.svg"]')) image.src = icon;
  }).observe(page.document, { childList: true, subtree: true });
}
