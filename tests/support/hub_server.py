#!/usr/bin/env python3
"""A stand-in for the Hugging Face hub: hub_server.py ROOT STATE

Serves ROOT/OWNER/NAME/** as data sets and as models, by the routes that clients use, on a port of 127.0.0.1 that it writes to STATE/port. Requests are
written to STATE/requests, a line each: method, path, Range, Authorization. The first part of a path says how the server misbehaves: with
HF_ENDPOINT=http://127.0.0.1:PORT/MODE, MODE is one of

  ok            it does not
  busy          429 with Retry-After, twice a path
  failing       500, twice a path
  down          500, always
  cut           half of a file, then the connection ends; the rest on request
  cut-whole     the same, but Range is not understood: the whole again
  silent        half of a file, then nothing for a while, the first time
  long          more bytes than listed
  wrong         the right number of bytes, one of them changed
  wrong-once    the same, the first time
  moved         files lie on another host (localhost instead of 127.0.0.1)
  closed        401 unless the token is "secret"
"""

import hashlib
import http.server
import json
import os
import sys
import threading
import time
import urllib.parse

ROOT, STATE = os.path.abspath(sys.argv[1]), sys.argv[2]
COMMIT = "c0ffee" + "0" * 34
LARGE = 600  # bytes from which a file has a sha256, as one of Git LFS
seen = {}
lock = threading.Lock()


def times_seen(key):
    with lock:
        seen[key] = seen.get(key, 0) + 1
        return seen[key]


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *args):
        pass

    def answer(self, status, body=b"", headers=()):
        self.send_response(status)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_GET(self):
        with lock, open(os.path.join(STATE, "requests"), "a") as log:
            log.write(" ".join([self.headers["Host"], self.path, self.headers.get("Range", "-"), self.headers.get("Authorization", "-")]) + "\n")
        url = urllib.parse.urlsplit(self.path)
        _, mode, *parts = [urllib.parse.unquote(part) for part in url.path.split("/")]
        if mode == "closed" and self.headers.get("Authorization") != "Bearer secret":
            return self.answer(401, b"{}", [("X-Error-Message", "Invalid username or password.")])
        if mode == "down":
            return self.answer(500)
        if parts[:2] == ["api", "datasets"] and len(parts) >= 6:
            return self.api("/".join(parts[2:4]), parts[4], url.query)
        if parts[:1] == ["datasets"] and len(parts) >= 6 and parts[3] == "resolve":
            return self.file(mode, "/".join(parts[1:3]), "/".join(parts[5:]))
        if parts[:2] == ["api", "models"] and len(parts) >= 5:  # NAME or OWNER/NAME
            name = 1 if parts[3] in ("revision", "tree") else 2
            if parts[3 + name :][:1] == ["absent"]:
                return self.answer(404, b"{}", [("X-Error-Code", "RevisionNotFound")])
            return self.api("/".join(parts[2 : 2 + name]), parts[2 + name], url.query)
        if "resolve" in parts[1:3]:
            at = parts.index("resolve")
            return self.file(mode, "/".join(parts[:at]), "/".join(parts[at + 2 :]))
        return self.answer(404)

    def api(self, name, what, query):
        folder = os.path.join(ROOT, name)
        if not os.path.isdir(folder):
            return self.answer(404, b"{}", [("X-Error-Code", "RepoNotFound")])
        if what == "revision":
            return self.answer(200, json.dumps({"id": name, "sha": COMMIT}).encode())
        entries = []
        for parent, _, names in sorted(os.walk(folder)):
            for one in sorted(names):
                path = os.path.join(parent, one)
                content = open(path, "rb").read()
                git = hashlib.sha1(b"blob %d\0" % len(content) + content).hexdigest()
                entry = {"type": "file", "oid": git, "size": len(content), "path": os.path.relpath(path, folder)}
                if len(content) >= LARGE:
                    entry["lfs"] = {"oid": hashlib.sha256(content).hexdigest(), "size": len(content), "pointerSize": 130}
                entries.append(entry)
        # Two a page, so that clients must turn pages.
        start = int(dict(urllib.parse.parse_qsl(query)).get("cursor", 0))
        headers = []
        if start + 2 < len(entries):
            path = self.path.split("?")[0]
            headers = [("Link", f'<http://{self.headers["Host"]}{path}?recursive=true&cursor={start + 2}>; rel="next"')]
        return self.answer(200, json.dumps(entries[start : start + 2]).encode(), headers)

    def file(self, mode, name, path):
        full = os.path.join(ROOT, name, path)
        if not os.path.isfile(full):
            return self.answer(404)
        content = open(full, "rb").read()
        count = times_seen((mode, name, path))
        if mode == "moved" and self.headers["Host"].startswith("127.0.0.1"):
            return self.answer(302, b"", [("Location", f"http://localhost:{PORT}{self.path}")])
        if mode == "busy" and count <= 2:
            return self.answer(429, b"slow down", [("Retry-After", "0.05")])
        if mode == "failing" and count <= 2:
            return self.answer(500, b"oops")
        if mode == "long":
            return self.answer(200, content + b"more")
        if mode == "wrong" or (mode == "wrong-once" and count == 1):
            return self.answer(200, content[:-1] + bytes([content[-1] ^ 1]))
        start, status, headers = 0, 200, []
        if self.headers.get("Range", "").startswith("bytes=") and mode != "cut-whole":
            start = int(self.headers["Range"][6:].split("-")[0])
            if start >= len(content):
                return self.answer(416)
            status, headers = 206, [("Content-Range", f"bytes {start}-{len(content) - 1}/{len(content)}")]
        if mode in ("cut", "cut-whole", "silent") and count == 1:
            self.send_response(status)
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content[: len(content) // 2])
            self.wfile.flush()
            if mode == "silent":
                time.sleep(4)
            self.close_connection = True
            return None
        return self.answer(status, content[start:], headers)


server = http.server.ThreadingHTTPServer(("", 0), Handler)
server.daemon_threads = True
PORT = server.server_address[1]
with open(os.path.join(STATE, "port"), "w") as out:
    out.write(str(PORT))
print("ready", flush=True)
server.serve_forever()
