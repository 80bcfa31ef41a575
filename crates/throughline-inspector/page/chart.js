// Over the turns: how much of each prompt was cached, sent anew, and cut.

import { html } from "./vendor/htm-preact.js";
import { brief, count } from "./words.js";

/** What an exchange's prompt took: read from the provider's cache, sent anew, and left out. */
export function sizes(exchange) {
  const plan = exchange.attempts.at(-1)?.report?.plan;
  const cached = exchange.usage?.cache_read ?? 0;
  const input = exchange.usage?.input ?? plan?.tokens_after ?? 0;
  return { cached, fresh: Math.max(0, input - cached), cut: plan ? Math.max(0, plan.tokens_before - plan.tokens_after) : 0 };
}

const WIDTH = 720;
const HEIGHT = 120;

/** Bars for the exchanges of a conversation; a click opens what the backend saw. */
export function Chart({ exchanges, at, open }) {
  const bars = exchanges.map(sizes);
  const most = Math.max(1, ...bars.map(({ cached, fresh, cut }) => cached + fresh + cut));
  const width = WIDTH / bars.length;
  const scale = (tokens) => (tokens / most) * HEIGHT;
  const bar = ({ cached, fresh, cut }, number) => {
    const x = number * width;
    const [a, b, c] = [scale(cached), scale(fresh), scale(cut)];
    const { attempts } = exchanges[number];
    const label = `exchange ${number + 1}, ${attempts.at(-1)?.backend ?? "nobody"}: ${count(cached)} cached, ${count(fresh)} sent, ${count(cut)} cut`;
    const w = Math.max(0.5, width - (width > 4 ? 1.5 : 0));
    return html`<g class=${number + 1 === at ? "bar here" : "bar"} onClick=${() => open(number + 1)}>
      <title>${label}</title>
      <rect class="hit" x=${x} y="0" width=${width} height=${HEIGHT} />
      <rect class="cut" x=${x} y=${HEIGHT - a - b - c} width=${w} height=${c} />
      <rect class="fresh" x=${x} y=${HEIGHT - a - b} width=${w} height=${b} />
      <rect class="cached" x=${x} y=${HEIGHT - a} width=${w} height=${a} />
    </g>`;
  };
  return html`<figure class="chart">
    <svg viewBox="0 0 ${WIDTH} ${HEIGHT}" preserveAspectRatio="none" role="img" aria-label="prompt tokens of each exchange">${bars.map(bar)}</svg>
    <figcaption><span>prompt tokens over ${count(bars.length)} exchanges, at most ${brief(most)}</span>
      <span class="key"><i class="cached"></i> cached</span><span class="key"><i class="fresh"></i> sent</span><span class="key"><i class="cut"></i> cut</span></figcaption>
  </figure>`;
}

/** Bars for the kinds of entries: as kept, as sent. */
export function Kinds({ tokens }) {
  const order = ["instructions", "user", "assistant", "reasoning", "calls", "results", "summary", "other"];
  const rows = order.filter((name) => tokens[name]);
  const most = Math.max(1, ...rows.map((name) => Math.max(tokens[name].kept, tokens[name].sent)));
  const part = (number) => ({ width: `${(number / most) * 100}%` });
  return html`<table class="kinds"><thead><tr><th>tokens</th><th></th><th>kept</th><th>sent</th></tr></thead><tbody>
    ${rows.map((name) => html`<tr><th>${name}</th>
      <td class="bars"><i class="kept" style=${part(tokens[name].kept)}></i><i class="fresh" style=${part(tokens[name].sent)}></i></td>
      <td>${count(tokens[name].kept)}</td><td>${count(tokens[name].sent)}</td></tr>`)}
  </tbody></table>`;
}
