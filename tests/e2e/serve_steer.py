"""What the server of `kf-host serve --steer ADDRESS` says to a run that trains, here "toy"."""
import http.client
import json
import sys
import time
from urllib.parse import urlencode, urlsplit

address = urlsplit(sys.argv[1])


def ask(method, path, **query):
    connection = http.client.HTTPConnection(address.hostname, address.port, timeout=600)
    connection.request(method, f"{path}?{address.query}&{urlencode(query)}")
    answer = connection.getresponse()
    text = answer.read().decode()
    connection.close()
    return answer.status, text


def steer(**query):
    return ask("POST", "/steer", **query)


assert '"steers":true' in ask("GET", "/")[1]
assert steer(key="toy", wish="lr", value="0.25") == (204, "")
assert steer(key="toy", wish="save")[0] == 204
assert steer(key="toy", wish="eval")[0] == 204
assert steer(key="toy", wish="lr", value="1) os.exit(")[0] == 400
assert steer(key="toy", wish="os.exit()")[0] == 400
assert steer(key="../toy", wish="save")[0] == 404
assert ask("GET", "/steer", key="toy", wish="stop")[0] == 404
assert ask("POST", "/", key="toy", wish="stop")[0] == 405
without_length = http.client.HTTPConnection(address.hostname, address.port, timeout=600)
without_length.putrequest("POST", f"/steer?{address.query}&{urlencode({'key': 'toy', 'wish': 'stop'})}")
without_length.endheaders()
assert without_length.getresponse().status == 411
without_length.close()
end = time.monotonic() + 600  # the row is written behind the run's back
while "eval.loss" not in json.loads(ask("GET", "/run", key="toy")[1])["series"]:
    assert time.monotonic() < end, "no row of the evaluation"
    time.sleep(0.02)
assert steer(key="toy", wish="stop")[0] == 204
