// Typesets the formulas of a page (fenced blocks of language "math") with KaTeX.
document.addEventListener("DOMContentLoaded", () => {
  for (const block of document.querySelectorAll("div.math")) {
    katex.render(block.textContent, block, { displayMode: true, throwOnError: false });
  }
});
