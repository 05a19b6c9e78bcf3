"""A browser without a screen, for tests of pages: Debian's chromium (scripts/chromium.sh), spoken to over its DevTools pipe."""
import base64
import json
import os
import subprocess
import tempfile
import time

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
SECONDS = 600  # for anything, on a busy machine


class Page:
    def __init__(self, browser, width, height, dark):
        self.browser = browser
        target = browser.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = browser.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.faults = []  # exceptions, and errors of the console, among them what the content policy has stopped
        browser.pages[self.session] = self
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def call(self, method, **arguments):
        return self.browser.call(method, self.session, **arguments)

    def take(self, method, of):
        if method == "Runtime.exceptionThrown":
            self.faults.append(json.dumps(of["exceptionDetails"].get("exception", {}).get("description", of["exceptionDetails"]["text"])))
        elif method == "Log.entryAdded" and of["entry"]["level"] == "error":
            self.faults.append(of["entry"]["text"] + " " + of["entry"].get("url", ""))
        elif method == "Runtime.consoleAPICalled" and of["type"] in ("error", "warning"):
            self.faults.append(" ".join(str(argument.get("value", argument)) for argument in of["args"]))

    def open(self, address):
        self.call("Page.navigate", url=address)
        self.wait("document.readyState === 'complete' && location.href !== 'about:blank'")

    def evaluate(self, script):
        answer = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in answer:
            raise AssertionError(f"{script}: {answer['exceptionDetails'].get('exception', {}).get('description', answer['exceptionDetails']['text'])}")
        return answer["result"].get("value")

    def wait(self, condition):
        """Until the script gives something that is true."""
        end = time.monotonic() + SECONDS
        while not (value := self.evaluate(condition)):
            if time.monotonic() > end:
                raise AssertionError(f"it did not come: {condition}; faults: {self.faults}; the page says: {self.evaluate('document.body.innerText')[:2000]}")
            time.sleep(0.02)
        return value

    def check(self, condition, words=None):
        value = self.evaluate(condition)
        if not value:
            raise AssertionError(f"{words or condition}: {value}; the page says: {self.evaluate('document.body.innerText')[:2000]}")

    def frame(self):
        """Until what was asked for has been drawn."""
        self.evaluate("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => done(true))))")

    def key(self, key, code=0, text=None):
        more = {"text": text} if text else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **more)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)
        self.frame()

    def mouse(self, kind, x, y, pressed=False, clicks=1):
        button = {} if kind == "mouseMoved" and not pressed else {"button": "left", "buttons": 1, "clickCount": clicks}
        self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, **button)

    def drag(self, x1, y1, x2, y2):
        self.mouse("mouseMoved", x1, y1)
        self.mouse("mousePressed", x1, y1)
        for step in range(1, 5):
            self.mouse("mouseMoved", x1 + (x2 - x1) * step / 4, y1 + (y2 - y1) * step / 4, pressed=True)
        self.mouse("mouseReleased", x2, y2)
        self.frame()

    def box(self, selector):
        """x, y, width, height of an element, which is scrolled into sight."""
        return self.evaluate(f"(() => {{ const e = document.querySelector({json.dumps(selector)}); e.scrollIntoView({{block: 'center', behavior: 'instant'}});"
                             " const b = e.getBoundingClientRect(); return [b.x, b.y, b.width, b.height]; })()")

    def picture(self, path, whole=False):
        shot = self.call("Page.captureScreenshot", captureBeyondViewport=whole)
        with open(path, "wb") as file:
            file.write(base64.b64decode(shot["data"]))


class Browser:
    def __enter__(self):
        self.folder = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        self.words = tempfile.TemporaryFile()
        to_browser, self.out = os.pipe()
        self.into, from_browser = os.pipe()

        def places():  # where the browser looks for its pipe
            first = os.dup(to_browser)
            second = os.dup(from_browser)
            os.dup2(first, 3)
            os.dup2(second, 4)
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        command = [os.path.join(ROOT, "scripts/chromium.sh"), "run", "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
                   "--disable-dev-shm-usage", "--remote-debugging-pipe", "--user-data-dir=" + self.folder.name, "about:blank"]
        self.process = subprocess.Popen(command, preexec_fn=places, close_fds=False, stderr=self.words, stdout=subprocess.DEVNULL)
        os.close(to_browser)
        os.close(from_browser)
        self.number = 0
        self.buffer = b""
        self.pages = {}
        return self

    def __exit__(self, *unused):
        try:
            self.call("Browser.close")
            self.process.wait(10)
        except (AssertionError, OSError, subprocess.TimeoutExpired):
            self.process.kill()
            self.process.wait()
        os.close(self.out)
        os.close(self.into)
        self.folder.cleanup()
        self.words.close()

    def page(self, width=1440, height=1000, dark=False):
        return Page(self, width, height, dark)

    def call(self, method, session=None, **arguments):
        self.number += 1
        message = {"id": self.number, "method": method, "params": arguments}
        if session:
            message["sessionId"] = session
        os.write(self.out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.read()
            if answer.get("id") == self.number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]
            page = self.pages.get(answer.get("sessionId"))
            if page and "method" in answer:
                page.take(answer["method"], answer["params"])

    def read(self):
        while b"\0" not in self.buffer:
            more = os.read(self.into, 1 << 16)
            if not more:
                self.words.seek(0)
                raise AssertionError("the browser has ended: " + self.words.read().decode(errors="replace")[-2000:])
            self.buffer += more
        message, self.buffer = self.buffer.split(b"\0", 1)
        return json.loads(message)
