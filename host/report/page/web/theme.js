// Light and dark: as the system says, until somebody chooses.

function makeTheme(view) {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  let chosen = remembered("theme");
  const apply = () => {
    const theme = chosen || (dark.matches ? "dark" : "light");
    document.documentElement.dataset.theme = theme;
    button.textContent = theme === "dark" ? "\u2600 light" : "\u263e dark";
    view.changed("look");
  };
  const button = make("button", { type: "button", id: "theme-switch", title: "Light or dark (D)", onclick: () => {
    chosen = document.documentElement.dataset.theme === "dark" ? "light" : "dark";
    remembered("theme", chosen);
    apply();
  } });
  dark.addEventListener("change", apply);
  document.addEventListener("keydown", (event) => {
    if (event.key === "d" && !event.ctrlKey && !event.metaKey && !event.altKey && !/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName)) {
      button.click();
    }
  });
  apply();
  return button;
}
