"""Controls a headless Chromium with its DevTools protocol over two pipes, without another library or a network port.

    with Browser(folder) as browser:
        page = browser.open("file:///…/plan.html")
        page.evaluate("document.title")
"""
import base64
import json
import os
import select
import shutil
import subprocess
import time

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")


class BrowserError(Exception):
    """The browser gave no answer, or answered with an error."""


def find():
    """Returns the path of a browser ($CLEAVE_BROWSER, or the first of NAMES that is installed), or None."""
    given = os.environ.get("CLEAVE_BROWSER")
    return shutil.which(given) if given else next((path for name in NAMES if (path := shutil.which(name))), None)


class Browser:
    def __init__(self, folder, size=(1500, 950), timeout=60):
        self.timeout, self._next, self._events, self._buffer = timeout, 0, [], b""
        profile = os.path.join(folder, "browser")
        read_commands, self._write = os.pipe()
        self._read, write_answers = os.pipe()
        # The browser reads commands from descriptor 3 and writes answers to descriptor 4.
        script = f'exec "$@" 3<&{read_commands} 4>&{write_answers}'
        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-extensions",
                 "--disable-background-networking", "--disable-component-update", "--hide-scrollbars", "--remote-debugging-pipe",
                 f"--user-data-dir={profile}", f"--window-size={size[0]},{size[1]}", "about:blank"]
        # HOME is set too, because the browser also stores files outside its profile.
        self._process = subprocess.Popen(["bash", "-c", script, "bash", find(), *flags], pass_fds=(read_commands, write_answers),
                                         stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                                         env=dict(os.environ, HOME=folder, XDG_RUNTIME_DIR=folder))
        os.close(read_commands)
        os.close(write_answers)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        try:
            self.call("Browser.close")
            self._process.wait(10)
        except (BrowserError, OSError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        os.close(self._write)
        os.close(self._read)

    def _receive(self, deadline):
        while b"\0" not in self._buffer:
            left = deadline - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise BrowserError(f"the browser did not answer within {self.timeout} s")
            part = os.read(self._read, 1 << 20)
            if not part:
                raise BrowserError("the browser ended unexpectedly")
            self._buffer += part
        message, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(message)

    def call(self, method, session=None, **parameters):
        """Sends a command and returns its result. Events that arrive before the result are kept."""
        self._next += 1
        number, message = self._next, {"id": self._next, "method": method, "params": parameters}
        if session:
            message["sessionId"] = session
        data = json.dumps(message).encode() + b"\0"
        while data:
            data = data[os.write(self._write, data):]
        deadline = time.monotonic() + self.timeout
        while True:
            answer = self._receive(deadline)
            if answer.get("id") != number:
                self._events.append(answer)
            elif "error" in answer:
                raise BrowserError(f"{method}: {answer['error']['message']}")
            else:
                return answer["result"]

    def wait(self, method):
        """Waits until an event of this kind has arrived."""
        deadline = time.monotonic() + self.timeout
        while not any(event.get("method") == method for event in self._events):
            self._events.append(self._receive(deadline))

    def events(self, *methods):
        """Returns the parameters of all events of these kinds that have arrived."""
        return [event["params"] for event in self._events if event.get("method") in methods]

    def open(self, address, size=None):
        """Opens a page and returns it once it is loaded. `size`: width and height in pixels; default: those of the browser."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self._events.clear()
        for domain in ("Page", "Runtime", "Log", "Network"):
            self.call(f"{domain}.enable", session)
        if size:
            self.call("Emulation.setDeviceMetricsOverride", session, width=size[0], height=size[1], deviceScaleFactor=1, mobile=False)
        self.call("Page.navigate", session, url=address)
        self.wait("Page.loadEventFired")
        return Page(self, session, target)


class Page:
    def __init__(self, browser, session, target):
        self.browser, self.session, self.target = browser, session, target

    def call(self, method, **parameters):
        return self.browser.call(method, self.session, **parameters)

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression. If it is a promise, waits for the result."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in answer:
            details = answer["exceptionDetails"]
            raise BrowserError(f"{expression}: {details.get('exception', {}).get('description', details['text'])}")
        return answer["result"].get("value")

    def click(self, selector):
        """Scrolls the first element that matches `selector` into view, and clicks in its middle (near the top if it is tall)."""
        x, y = self.evaluate(f"""(() => {{
            const element = document.querySelector({json.dumps(selector)});
            if (!element) throw new Error('there is no ' + {json.dumps(selector)});
            element.scrollIntoView({{block: 'center', inline: 'center'}});
            const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + Math.min(box.height / 2, 12)];
        }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key, code=0):
        text = {"text": "\r"} if key == "Enter" else {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, windowsVirtualKeyCode=code, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key, windowsVirtualKeyCode=code)

    def write(self, text):
        self.call("Input.insertText", text=text)

    def text(self, selector):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? null")

    def count(self, selector):
        return self.evaluate(f"document.querySelectorAll({json.dumps(selector)}).length")

    def screenshot(self, path):
        with open(path, "wb") as file:
            file.write(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self):
        """Returns the texts of all exceptions of the page, and of all errors and warnings in the console and the browser's
        log."""
        found = [event["exceptionDetails"].get("exception", {}).get("description", event["exceptionDetails"]["text"])
                 for event in self.browser.events("Runtime.exceptionThrown")]
        found += [" ".join(str(argument.get("value", argument.get("description"))) for argument in event["args"])
                  for event in self.browser.events("Runtime.consoleAPICalled") if event["type"] in ("error", "warning", "assert")]
        found += [event["entry"]["text"] for event in self.browser.events("Log.entryAdded") if event["entry"]["level"] in ("error", "warning")]
        return found

    def addresses(self):
        """Returns all URLs that were requested, including that of the page itself."""
        return [event["request"]["url"] for event in self.browser.events("Network.requestWillBeSent")]

    def close(self):
        self.browser.call("Target.closeTarget", targetId=self.target)
