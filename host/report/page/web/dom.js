// Elements. Nothing here takes HTML: names of runs, settings and samples are anybody's text.

/** make("button", {class: "x", onclick: f, "aria-pressed": "true"}, "text", child, [children]) */
function make(tag, attributes, ...children) {
  return filled(document.createElement(tag), attributes, children);
}

/** The same in SVG. */
function makeSvg(tag, attributes, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", tag), attributes, children);
}

function filled(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined || value === false) {
      continue;
    }
    if (name.startsWith("on")) {
      element.addEventListener(name.slice(2), value);
    } else if (name === "style") {
      for (const [property, text] of Object.entries(value)) {
        element.style.setProperty(property, text);
      }
    } else {
      element.setAttribute(name, value === true ? "" : String(value));
    }
  }
  element.append(...children.flat(Infinity).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Gives `parent` these children and no others. */
function fill(parent, ...children) {
  parent.replaceChildren(...children.flat(Infinity).filter(Boolean));
}

/** Calls `draw` in the next frame, once, however often it is asked for. */
function oncePerFrame(draw) {
  let asked = false;
  return () => {
    if (!asked) {
      asked = true;
      requestAnimationFrame(() => {
        asked = false;
        draw();
      });
    }
  };
}

/** A number of a style sheet's variables, as it is now. */
function colorOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}
