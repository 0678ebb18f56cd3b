"""Pictures in the documentation show the figures that are currently saved."""

import sys
import xml.etree.ElementTree as ET
from importlib import import_module
from pathlib import Path

import pytest

pytest.importorskip("matplotlib")
ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def pictures(monkeypatch):
    monkeypatch.setattr(sys, "path", [str(ROOT / "docs" / "pictures"), *sys.path])


def read_words(name: str) -> str:
    """Return all text of a picture."""
    root = ET.parse(ROOT / "docs" / "_static" / "pictures" / f"{name}.svg").getroot()
    return "\n".join("".join(text.itertext()) for text in root.iter("{http://www.w3.org/2000/svg}text"))


def test_latencies_equal_the_benchmark_results():
    latency, drawing = import_module("latency"), import_module("drawing")
    shown = read_words("latency").splitlines()
    panels = latency.panels()
    assert len(panels) == 4
    for panel in panels:
        assert panel.title in shown
        for name, taken in panel.microseconds.items():
            assert name in shown
            assert drawing.microseconds(taken) in shown


@pytest.mark.parametrize("name", ["latency", "training_time"])
def test_pictures_show_command_machine_and_date(name):
    small_print, shown = import_module(name).small_print(), read_words(name)
    for line in small_print.splitlines():
        assert line in shown
    assert "python benchmarks/" in shown and "2026" in shown


def test_missing_figures_are_named():
    drawing = import_module("drawing")
    with pytest.raises(KeyError, match="'training' of 'nobody'"):
        drawing.value_of(drawing.results("poly_scaling"), "a9a against rows", "nobody", "training")


@pytest.mark.parametrize(
    ("value", "words"), [(0.2238, "0.22 µs"), (105.2, "105 µs"), (1253.0, "1.3 ms"), (11970, "12 ms")]
)
def test_times_are_written_in_words(value, words):
    assert import_module("drawing").microseconds(value) == words
