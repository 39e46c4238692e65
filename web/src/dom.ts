// Elements in few words. Text is always text: nothing from a run is ever parsed as HTML.

type Attributes = Record<string, string | number | boolean | EventListener | undefined>;
type Child = Node | string | null | undefined | false;

function fill(element: Element, attributes: Attributes, children: Child[]): void {
  for (const [name, value] of Object.entries(attributes)) {
    if (value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
  for (const child of children) if (child) element.append(child);
}

export function h<K extends keyof HTMLElementTagNameMap>(
  tag: K,
  attributes: Attributes = {},
  ...children: Child[]
): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  fill(element, attributes, children);
  return element;
}

export function s(tag: string, attributes: Attributes = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  fill(element, attributes, children);
  return element;
}

/** Acts on an event elsewhere for as long as an element is on the page: what is drawn anew leaves nothing behind. */
export function listen(element: Element, target: EventTarget, type: string, act: () => void): void {
  const once = (): void => {
    if (element.isConnected) act();
    else target.removeEventListener(type, once);
  };
  target.addEventListener(type, once);
}

/** Reads a CSS variable. */
export function css(name: string): string {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
