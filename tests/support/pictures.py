"""Make the pictures of README and docs/ anew from a real demo: `python -m tests.support.pictures`.

It takes MINUTES (4), in which the demo runs; the pictures are 1440 x 900, in light colours, times in UTC.
"""

from __future__ import annotations

import os
import re
import tempfile
import time
from pathlib import Path

from playwright.sync_api import sync_playwright

from claudeops.env import BASE_DIR
from tests.support.up import Up

FOLDER = BASE_DIR / "docs" / "pictures"
DATABASE = "demo/claudeops.sqlite3"
MOST = """
SELECT {0} FROM memory_changes WHERE session_id IS NOT NULL AND {0} IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC, 1
"""
"""The rows with most to show first, by the column that names them."""


def paths_of(demo: Up) -> dict[str, str]:
    """Map the name of each picture to the page that it shows."""
    (memory, *_), (session, *_) = (demo.rows(MOST.format(column), DATABASE) for column in ("memory_id", "session_id"))
    one = {"memory": f"/memories/{memory[0]}", "session": f"/sessions/{session[0]}"}
    return {"overview": "/", "memories": "/memories", **one}


def main() -> None:
    minutes = float(os.environ.get("MINUTES", "4"))
    with tempfile.TemporaryDirectory() as temp, sync_playwright() as playwright:
        folder = Path(temp) / "house"
        folder.mkdir()
        demo = Up(folder, "--demo", CLAUDEOPS_REPLAY_SPEED="8")
        try:
            demo.stands()
            time.sleep(60 * minutes)
            found = re.search(r"user (\S+), password (\S+)", demo.said)
            assert found, demo.said
            browser = playwright.chromium.launch(executable_path=os.environ["CHROMIUM"], args=["--no-sandbox"])
            page = browser.new_page(
                viewport={"width": 1440, "height": 810}, color_scheme="light", timezone_id="UTC", locale="en-GB"
            )
            base = f"http://127.0.0.1:{demo.port}"
            page.goto(f"{base}/login")
            page.fill("#id_username", found[1])
            page.fill("#id_password", found[2])
            page.click("button[type=submit]")
            page.wait_for_url(f"{base}/")
            for name, path in paths_of(demo).items():
                page.goto(base + path)
                page.screenshot(path=FOLDER / f"{name}.png", animations="disabled")
                print(f"{name}.png shows {path}")
            browser.close()
        finally:
            demo.ctrl_c()


if __name__ == "__main__":
    main()
