"""Workflows and CI scripts, which only servers run, can be parsed and refer to existing names."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path
from typing import Any

import pytest

import unkernel

ROOT = Path(__file__).resolve().parents[1]
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
CI_SCRIPTS = [ROOT / ".ci" / "run", ROOT / ".ci" / "nightly"]
SCRIPTS = [*WORKFLOWS, *CI_SCRIPTS]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").rglob("*.md"))]

if not WORKFLOWS:
    pytest.skip("a source archive has no workflows", allow_module_level=True)


def parse_yaml(path: Path) -> dict[Any, Any]:
    yaml = pytest.importorskip("yaml")
    document = yaml.safe_load(path.read_text(encoding="utf-8"))
    assert isinstance(document, dict)
    return document


def targets() -> set[str]:
    text = (ROOT / "Makefile").read_text(encoding="utf-8")
    return set(re.findall(r"^([a-z][a-z-]*):", text, re.MULTILINE))


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_a_workflow_has_jobs_with_steps_and_limits(path: Path) -> None:
    document = parse_yaml(path)
    assert True in document or "on" in document  # YAML 1.1 reads a bare `on` as true
    assert document["permissions"] == {"contents": "read"}
    for job in document["jobs"].values():
        assert "runs-on" in job
        assert job["steps"]
        for step in job["steps"]:
            assert ("uses" in step) != ("run" in step)


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.name)
def test_needed_jobs_exist(path: Path) -> None:
    jobs = parse_yaml(path)["jobs"]
    for job in jobs.values():
        needed = job.get("needs", [])
        assert {needed} <= set(jobs) if isinstance(needed, str) else set(needed) <= set(jobs)


@pytest.mark.parametrize("path", [*SCRIPTS, *PAGES], ids=lambda path: path.name)
def test_every_make_target_that_is_named_exists(path: Path) -> None:
    if path.suffix == ".md":
        pattern = r"(?:`|^|\$ )make ([a-z][a-z-]*)"
    else:
        pattern = r"^(?:.*(?:run:|step \"[^\"]*\"))?\s*make ([a-z][a-z-]*)"
    target_names = set(re.findall(pattern, path.read_text(encoding="utf-8"), re.MULTILINE))
    assert target_names <= targets()


def test_the_pattern_for_targets_finds_some() -> None:
    assert {"demo", "test", "test-all", "bench", "lint", "docs", "clean", "help"} <= targets()


def test_tested_pythons_are_those_promised() -> None:
    matrix = parse_yaml(ROOT / ".github" / "workflows" / "test.yml")["jobs"]["test"]["strategy"]["matrix"]
    assert matrix["python"][0] == "3.11"
    classifiers = re.findall(r"Python :: (3\.\d+)", (ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert set(classifiers) <= set(matrix["python"])


@pytest.mark.parametrize("script", CI_SCRIPTS, ids=lambda script: script.name)
def test_ci_scripts_are_executable(script: Path) -> None:
    assert script.stat().st_mode & 0o111


def nightly_steps() -> list[str]:
    return re.findall(
        r'^step "([^"]*)"', (ROOT / ".ci" / "nightly").read_text(encoding="utf-8"), re.MULTILINE
    )


def test_a_job_runs_each_nightly_step() -> None:
    """Each step of .ci/nightly contains exactly one of the filters in the matrix of the workflow."""
    jobs = parse_yaml(ROOT / ".github" / "workflows" / "nightly.yml")["jobs"]
    step_filters = jobs["nightly"]["strategy"]["matrix"]["steps"]
    assert len(nightly_steps()) > 10
    for step in nightly_steps():
        assert sum(step_filter in step for step_filter in step_filters) == 1, step


def test_nightly_steps_continue_after_a_failure_and_report_it(tmp_path: Path) -> None:
    """The script with other steps lists all results at the end, and exits with 1."""
    script = (ROOT / ".ci" / "nightly").read_text(encoding="utf-8")
    script, installs = re.subn(
        r"^install_what.*\n(if is_here.*\n( .*\n)*fi\n)?", "", script, flags=re.MULTILINE
    )
    assert installs == 1 and "install_packages" not in script
    steps = 'step "bad" eval "false; echo never"\nstep "good" echo fine\nstep "other" false\n'
    script = re.sub(r'(^step "[^"]*" .*\n)+', steps, script, flags=re.MULTILINE)
    (tmp_path / ".ci").mkdir()
    (tmp_path / ".ci" / "nightly").write_text(script)
    (tmp_path / ".ci" / "common").write_text((ROOT / ".ci" / "common").read_text(encoding="utf-8"))
    for words, code, message in (
        ((), 1, ["FAILED bad", "passed good", "FAILED other"]),
        (("good",), 0, ["passed good"]),
        (("goo", "ba"), 1, ["FAILED bad", "passed good"]),
    ):
        completed = subprocess.run(
            ["bash", tmp_path / ".ci" / "nightly", *words], capture_output=True, text=True, check=False
        )
        assert completed.returncode == code, completed.stdout + completed.stderr
        assert "never" not in completed.stdout
        assert re.sub(r" +\d+ s +", " ", completed.stdout).splitlines()[-len(message) :] == message
    assert (tmp_path / "build" / "nightly" / "good.txt").read_text() == "fine\n"


def test_the_conda_recipe_has_the_requirements_of_the_package() -> None:
    recipe = parse_yaml(ROOT / "packaging" / "conda" / "recipe.yaml")
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    needed = {requirement.replace(" ", "") for requirement in recipe["requirements"]["run"]}
    assert needed == {*project["dependencies"], f"python{project['requires-python']}"}
    assert recipe["context"]["version"] == unkernel.__version__


def test_the_citation_names_title_authors_and_papers() -> None:
    citation = parse_yaml(ROOT / "CITATION.cff")
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert len(citation["references"]) == len([*(ROOT / "docs" / "papers").glob("*20*.md")])
