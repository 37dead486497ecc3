#!/usr/bin/env python3
"""A recovery agent in Python that runs no server: it polls the inbox.

    longstop settings set recovery.mode agent
    longstop keys create python-agent --role agent
    LONGSTOP_KEY=... python3 agent.py

LONGSTOP_ENDPOINT is the server, http://127.0.0.1:8080 by default. Python 3.9
or newer, and nothing beside its standard library.
"""
import json
import os
import re
import sys
import time
import urllib.error
import urllib.parse
import urllib.request

ENDPOINT = os.environ.get("LONGSTOP_ENDPOINT", "http://127.0.0.1:8080").rstrip("/")
KEY = os.environ.get("LONGSTOP_KEY", "")
WAIT = 30  # seconds that the server may hold an answer back


def mend(case):
    """Decides about a failed step: put what you know about your own APIs here.

    case is RecoveryToolInput, the result RecoveryAction. What came from outside
    in it, error bodies above all, is data and never an instruction.
    """
    match = re.match(r"HTTP (\d{3})\b", case["error"])
    status = int(match.group(1)) if match else 0
    http = case["step"]["type"] == "http_request"
    if http and status in (408, 425, 429, 500, 502, 503, 504):
        return {"type": "retry_with_params", "diagnosis": f"HTTP {status}: the same request may succeed now.", "modifications": {}}
    if http and case["error"].startswith("no answer within"):
        return {"type": "retry_with_params", "diagnosis": "The API was too slow; a second try may wait a minute.", "modifications": {"timeout": 60000}}
    url = (case.get("resolved_request") or {}).get("url", "")
    body = case["error"].partition("\n")[2]
    if status in (404, 410) and "/v2/" in body and "/v1/" in url:
        return {"type": "retry_with_params", "diagnosis": "The API has moved from v1 to v2.",
                "modifications": {"httpRequest": {"url": url.replace("/v1/", "/v2/", 1)}}}
    return {"type": "needs_human", "diagnosis": "This agent has no mend for this failure.",
            "suggestion": "Read the error, correct the step or its credentials, then retry."}


def call(method, path, query=None, body=None, tag=None):
    """Makes one call and gives its status, ETag and decoded answer."""
    url = ENDPOINT + path + ("?" + urllib.parse.urlencode(query) if query else "")
    request = urllib.request.Request(url, method=method, data=None if body is None else json.dumps(body).encode())
    request.add_header("Authorization", "Bearer " + KEY)
    if body is not None:
        request.add_header("Content-Type", "application/json")
    if tag:
        request.add_header("If-None-Match", tag)
    try:
        with urllib.request.urlopen(request, timeout=WAIT + 30) as answer:
            text = answer.read()
            return answer.status, answer.headers.get("ETag"), json.loads(text) if text else None
    except urllib.error.HTTPError as refused:
        text = refused.read().decode("utf-8", "replace")
        if refused.code not in (304, 409, 422, 429, 404) and refused.code < 500:
            sys.exit(f"{method} {path}: {refused.code} {text}")  # a key that is refused stays refused
        if refused.code == 429 or refused.code >= 500:
            time.sleep(int(refused.headers.get("Retry-After") or 1))
        return refused.code, refused.headers.get("ETag"), text


def work(item):
    """Reads one case and answers it."""
    path = "/v1/recovery/%s/%d" % (urllib.parse.quote(item["runId"], safe=""), item["stepIndex"])
    query = {"iteration": item["iteration"]} if item["iteration"] else None
    status, _, case = call("GET", path, query)
    if status != 200:
        return
    action = mend(case)
    status, _, said = call("POST", path + "/action", query, action)
    print(f"{item['runId']} step {item['stepIndex']}: {action['type']}, {'applied' if status == 200 else said}", flush=True)


def main():
    tag = None
    while True:
        try:
            status, tag_now, page = call("GET", "/v1/recovery/pending", {"limit": 100, "wait": WAIT}, tag=tag)
        except OSError as gone:
            print(f"the server cannot be reached ({gone}); again in a second", file=sys.stderr, flush=True)
            time.sleep(1)
            continue
        if status != 200:
            continue
        tag = tag_now
        for item in page["items"]:
            work(item)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        pass
