"""What must not work at the server of `kf-host serve ADDRESS`, and that it still works afterwards."""
import http.client
import json
import socket
import sys
import time
from urllib.parse import urlsplit

address = urlsplit(sys.argv[1])
host, port, query = address.hostname, address.port, address.query


def ask(path, method="GET", headers=None, body=None):
    connection = http.client.HTTPConnection(host, port, timeout=600)
    connection.request(method, path, body=body, headers=headers or {})
    answer = connection.getresponse()
    text = answer.read()
    connection.close()
    return answer, text.decode()


def status(path, **more):
    return ask(path, **more)[0].status


def raw(data, wait=600):
    with socket.create_connection((host, port), timeout=wait) as client:
        try:
            client.sendall(data)
        except OSError:
            pass  # it has closed the door meanwhile
        try:
            return client.recv(1 << 16)
        except ConnectionResetError:
            return b""


answer, page = ask(f"/?{query}")
assert answer.status == 200 and "<!doctype html>" in page, page[:200]
assert "default-src 'none'" in answer.headers["Content-Security-Policy"] and answer.headers["X-Frame-Options"] == "DENY"
assert answer.headers["Referrer-Policy"] == "no-referrer" and answer.headers["Cache-Control"] == "no-store"
assert query.split("=")[1] not in page, "the token stands in the page"

# Tokens: none, a wrong one, a part of it.
for bad in ("", "token=", "token=" + "0" * 32, query[:-1], query + "0", query.upper()):
    for path in ("/", "/run", "/events", "/nothing"):
        assert status(f"{path}?{bad}&key=a") == 403, (path, bad)

# Other names for this machine.
for name in ("evil.example", f"evil.example:{port}", "127.0.0.1.evil.example", "", f"localhost@evil.example:{port}"):
    assert status(f"/?{query}", headers={"Host": name}) == 403, name
assert status(f"/?{query}", headers={"Host": "localhost:1234"}) == 200  # a forwarded port
assert raw(f"GET /?{query} HTTP/1.0\r\n\r\n".encode()).split()[1] == b"403"  # none at all
assert raw(f"GET /?{query} HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\nConnection: close\r\n\r\n".encode()).split()[1] == b"403"

# Other files and other methods.
assert json.loads(ask(f"/run?{query}&key=a")[1])["series"]["loss"]["step"][-1] == 30
assert json.loads(ask(f"/run?{query}&key=a&from=10&to=12")[1])["series"]["loss"]["step"] == [10, 11, 12]
assert json.loads(ask(f"/run?{query}&key=a&from=x&to=-9e99")[1])["series"]["loss"]["step"] == []
for path in ("/../secret.txt", "/..%2fsecret.txt", "/runs/a/run.json", "/etc/passwd", "//etc/passwd"):
    assert status(f"{path}?{query}") == 404, path
for key in ("../secret.txt", "..", "/etc", "a/../a", "%2e%2e%2fsecret.txt", "a%00", ""):
    answer, text = ask(f"/run?{query}&key={key}")
    assert answer.status == 404 and "do not read" not in text, key
for method in ("POST", "PUT", "DELETE", "PATCH"):
    assert status(f"/?{query}", method=method, body="x" * 100) in (403, 405), method
try:
    assert status(f"/?{query}", method="POST", body="x" * 100000) in (403, 405, 413)
except OSError:
    pass  # it has closed the door before all of it was sent

# Requests that are none.
for data in (b"\0\1\2\3\r\n\r\n", b"GET\r\n\r\n", b"GET / HTTP/9.9\r\n\r\n", b"x" * 100000 + b"\r\n\r\n", b"GET /" + b"a" * 100000 + b" HTTP/1.1\r\n\r\n",
             f"GET /?{query} HTTP/1.1\r\nHost: localhost\r\nX: {'a' * 100000}\r\n\r\n".encode()):
    answered = raw(data)
    assert answered == b"" or answered.split()[1][:1] == b"4", answered[:100]

# Clients that say nothing, or a letter now and then, and readers that do not read, keep nobody waiting.
slow = [socket.create_connection((host, port)) for unused in range(30)]
for client in slow[:15]:
    client.sendall(b"GET / HT")
for client in slow[15:20]:
    client.sendall(f"GET /events?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
begin = time.monotonic()
assert status(f"/?{query}") == 200
assert time.monotonic() - begin < 30
for client in slow:
    client.close()

# Far more connections than there are threads: answers come, if only that there are too many, and all is as before when they have gone.
crowd = [socket.create_connection((host, port)) for unused in range(400)]
assert status(f"/?{query}") in (200, 503)
for client in crowd:
    client.close()
for unused in range(600):
    if status(f"/?{query}") == 200:
        break
    time.sleep(1)
assert status(f"/?{query}") == 200

# What follows is told of a run that is there.
with socket.create_connection((host, port), timeout=600) as client:
    client.sendall(f"GET /events?{query} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
    text = b""
    while b"event: runs" not in text or b'"key":"a"' not in text:
        more = client.recv(1 << 16)
        assert more, text
        text += more
assert status(f"/?{query}") == 200
