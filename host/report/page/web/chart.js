// One chart: a number of all shown runs.

const kPadding = { top: 10, right: 14, bottom: 24 };
const kFont = '11px system-ui, "Segoe UI", Roboto, "Noto Sans", "DejaVu Sans", sans-serif';

class Chart {
  /** definition: {name, title, unit, doc, log} */
  constructor(view, definition) {
    this.view = view;
    this.definition = definition;
    this.log = Boolean(definition.log);
    this.lines = [];
    this.selection = null; // pixels, while the pointer drags
    this.visible = false;
    this.canvas = make("canvas", { tabindex: "0", role: "img" });
    this.tip = make("div", { class: "tip", role: "status", hidden: true });
    this.logButton = make("button", { type: "button", "aria-pressed": String(this.log), title: "Logarithmic scale (L)", onclick: () => this.setLog(!this.log) }, "log");
    this.wideButton = make("button", { type: "button", "aria-pressed": "false", title: "Large (Enter)", onclick: () => this.setWide() }, "large");
    this.resetButton = make("button", { type: "button", title: "All of it (Escape, or a double click)", hidden: true, onclick: () => view.zoom(null) }, "reset zoom");
    this.element = make("figure", { class: "chart card", "data-name": definition.name },
      make("header", {}, make("h3", { title: definition.doc || null }, definition.title, definition.unit ? make("small", {}, definition.unit) : null),
        this.resetButton, this.logButton, this.wideButton),
      this.canvas, this.tip);
    this.redraw = oncePerFrame(() => this.draw());
    listenToPointer(this);
    listenToKeys(this);
  }

  setLog(on) {
    this.log = on;
    this.logButton.setAttribute("aria-pressed", String(on));
    this.redraw();
  }

  setWide() {
    const wide = this.element.classList.toggle("wide");
    this.wideButton.setAttribute("aria-pressed", String(wide));
    this.redraw();
  }

  /** Takes the curves of the shown runs. */
  update() {
    const { view, definition } = this;
    this.lines = view.shown().flatMap((run) => {
      const series = seriesOf(view, run, definition.name);
      const curve = series && series.step.length ? curveOf(run, series, view.axis, view.smoothing) : null;
      return curve ? [{ run, ...curve }] : [];
    });
    this.canvas.setAttribute("aria-label", this.words());
    this.redraw();
  }

  words() {
    const last = this.lines.slice(0, 8).map((line) => {
      const at = nearestIndex(line.raw, Infinity);
      return `${line.run.label} ends at ${at < 0 ? "nothing" : valueText(line.raw.y[at], this.definition.unit)}`;
    });
    return `${this.definition.title} of ${counted(this.lines.length, "run")}. ${last.join("; ")}. Arrow keys move along the curve, plus and minus zoom.`;
  }

  span() {
    if (this.view.window) {
      return this.view.window;
    }
    return this.view.extent();
  }

  /** The least and the greatest number in the stretch; above 0 on a logarithmic scale; null where there is none. */
  bounds([from, to]) {
    let low = Infinity;
    let high = -Infinity;
    for (const { raw } of this.lines) {
      const end = Math.min(raw.x.length, lowerBound(raw.x, to) + 1);
      for (let i = Math.max(0, lowerBound(raw.x, from) - 1); i < end; ++i) {
        const value = raw.y[i];
        if (value !== null && (!this.log || value > 0) && raw.x[i] >= from && raw.x[i] <= to) {
          low = Math.min(low, value);
          high = Math.max(high, value);
        }
      }
    }
    return low <= high ? [low, high] : null;
  }

  draw() {
    const { canvas } = this;
    const ratio = window.devicePixelRatio || 1;
    const width = canvas.clientWidth;
    const height = canvas.clientHeight;
    if (!width || !this.visible) {
      return;
    }
    if (canvas.width !== Math.round(width * ratio) || canvas.height !== Math.round(height * ratio)) {
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(height * ratio);
    }
    const context = canvas.getContext("2d");
    context.setTransform(ratio, 0, 0, ratio, 0, 0);
    context.clearRect(0, 0, width, height);
    context.font = kFont;
    this.resetButton.hidden = !this.view.window;
    const span = this.span();
    const bounds = this.lines.length ? this.bounds(span) : null;
    this.frame = null;
    if (!bounds) {
      this.say(context, width, height);
    } else {
      this.frame = this.drawFrame(context, width, height, span, bounds);
      this.drawLines(context);
    }
    this.drawCursor(context);
    canvas.dataset.drawn = String(this.lines.length);
  }

  say(context, width, height) {
    const words = !this.lines.length ? "None of the shown runs has this number." : this.log ? "Nothing above 0 in this stretch." : "No numbers in this stretch.";
    context.fillStyle = colorOf("--soft");
    context.textAlign = "center";
    context.fillText(words, width / 2, height / 2);
  }

  drawFrame(context, width, height, span, bounds) {
    const { top, right, bottom } = kPadding;
    const tall = height - top - bottom;
    const y = makeAxis(...roomAround(...bounds, this.log), tall, this.log, Math.max(2, Math.floor(tall / 38)), this.definition.unit);
    const left = Math.ceil(Math.max(...y.labels.map((label) => context.measureText(label).width), 36)) + 10;
    const wide = width - left - right;
    const x = makeAxis(...span, wide, false, Math.max(2, Math.floor(wide / 85)), kAxes[this.view.axis].unit);
    context.strokeStyle = colorOf("--grid");
    context.fillStyle = colorOf("--soft");
    context.lineWidth = 1;
    context.textAlign = "right";
    context.textBaseline = "middle";
    context.beginPath();
    y.marks.forEach((mark, i) => {
      const at = Math.round(top + tall - y.place(mark)) + 0.5;
      context.moveTo(left, at);
      context.lineTo(width - right, at);
      context.fillText(y.labels[i], left - 7, at);
    });
    context.stroke();
    context.textAlign = "center";
    context.textBaseline = "top";
    x.marks.forEach((mark, i) => {
      const half = context.measureText(x.labels[i]).width / 2;
      const at = Math.min(left + x.place(mark), width - half - 1);
      context.fillText(x.labels[i], Math.max(at, half + 1), height - bottom + 8);
    });
    context.strokeStyle = colorOf("--line");
    context.beginPath();
    context.moveTo(left, height - bottom + 0.5);
    context.lineTo(width - right, height - bottom + 0.5);
    context.stroke();
    return { x, y, left, top, wide, tall };
  }

