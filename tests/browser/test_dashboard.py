"""The dashboard as a user starts it, in a real browser: paint, pages, links, downloads, dark mode, accessibility."""

import os
import shutil
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect, sync_playwright
from stores import full_store

from toolkit.runs.reader import list_runs

pytestmark = [pytest.mark.browser, pytest.mark.timeout(600)]

APP = Path(__file__).resolve().parents[2] / "dashboard" / "app.py"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
PAGES = ("", "compare", "senses", "run_detail")
READY = "[data-testid=stApp][data-test-script-state=notRunning]"


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("store") / "runs"
    full_store(folder)
    return folder


@pytest.fixture(scope="module")
def address(store: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Start the documented command from a folder that is not the repository."""
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    streamlit = Path(sys.executable).with_name("streamlit")
    log = (elsewhere / "server.log").open("w")
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    server = subprocess.Popen(
        [streamlit, "run", str(APP), "--server.port", str(port)],
        cwd=elsewhere,
        env=environment | {"TOOLKIT_RUNS": str(store)},
        stdout=log,
        stderr=log,
    )
    try:
        _wait_until_healthy(port, server, elsewhere / "server.log")
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=30)
        log.close()
    assert "Traceback" not in (elsewhere / "server.log").read_text()


def _wait_until_healthy(port: int, server: subprocess.Popen, log: Path) -> None:
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline and server.poll() is None:
        try:
            urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2)
        except (urllib.error.URLError, TimeoutError):
            time.sleep(0.3)
        else:
            return
    pytest.fail(f"the server did not start:\n{log.read_text()}")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    program = next(filter(None, map(shutil.which, BROWSERS)))
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=program, args=list(FLAGS))
        yield started
        started.close()


@pytest.fixture(params=["light", "dark"])
def page(request: pytest.FixtureRequest, browser: Browser) -> Iterator[Page]:
    """A page that notes every request beyond this machine and every error of a script."""
    context = browser.new_context(viewport={"width": 1440, "height": 1000}, color_scheme=request.param)
    opened = context.new_page()
    outside: list[str] = []
    errors: list[str] = []
    opened.on(
        "request", lambda r: outside.append(r.url) if r.url.startswith("http") and "127.0.0.1" not in r.url else 0
    )
    opened.on("pageerror", lambda error: errors.append(str(error)))
    yield opened
    context.close()
    assert outside == []
    assert errors == []


def visit(page: Page, url: str) -> None:
    page.goto(url)
    settle(page)


def settle(page: Page) -> None:
    page.wait_for_selector(READY, timeout=60_000)
    page.wait_for_timeout(1500)  # charts and tables draw after the script
    assert page.get_by_test_id("stException").count() == 0


@pytest.mark.parametrize("name", PAGES)
def test_a_page_paints_and_is_accessible(page: Page, address: str, name: str, store: Path) -> None:
    chosen = [run.id for run in list_runs(store) if run.name.startswith(("wiki", "sst2"))][:3]
    visit(page, f"{address}/{name}" + ("?" + "&".join(f"runs={run}" for run in chosen) if not name else ""))
    expect(page.get_by_role("heading").first).to_be_visible()
    violations = Axe().run(page).response["violations"]
    found = [
        f"{violation['id']}: {node['html'][:200]} {node.get('failureSummary', '')[:300]}"
        for violation in violations
        for node in violation["nodes"]
    ]
    assert found == []


def test_the_theme_follows_the_system(browser: Browser, address: str) -> None:
    shades = {}
    for scheme in ("light", "dark"):
        context = browser.new_context(color_scheme=scheme)
        opened = context.new_page()
        visit(opened, address)
        shades[scheme] = opened.evaluate(
            "getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"
        )
        context.close()
    assert shades == {"light": "rgb(255, 255, 255)", "dark": "rgb(18, 23, 29)"}


def test_pages_are_reached_by_their_links(page: Page, address: str) -> None:
    visit(page, address)
    for title in ("Compare", "Senses", "Runs"):
        page.get_by_role("link", name=title).click()
        settle(page)
        expect(page.get_by_role("heading", name=title, exact=True)).to_be_visible()
    assert page.get_by_role("link", name="Run detail").count() == 0


def test_a_ticked_row_is_in_the_url_by_id_and_comes_back_from_it(page: Page, address: str, store: Path) -> None:
    first = next(run.id for run in list_runs(store))
    visit(page, address)
    table = page.get_by_test_id("stDataFrame").first
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 18, box["y"] + 35 + 17)
    page.wait_for_url(f"**runs={first}*", timeout=20_000)
    settle(page)
    visit(page, page.url)
    expect(page.get_by_test_id("stMultiSelect").first).to_contain_text(first)


def test_a_chart_is_saved_as_svg_and_a_table_as_csv(page: Page, address: str) -> None:
    visit(page, f"{address}/compare")
    for label, name, start in (("SVG", "compare-mix.svg", "<svg"), ("CSV", "compare-settings.csv", "setting,A,B")):
        buttons = page.get_by_test_id("stDownloadButton").filter(has_text=label)
        saved = {}
        for number in range(buttons.count()):
            with page.expect_download(timeout=30_000) as download:
                buttons.nth(number).get_by_role("button").click()
            saved[download.value.suggested_filename] = Path(download.value.path()).read_text()
        assert saved[name].startswith(start)


def test_the_next_occurrence_is_a_link_of_its_own(page: Page, address: str) -> None:
    visit(page, f"{address}/senses?senses_word=spring")
    page.get_by_role("button", name="Increment").click()
    page.wait_for_url("**senses_at=2*", timeout=20_000)
    settle(page)
    assert "senses_word=spring" in page.url


def test_only_this_machine_is_served(address: str) -> None:
    port = int(address.rsplit(":", 1)[1])
    others = {found[4][0] for found in socket.getaddrinfo(socket.gethostname(), port, socket.AF_INET)}
    for other in others - {"127.0.0.1", "127.0.1.1"}:
        with pytest.raises(OSError), socket.create_connection((other, port), timeout=2):
            pass
