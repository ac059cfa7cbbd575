"""A headless Chromium for tests of pages: opened once, with logs of its network, console and pixels."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from PIL import Image
from support.needs import need, need_module

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--force-color-profile=srgb",  # colors are those of the page
)
END, HOME, ARROW_LEFT, ARROW_RIGHT, SPACE = "\ue010", "\ue011", "\ue012", "\ue014", " "  # WebDriver's codes of the keys
PATIENCE = 60  # seconds: a page is drawn in less than one, but machines are shared


class Browser:
    def __init__(self, driver: Any) -> None:
        self.driver = driver

    def open(self, page: Path, width: int = 1200, height: int = 900, dark: bool = False, fragment: str = "") -> None:
        """Show a page as a fresh visitor sees it, once a snapshot is drawn; ``fragment`` ends its address."""
        self.driver.get("about:blank")
        self.driver.get_log("browser")
        self.driver.get_log("performance")
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": scheme})
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get(page.as_uri() + fragment)
        self.wait("document.body.dataset.shown !== undefined")

    def wait_for_snapshot(self, k: int | str) -> None:
        self.wait(f"document.body.dataset.shown === '{k}'")

    def wait(self, condition: str) -> None:
        from selenium.webdriver.support.ui import WebDriverWait

        WebDriverWait(self.driver, PATIENCE, 0.05).until(lambda driver: self.run(f"return {condition}"), condition)

    def run(self, script: str, *arguments: Any) -> Any:
        return self.driver.execute_script(script, *arguments)

    def find(self, selector: str) -> Any:
        from selenium.webdriver.common.by import By

        return self.driver.find_element(By.CSS_SELECTOR, selector)

    def text(self, selector: str) -> str:
        return self.find(selector).text

    def box(self, selector: str) -> tuple[float, float, float, float]:
        """Return left, top, width and height of an element in pixels of the window."""
        return tuple(
            self.run(
                "const b = document.querySelector(arguments[0]).getBoundingClientRect();"
                "return [b.left, b.top, b.width, b.height]",
                selector,
            )
        )

    def drag(self, selector: str, start: tuple[float, float], by: tuple[int, int] = (0, 0)) -> None:
        """Press at ``start`` from the element's left top, move by pixels, and release."""
        from selenium.webdriver.common.action_chains import ActionChains

        self.run("document.querySelector(arguments[0]).scrollIntoView({block: 'center'})", selector)
        element, (_, _, width, height) = self.find(selector), self.box(selector)
        # Chromium measures offsets from the middle of the element, rounded down.
        offset = round(start[0] - width // 2), round(start[1] - height // 2)
        action = ActionChains(self.driver, duration=50).move_to_element_with_offset(element, *offset).click_and_hold()
        action.move_by_offset(*by).release().perform()

    def pixels(self) -> np.ndarray:
        """Return the pixels (height, width, 3) of the window."""
        with Image.open(io.BytesIO(self.driver.get_screenshot_as_png())) as image:
            return np.array(image.convert("RGB"))

    def complaints(self) -> list[str]:
        return [entry["message"] for entry in self.driver.get_log("browser")]

    def requests(self) -> list[str]:
        """Return the addresses that the page has requested, without the address of the page itself."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        sent = [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
        assert any(url.startswith("file:") for url in sent), "the log of requests is empty"
        own = self.driver.current_url.partition("#")[0]
        return [url for url in sent if url.partition("#")[0] != own and not url.startswith("data:")]


@contextmanager
def chromium(folder: Path) -> Iterator[Browser]:
    """Yield a browser whose profile is the empty ``folder``. Skip the test, or fail, without Chromium."""
    program, driver_program = need("chromium"), need("chromedriver")
    need_module("selenium")
    from selenium import webdriver

    options = webdriver.ChromeOptions()
    options.binary_location = program
    for flag in [*FLAGS, f"--user-data-dir={folder}"]:
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(driver_program))
    try:
        yield Browser(driver)
    finally:
        driver.quit()
