"""Pages of `kf-host report` and `kf-host serve` in a browser. usage: report_browser.py report ADDRESS | follow ADDRESS RUNS READY
| sweep ADDRESS RUNS READY | steer ADDRESS"""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "../support"))
from browser import Browser  # noqa: E402

CHART = "figure[data-name=\"{}\"] canvas"
LOSS = CHART.format("loss")
# Whether a canvas has a pixel in the colour of a run.
HAS_COLOR = """((selector, name) => {
  const canvas = document.querySelector(selector);
  const probe = document.createElement("canvas").getContext("2d");
  probe.fillStyle = getComputedStyle(document.documentElement).getPropertyValue(name);
  probe.fillRect(0, 0, 1, 1);
  const wanted = probe.getImageData(0, 0, 1, 1).data;
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] > 250 && Math.abs(data[i] - wanted[0]) + Math.abs(data[i + 1] - wanted[1]) + Math.abs(data[i + 2] - wanted[2]) < 6) return true;
  }
  return false;
})(%s, %s)"""


def drawn(page, chart, color):
    page.wait(f"document.querySelector({json.dumps(chart)}) !== null")
    page.box(chart)
    page.wait(HAS_COLOR % (json.dumps(chart), json.dumps(color)))


def shown_x(page):
    """The numbers below the chart: the words for those who do not see it tell nothing of the zoom."""
    return page.evaluate(f"!document.querySelector({json.dumps(LOSS)}).parentElement.querySelector('[title^=All]').hidden")


def report(browser, address):
    page = browser.page()
    page.open(address)
    drawn(page, LOSS, "--run-0")
    drawn(page, LOSS, "--run-1")
    drawn(page, CHART.format("eval.loss"), "--run-1")
    page.check("document.querySelectorAll('.run').length === 3")
    page.check("document.querySelector('#main').innerText.includes('optimizer.lr')", "settings are compared")
    page.check("[...document.querySelectorAll('.still')].some((e) => e.innerText.includes('ce is the loss') && e.innerText.includes('z_loss is 0'))")
    # Names and samples are text.
    page.check("!document.querySelector('main img') && !document.querySelector('aside img')")
    page.check("document.querySelector('aside').innerText.includes('<img src=x onerror=alert(1)>')")
    page.check("document.querySelector('#samples').innerText.includes('</script><script>alert(2)</script>')")
    # The pointer: values of all runs, zoom, back.
    x, y, width, height = page.box(LOSS)
    page.mouse("mouseMoved", x + width * 0.5, y + height / 2)
    page.wait("!document.querySelector('figure[data-name=loss] .tip').hidden")
    page.check("['a', 'b'].every((name) => [...document.querySelectorAll('figure[data-name=loss] .tip td')].some((e) => e.innerText.trim() === name))")
    page.drag(x + width * 0.4, y + 60, x + width * 0.6, y + 70)
    assert shown_x(page), "dragging zooms"
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, x + width * 0.5, y + 60)
    for kind in ("mousePressed", "mouseReleased"):
        page.mouse(kind, x + width * 0.5, y + 60, clicks=2)
    page.frame()
    assert not shown_x(page), "a double click shows all"
    # The keyboard.
    page.evaluate(f"document.querySelector({json.dumps(LOSS)}).focus()")
    page.key("ArrowRight", 39)
    page.key("ArrowRight", 39)
    page.wait("document.querySelector('figure[data-name=loss] .tip caption').innerText.startsWith('step')")
    page.key("+", 187, "+")
    assert shown_x(page), "plus zooms"
    page.key("Escape", 27)
    assert not shown_x(page), "Escape shows all"
    page.key("l", 76, "l")
    page.check("document.querySelector('figure[data-name=loss] button[title^=Log]').getAttribute('aria-pressed') === 'true'")
    page.key("Enter", 13)
    page.check("document.querySelector('figure[data-name=loss]').classList.contains('wide')")
    page.evaluate("document.activeElement.blur()")
    page.check("[...document.querySelectorAll('button, input, select, canvas')].every((e) => e.tabIndex >= 0)", "all can be reached by the keyboard")
    page.check("[...document.querySelectorAll('input, select, canvas')].every((e) => e.labels?.length || e.getAttribute('aria-label'))", "all have names")
    # The legend hides runs; smoothing and the axis draw anew.
    page.evaluate("document.querySelectorAll('.run input')[0].click()")
    page.wait(f"document.querySelector({json.dumps(LOSS)}).dataset.drawn === '2'")
    page.evaluate("document.querySelectorAll('.run input')[0].click()")
    page.evaluate("(() => { const s = document.getElementById('smoothing'); s.value = '0.5'; s.dispatchEvent(new Event('input')); })()")
    drawn(page, LOSS, "--run-0")
    for axis in ("tokens", "seconds"):
        page.evaluate(f"(() => {{ const s = document.getElementById('axis'); s.value = '{axis}'; s.dispatchEvent(new Event('change')); }})()")
        drawn(page, LOSS, "--run-0")
    # Dark by the switch.
    light = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.key("d", 68, "d")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert light != dark, light
    drawn(page, LOSS, "--run-0")
    assert page.faults == [], page.faults
    # Dark by the system, on a phone: nothing is wider than the screen.
    phone = browser.page(390, 844, dark=True)
    phone.evaluate("0")
    phone.open(address)
    phone.evaluate("localStorage.removeItem('kf-theme')")
    phone.open(address)
    phone.check("document.documentElement.dataset.theme === 'dark'")
    drawn(phone, LOSS, "--run-0")
    phone.check("document.documentElement.scrollWidth <= 390")
    assert phone.faults == [], phone.faults


