// Long lists: rows are made when they come near the window, in chunks, and a chunk that was made stays.

import { html, useEffect, useRef, useState } from "./vendor/htm-preact.js";

const NEAR = "1200px";

/**
 * Shows `items`, `size` in a chunk. `row` makes one; `height` is about how high one is before it is there.
 * The chunk that holds `focus`, if there is one, is made at once.
 */
export function Lazy({ items, row, size = 50, height = 44, focus = -1 }) {
  const chunks = [];
  for (let from = 0; from < items.length; from += size) {
    const slice = items.slice(from, from + size);
    const ready = from === 0 || (focus >= from && focus < from + size);
    chunks.push(html`<${Chunk} key=${from} items=${slice} from=${from} row=${row} height=${height} ready=${ready} />`);
  }
  return chunks;
}

function Chunk({ items, from, row, height, ready }) {
  const [near, setNear] = useState(ready);
  const box = useRef(null);
  const made = near || ready;
  useEffect(() => {
    if (made) return undefined;
    const watch = new IntersectionObserver((seen) => {
      if (seen.some((each) => each.isIntersecting)) setNear(true);
    }, { rootMargin: NEAR });
    watch.observe(box.current);
    return () => watch.disconnect();
  }, [made]);
  if (!made) return html`<div ref=${box} class="unmade" style=${{ height: `${items.length * height}px` }}></div>`;
  return html`<div class="chunk">${items.map((item, at) => row(item, from + at))}</div>`;
}
