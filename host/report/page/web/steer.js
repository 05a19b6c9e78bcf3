// Buttons for runs that train, where the server lets them be steered.

function makeSteering(view) {
  const said = make("p", { class: "note", role: "status" });
  const ask = async (run, wish, value) => {
    said.textContent = `${run.label}: ${wish} \u2026`;
    try {
      const answer = await fetch(address("steer", { key: run.key, wish, value }), { method: "POST" });
      said.textContent = answer.ok ? `${run.label}: ${wish} ${value} is done, or begun` : `${run.label}: ${await answer.text()}`;
    } catch (lost) {
      said.textContent = "The server does not answer.";
    }
  };
  const rowOf = (run) => {
    const factor = make("input", { type: "number", value: "0.5", min: "0.000001", max: "1000", step: "any", "aria-label": `Factor of the learning rate of ${run.label}` });
    const button = (text, act) => make("button", { type: "button", onclick: act }, text);
    return make("div", { class: "steer" }, nameOf(run), button("save", () => ask(run, "save", "")), button("evaluate", () => ask(run, "eval", "")),
      make("span", { class: "whole" }, button("learning rate \u00d7", () => ask(run, "lr", factor.value)), factor),
      button("stop", () => confirm(`Stop ${run.label}? It saves first and can go on later.`) && ask(run, "stop", "")));
  };
  return makeSection(view, "steering", "Steering", (run) => run.state === "running", (runs) => {
    const running = runs.filter((run) => run.state === "running");
    return running.length ? [make("div", { class: "card padded" }, running.map(rowOf)), said] : null;
  });
}
