// Small pieces that several views show: what is copied with a click, what there is nothing of, titles.

import { html, useEffect, useState } from "./vendor/htm-preact.js";

/** Puts a text on the clipboard. */
async function copied(text) {
  if (navigator.clipboard) return navigator.clipboard.writeText(text);
  // Browsers offer the clipboard to pages of this machine and of HTTPS only; to others, what is selected.
  const field = document.createElement("textarea");
  field.value = text;
  document.body.append(field);
  field.select();
  document.execCommand("copy");
  field.remove();
  return undefined;
}

/** A button that copies `text`, or what it returns; `what` says what that is. */
export function Copy({ text, what, label = "copy" }) {
  const [said, setSaid] = useState("");
  const copy = async (event) => {
    event.preventDefault();
    event.stopPropagation();
    try {
      await copied(typeof text === "function" ? await text() : text);
      setSaid("copied");
    } catch {
      setSaid("not copied");
    }
    setTimeout(() => setSaid(""), 1500);
  };
  return html`<button type="button" class="copy" onClick=${copy} aria-label=${`copy ${what}`} title=${`copy ${what}`}><span aria-live="polite">${said || label}</span></button>`;
}

/** Says what the window shows. */
export function useTitle(title) {
  useEffect(() => {
    document.title = title ? `${title} · Throughline` : "Throughline";
  }, [title]);
}

/** What stands where there is nothing. */
export const Nothing = ({ title, children }) => html`<div class="nothing"><h2>${title}</h2>${children}</div>`;

/** What stands while something is read. */
export const Reading = () => html`<p class="dim wait" role="status">reading…</p>`;
