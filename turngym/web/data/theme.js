// The choice is kept for other pages of the same place; choosing what the system has follows the system again.
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = matchMedia("(prefers-color-scheme: dark)"), key = "turngym-theme";
  const stored = () => { try { return localStorage.getItem(key); } catch { return null; } };
  const store = value => {
    try { value ? localStorage.setItem(key, value) : localStorage.removeItem(key); } catch { }
  };
  const current = () => root.dataset.theme || (system.matches ? "dark" : "light");
  const other = () => current() === "dark" ? "light" : "dark";
  const label = () => { button.textContent = other() === "dark" ? "Dark theme" : "Light theme"; };
  const choose = theme => {
    if (theme === "dark" || theme === "light") root.dataset.theme = theme; else delete root.dataset.theme;
    label();
  };
  choose(stored());
  button.hidden = false;
  system.addEventListener("change", label);
  button.addEventListener("click", () => {
    const wanted = other(), follows = (wanted === "dark") === system.matches;
    store(follows ? null : wanted);
    choose(follows ? null : wanted);
  });
})();