  drawLines(context) {
    const { left, top, wide, tall } = this.frame;
    context.save();
    context.beginPath();
    context.rect(left, top - 4, wide + 4, tall + 6);
    context.clip();
    context.lineJoin = "round";
    const ordered = [...this.lines].sort((a, b) => (a.run === this.view.marked ? 1 : 0) - (b.run === this.view.marked ? 1 : 0));
    for (const line of ordered) {
      const marked = line.run === this.view.marked;
      const dim = this.view.marked && !marked ? 0.25 : 1;
      context.strokeStyle = context.fillStyle = colorOf(line.run.look.variable);
      context.setLineDash(line.smooth ? [] : line.run.look.dash);
      this.drawCurve(context, line.raw, line.smooth ? 0.22 * dim : dim, line.smooth || marked ? (marked ? 2.6 : 1) : 1.5);
      if (line.smooth) {
        context.setLineDash(line.run.look.dash);
        this.drawCurve(context, line.smooth, dim, marked ? 3 : 1.8);
      }
      context.setLineDash([]);
      this.drawLost(context, line.raw);
    }
    context.restore();
  }

  drawCurve(context, curve, alpha, width) {
    const { x, y, left, top, tall } = this.frame;
    const from = Math.max(0, lowerBound(curve.x, x.low) - 1);
    const to = Math.min(curve.x.length, lowerBound(curve.x, x.high) + 2);
    context.globalAlpha = alpha;
    context.lineWidth = width;
    context.beginPath();
    let pen = false;
    const dots = to - from <= 60;
    const points = [];
    for (let i = from; i < to; ++i) {
      const value = curve.y[i];
      if (value === null || (this.log && !(value > 0))) {
        pen = false;
        continue;
      }
      const px = left + x.place(curve.x[i]);
      const py = top + tall - y.place(value);
      const alone = !pen && (i + 1 >= to || curve.y[i + 1] === null);
      if (dots || alone) {
        points.push([px, py]);
      }
      pen ? context.lineTo(px, py) : context.moveTo(px, py);
      pen = true;
    }
    context.stroke();
    for (const [px, py] of points) {
      context.beginPath();
      context.arc(px, py, 2.2, 0, 7);
      context.fill();
    }
    context.globalAlpha = 1;
  }

  /** Rows whose number was not finite: a triangle at the upper edge. */
  drawLost(context, curve) {
    const { x, left, top } = this.frame;
    for (let i = lowerBound(curve.x, x.low); i < curve.x.length && curve.x[i] <= x.high; ++i) {
      if (curve.y[i] === null) {
        const at = left + x.place(curve.x[i]);
        context.beginPath();
        context.moveTo(at - 4, top - 3);
        context.lineTo(at + 4, top - 3);
        context.lineTo(at, top + 4);
        context.fill();
      }
    }
  }

  drawCursor(context) {
    const { frame, view } = this;
    if (!frame) {
      this.tip.hidden = true;
      return;
    }
    if (this.selection) {
      context.fillStyle = colorOf("--accent");
      context.globalAlpha = 0.15;
      const [from, to] = this.selection;
      context.fillRect(Math.min(from, to), frame.top, Math.abs(to - from), frame.tall);
      context.globalAlpha = 1;
    }
    if (view.cursor === null || view.cursor < frame.x.low || view.cursor > frame.x.high) {
      this.tip.hidden = true;
      return;
    }
    const at = Math.round(frame.left + frame.x.place(view.cursor)) + 0.5;
    context.strokeStyle = colorOf("--faint");
    context.lineWidth = 1;
    context.setLineDash([3, 3]);
    context.beginPath();
    context.moveTo(at, frame.top);
    context.lineTo(at, frame.top + frame.tall);
    context.stroke();
    context.setLineDash([]);
    const found = this.valuesAt(view.cursor);
    for (const { line, x, y } of found) {
      if (y !== null && (!this.log || y > 0)) {
        context.fillStyle = colorOf(line.run.look.variable);
        context.beginPath();
        context.arc(frame.left + frame.x.place(x), frame.top + frame.tall - frame.y.place(y), 3.2, 0, 7);
        context.fill();
      }
    }
    showTip(this, at, found);
  }

  /** Of each run the point next to `x`: {line, x, y, smooth}. Runs that end before it have none. */
  valuesAt(x) {
    const near = (this.span()[1] - this.span()[0]) * 0.02;
    return this.lines.flatMap((line) => {
      const { raw, smooth } = line;
      if (x > raw.x[raw.x.length - 1] + near || x < raw.x[0] - near) {
        return [];
      }
      const i = nearestIndex(raw, x);
      const j = smooth ? nearestIndex(smooth, x) : -1;
      return i < 0 ? [] : [{ line, x: raw.x[i], y: raw.y[i], smooth: j < 0 ? null : smooth.y[j] }];
    });
  }
}
