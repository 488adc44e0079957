// A style element that a strict Content-Security-Policy allows: its text becomes a constructed style sheet.

class StyleSheetElement extends HTMLElement {
  readonly #sheet = new CSSStyleSheet();

  override get textContent(): string {
    return "";
  }

  override set textContent(text: string | null) {
    this.#sheet.replaceSync(text ?? "");
  }

  connectedCallback(): void {
    document.adoptedStyleSheets.push(this.#sheet);
  }

  disconnectedCallback(): void {
    document.adoptedStyleSheets = document.adoptedStyleSheets.filter((sheet) => sheet !== this.#sheet);
  }
}

customElements.define("ptyd-style", StyleSheetElement);
