// Markdown and SQL as elements. Both viewers return markup in which every text of the project is escaped: Markdown is
// read without HTML and without images, and its links lead to the web or into this page.
"use strict";

(() => {
  const docs = window.sqlrunDocs;
  let reader = null;

  function markdown() {
    if (reader === null) {
      reader = window.markdownit({ html: false, linkify: false });
      reader.disable("image");
      reader.validateLink = (url) => /^(https?:|mailto:|#)/i.test(url.trim());
      const open = (tokens, place, options, env, self) => {
        tokens[place].attrSet("rel", "noreferrer noopener");
        return self.renderToken(tokens, place, options);
      };
      reader.renderer.rules.link_open = open;
    }
    return reader;
  }

  // Fill an element with a description. Headings of it begin below those of the page.
  docs.describe = (text, properties = {}) => {
    const element = docs.make("div", { class: "prose", ...properties });
    if (!text) return element;
    element.textContent = text;
    docs.viewer("markdown").then(() => {
      element.innerHTML = markdown().render(text);
      for (const heading of element.querySelectorAll("h1, h2, h3, h4, h5, h6")) {
        heading.replaceWith(docs.make("p", { class: "heading" }, ...heading.childNodes));
      }
      // A table or a long line of code scrolls by itself.
      for (const wide of element.querySelectorAll("table, pre")) {
        const box = docs.make("div", { class: "wide", tabIndex: 0, role: "group", "aria-label": "Part of the description" });
        wide.replaceWith(box);
        box.append(wide);
      }
    });
    return element;
  };

  docs.sql = (text, label) => {
    const code = docs.make("code", {}, text);
    docs.viewer("sql").then(() => {
      code.innerHTML = window.Prism.highlight(text, window.Prism.languages.sql, "sql");
    });
    return docs.make("pre", { class: "sql", tabIndex: 0, role: "group", "aria-label": label }, code);
  };
})();
