// Colours of runs: Okabe and Ito's, which people with every kind of colour vision tell apart, a little darker or lighter for the paper that
// they stand on (page.css). Beyond eight runs lines are dashed, so that no two look alike.

const kColors = 8;
const kDashes = [[], [7, 3], [2, 3], [9, 3, 2, 3]];

/** Of the run number `index`: a variable of the style sheet, and the dashes of its line. */
function lookOf(index) {
  return { variable: `--run-${index % kColors}`, dash: kDashes[Math.floor(index / kColors) % kDashes.length] };
}

/** The line beside a run's name. */
function swatch(run) {
  const style = { "border-top-color": `var(${run.look.variable})`, "border-top-style": run.look.dash.length ? (run.look.dash[0] < 5 ? "dotted" : "dashed") : "solid" };
  return make("span", { class: "swatch", style, "aria-hidden": "true" });
}

/** viridis, at 0 to 1: even steps of lightness, in every kind of colour vision. */
const kViridis = [[68, 1, 84], [72, 40, 120], [62, 74, 137], [49, 104, 142], [38, 130, 142], [31, 158, 137], [53, 183, 121], [110, 206, 88], [181, 222, 43], [253, 231, 37]];

function viridis(share) {
  const at = Math.min(1, Math.max(0, share)) * (kViridis.length - 1);
  const left = Math.min(kViridis.length - 2, Math.floor(at));
  const mixed = kViridis[left].map((from, channel) => Math.round(from + (kViridis[left + 1][channel] - from) * (at - left)));
  return `rgb(${mixed.join(" ")})`;
}