def lengthen(run, first, last):
    with open(os.path.join(run, "metrics.jsonl"), "a", encoding="utf-8") as file:
        for step in range(first, last + 1):
            file.write(json.dumps({"step": step, "loss": 1.5, "tokens": step * 256, "seconds": step * 0.05, "tokens_per_sec": 5000.0}) + "\n")


def appear(ready, run):
    """A copy of a folder comes at once: half of one is another thing to show, which is not looked at here."""
    coming = os.path.join(os.path.dirname(ready), "coming")
    shutil.copytree(ready, coming)
    os.rename(coming, run)


def follow(browser, address, runs, ready):
    page = browser.page()
    page.open(address)
    page.check("document.querySelector('#charts').innerText.includes('There are no runs here yet')")
    run = os.path.join(runs, "one")
    appear(ready, run)
    page.wait("document.querySelectorAll('.run').length === 1")
    drawn(page, LOSS, "--run-0")
    page.wait("document.querySelector('aside').innerText.includes('step 50')")
    # It grows; a line that is written half waits for its end.
    lengthen(run, 51, 80)
    with open(os.path.join(run, "metrics.jsonl"), "a", encoding="utf-8") as file:
        file.write('{"step": 81, "lo')
    page.wait("document.querySelector('aside').innerText.includes('step 80')")
    page.wait(f"document.querySelector({json.dumps(LOSS)}).getAttribute('aria-label').includes('ends at 1.5')")
    # Another one comes, and one whose record is no JSON.
    appear(ready, os.path.join(runs, "two"))
    appear(ready, os.path.join(runs, "three"))
    with open(os.path.join(runs, "three/run.json"), "w", encoding="utf-8") as file:
        file.write('{"id": ')
    page.wait("document.querySelectorAll('.run').length === 3")
    page.wait("document.querySelector('aside').innerText.includes('unreadable')")
    # Moved and deleted.
    os.rename(os.path.join(runs, "two"), os.path.join(runs, "moved"))
    shutil.rmtree(run)
    page.wait("document.querySelector('aside').innerText.includes('gone') && document.querySelector('.run[data-key=moved]') !== null")
    drawn(page, LOSS, "--run-0")  # what was known of it stays in sight
    # Of a long run the stretch that is zoomed to is asked for, as fine as it is.
    lengthen(os.path.join(runs, "moved"), 51, 4000)
    page.wait("document.querySelector('aside').innerText.includes('step 4000')")
    # Its curve is there, beside that of the first one, which ended alike: what comes later might move the chart below the pointer.
    page.wait(f"document.querySelector({json.dumps(LOSS)}).getAttribute('aria-label').match(/ends at 1\\.5/g).length === 2")
    x, y, width, height = page.box(LOSS)
    page.drag(x + width * 0.4, y + 60, x + width * 0.6, y + 70)
    page.wait("performance.getEntriesByType('resource').some((entry) => entry.name.includes('&from='))")
    page.evaluate("document.querySelector('figure[data-name=loss] [title^=All]').click()")
    # The filter.
    page.evaluate("(() => { const f = document.querySelector('aside input[type=search]'); f.value = 'moved'; f.dispatchEvent(new Event('input')); })()")
    page.check("document.querySelectorAll('.run').length === 1")
    faults = [fault for fault in page.faults if "404" not in fault]  # one was asked for while it went
    assert faults == [], faults


def sweep(browser, address, runs, ready):
    page = browser.page()
    page.open(address)
    page.check("document.querySelector('#sweeps').hidden")
    appear(ready, os.path.join(runs, "s"))
    page.wait("!document.querySelector('#sweeps').hidden && document.querySelectorAll('#sweeps polyline').length === 4")
    faded = "document.querySelectorAll('#sweeps polyline.faded').length"
    page.evaluate("document.querySelector('#sweeps .grip').focus()")
    page.key("ArrowUp", 38)
    page.check(f"{faded} === 3", "the upper quarter has one of four values")
    page.check("document.activeElement.getAttribute('aria-valuetext') === '1 trial'")
    for unused in range(20):
        page.key("ArrowDown", 40)
    page.check(f"{faded} === 3 && document.activeElement.getAttribute('aria-valuenow') < '20'")
    page.key("Escape", 27)
    page.check(f"{faded} === 0 && document.activeElement.getAttribute('aria-valuetext') === 'all'")
    assert page.faults == [], page.faults


def steer(browser, address):
    page = browser.page()
    page.open(address)
    page.wait("document.querySelector('#steering .steer') !== null")
    page.evaluate("window.confirm = () => true")

    def click(text, done):
        page.evaluate(f"[...document.querySelectorAll('#steering button')].find((button) => button.textContent.startsWith({json.dumps(text)})).click()")
        page.wait(f"document.querySelector('#steering [role=status]').textContent.includes({json.dumps(done)})")

    click("save", "save  is done, or begun")
    click("evaluate", "eval  is done, or begun")
    page.evaluate("(() => { const f = document.querySelector('#steering input'); f.value = '0.25'; f.dispatchEvent(new Event('input')); })()")
    click("learning rate", "lr 0.25 is done, or begun")
    page.evaluate("document.querySelector('#steering input').value = '0'")
    click("learning rate", "a wish is save, eval, stop, or lr with a factor from 1e-6 to 1000")
    page.evaluate("[...document.querySelectorAll('#steering button')].find((button) => button.textContent === 'stop').click()")
    page.wait("document.querySelector('aside').innerText.includes('stopped')")
    page.wait("document.querySelector('#steering') === null || document.querySelector('#steering').hidden")
    faults = [fault for fault in page.faults if "400" not in fault]
    assert faults == [], faults


with Browser() as browser:
    {"report": report, "follow": follow, "sweep": sweep, "steer": steer}[sys.argv[1]](browser, *sys.argv[2:])
