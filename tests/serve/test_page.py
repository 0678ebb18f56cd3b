"""The page in a browser: a form from the model, results while typing, errors, new versions, no network."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from reference.patience import PATIENCE
from serve.serving import LABELS, RECORDS, record_model, started
from unkernel import PolyLogisticRegression, RecordEncoder

playwright = pytest.importorskip("playwright.sync_api", reason="needs playwright")
playwright.expect.set_options(timeout=1000 * PATIENCE)  # in milliseconds; a busy machine takes its time
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
BROWSER = next(filter(None, map(shutil.which, BROWSERS)), None)
pytestmark = pytest.mark.skipif(BROWSER is None, reason=f"none of the browsers {', '.join(BROWSERS)} is here")


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with playwright.sync_playwright() as running:
        opened = running.chromium.launch(executable_path=BROWSER, args=["--no-sandbox"])
        yield opened
        opened.close()


@pytest.fixture(scope="module")
def server(files: dict[str, Path], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a server whose first model tests may replace."""
    model_file = Path(shutil.copy(files["people"], tmp_path_factory.mktemp("own") / "people.uk"))
    with started(model_file, *(files[name] for name in ("rows", "trees", "text", "chunks"))) as running:
        running.file = model_file
        yield running


@pytest.fixture
def page(browser: Any, server: Any) -> Iterator[Any]:
    """Yield the page; it must contact no other server, and log no error."""
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    faults: list[str] = []
    opened.on("pageerror", lambda error: faults.append(str(error)))
    opened.on(
        "request",
        lambda request: None if request.url.startswith(server.address) else faults.append(request.url),
    )
    opened.goto(server.address)
    yield opened
    context.close()
    assert faults == []


def shows(page: Any, selector: str, text: str) -> None:
    playwright.expect(page.locator(selector)).to_contain_text(text)


def picture(page: Any, name: str) -> None:
    """Save a screenshot in the folder that UNKERNEL_SCREENSHOTS names."""
    if folder := os.environ.get("UNKERNEL_SCREENSHOTS"):
        page.screenshot(path=f"{folder}/{name}.png", full_page=True)


def test_results_appear_while_typing(page: Any):
    page.get_by_label("age").fill("70")
    page.get_by_label("town").fill("Kyoto")
    shows(page, "#prediction", "high")
    shows(page, "#probabilities", "low")
    shows(page, "#contributions caption", "Evidence for")
    shows(page, "#latency", "the whole request")
    shows(page, "#curl", """-d '{"age":70,"town":"Kyoto"}'""")
    picture(page, "record")
    page.get_by_label("town").fill("Nara")
    shows(page, "#prediction", "low")
    page.emulate_media(color_scheme="dark")
    picture(page, "record-dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.emulate_media(color_scheme="light")
    assert dark != page.evaluate("getComputedStyle(document.body).backgroundColor")


def test_the_form_has_the_columns_and_their_categories(page: Any):
    playwright.expect(page.locator("#form input")).to_have_count(2)
    assert page.locator("datalist option").evaluate_all("all => all.map(one => one.value)") == [
        "Kyoto",
        "Nara",
        "Osaka",
        "Uji",
    ]


def test_works_without_a_mouse(page: Any):
    page.get_by_label("age").focus()
    page.keyboard.press("Control+A")
    page.keyboard.type("20")
    page.keyboard.press("Tab")
    page.keyboard.press("Control+A")
    page.keyboard.type("Nara")
    shows(page, "#prediction", "high")
    page.get_by_label("Model").focus()
    page.keyboard.press("ArrowDown")
    shows(page, "#about", "a classifier of rows")


def test_errors_appear_and_disappear(page: Any):
    page.get_by_label("Model").select_option("rows")
    page.get_by_label("A row").fill("[1, 0, 0]")
    shows(page, "#error", "the row has 3 values, but the model has 2 columns")
    picture(page, "error")
    page.get_by_label("A row").fill("[1, 0")
    shows(page, "#error", "JSON")
    page.get_by_label("A row").fill("[1, 0]")
    playwright.expect(page.locator("#error")).to_be_hidden()
    shows(page, "#prediction", "1")


def test_trees_and_text_are_drawn(page: Any):
    page.get_by_label("Model").select_option("trees")
    shows(page, "#prediction", "S")
    page.get_by_label("Model").select_option("text")
    page.get_by_label("Text").fill("They didn't see it. Why not?")
    playwright.expect(page.locator("#sentences svg")).to_have_count(2)
    shows(page, "#decisions summary", "decisions and their reasons")
    shows(page, "#output pre", "didn't")
    picture(page, "text")
    page.get_by_label("Model").select_option("chunks")
    page.get_by_label("Sentences").fill("She PRP\nsaw VBD\n\n")
    shows(page, "#sentences pre", "[NP She] [VP saw]")


def test_a_new_version_is_noticed(page: Any, server: Any, tmp_path: Path):
    shows(page, "#about", "version 1")
    record_model(C=0.01).save(server.file)
    page.request.post(f"{server.address}/models/people/load")
    page.get_by_label("age").fill(str(RECORDS[0]["age"]))
    shows(page, "#about", "version 2")


def test_a_new_version_with_other_columns_has_another_form(page: Any, server: Any):
    shows(page, "#prediction", "")
    page.get_by_label("age").fill("47")
    pipeline = make_pipeline(RecordEncoder(min_count=1), PolyLogisticRegression(degree=2))
    records = [{"age": record["age"], "height": 100 + record["age"]} for record in RECORDS]
    unkernel.compile(pipeline.fit(records, LABELS), measure=False).save(server.file)
    page.request.post(f"{server.address}/models/people/load")
    page.get_by_label("age").fill("48")
    playwright.expect(page.get_by_label("height")).to_be_visible()
    playwright.expect(page.get_by_label("town")).to_have_count(0)
    playwright.expect(page.get_by_label("age")).to_have_value("48")
    record_model().save(server.file)  # for the tests that follow
    page.request.post(f"{server.address}/models/people/load")


def test_all_endpoints_are_listed(page: Any, server: Any):
    page.goto(f"{server.address}/docs")
    shows(page, "#paths", "/models/people/predict")
    page.get_by_text("Body: application/json").first.click()
    shows(page, "details[open] > pre", "Kyoto")
    picture(page, "docs")


def test_the_page_asks_for_a_token(browser: Any, files: dict[str, Path], tmp_path: Path):
    tokens = tmp_path / "tokens"
    tokens.write_text("secret\n")
    with started(files["people"], "--token-file", tokens) as server:
        page = browser.new_page()
        page.goto(server.address)
        page.get_by_label("token").fill("secret")
        page.keyboard.press("Enter")
        shows(page, "#about", "a classifier of records")
        playwright.expect(page.locator("#token-form")).to_be_hidden()
        shows(page, "#curl", "Bearer $TOKEN")
        page.close()
