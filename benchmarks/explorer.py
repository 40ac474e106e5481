"""How quick the explorer is: a first look, and ten clients at once.

    python benchmarks/explorer.py [--model minilm]

Starts `headscope explore` as a user would. First paint needs Chromium; without it that row is left out. Prints JSON.
"""

from __future__ import annotations

import argparse
import json
import shutil
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import httpx

CLIENTS, LOOKS = 10, 20
TEXT = "The river had risen in the night, and by morning the ferry could not leave; the women waited on the steps. " * 8


@contextmanager
def explorer(model: str) -> Iterator[httpx.URL]:
    command = [sys.executable, "-m", "headscope", "explore", "--model", model, "--no-browser"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as server:
        assert server.stdout is not None
        try:
            yield next(httpx.URL(word) for line in server.stdout for word in line.split() if word.startswith("http://"))
        finally:
            server.terminate()


def looks(address: httpx.URL, model: str, client: int, count: int) -> list[float]:
    """Seconds that a client waits for each of its texts, all different, in windows of 128 tokens."""
    waited = []
    headers = {"X-Headscope-Token": address.params["token"]}
    with httpx.Client(base_url=f"http://127.0.0.1:{address.port}", headers=headers, timeout=120) as asking:
        for number in range(count):
            body = {"text": f"Client {client}, question {number}. {TEXT}", "model": model, "length": 128}
            began = time.perf_counter()
            asking.post("/api/look", json=body).raise_for_status()
            waited.append(time.perf_counter() - began)
    return waited


def first_paint(address: httpx.URL) -> float | None:
    """Milliseconds until the browser shows anything, the median of five visits."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return None
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        painted = []
        for _ in range(5):
            page = browser.new_page()
            page.goto(str(address))
            page.wait_for_selector(".pairs tbody tr")
            painted.append(page.evaluate("performance.getEntriesByName('first-contentful-paint')[0].startTime"))
            page.close()
        browser.close()
    return statistics.median(painted)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="minilm")
    model = parser.parse_args().model
    with explorer(model) as address:
        looks(address, model, -1, 2)
        alone = looks(address, model, -2, 10)
        painted = first_paint(address)
        with ThreadPoolExecutor(CLIENTS) as pool:
            waited = [
                one for some in pool.map(lambda n: looks(address, model, n, LOOKS), range(CLIENTS)) for one in some
            ]
    found: dict[str, Any] = {
        "first_paint_ms": painted,
        "look_s": statistics.median(alone),
        "looks_of_ten_clients": len(waited),
        "longest_wait_s": max(waited),
        "median_wait_s": statistics.median(waited),
    }
    print(json.dumps(found, indent=1))


if __name__ == "__main__":
    main()
