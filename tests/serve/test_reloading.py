"""Valid new files are served, damaged files are not; copies of files are private, and are removed."""

from __future__ import annotations

import shutil
import stat
from pathlib import Path

import pytest

from serve.serving import RECORDS, record_model, served
from unkernel.serve import model_snapshots
from unkernel.serve.errors import RequestError
from unkernel.serve.model_snapshots import ModelSnapshots, make_snapshot_folder
from unkernel.serve.served_models import ServedModels
from unkernel.serve.settings import Settings


@pytest.fixture
def model_file(files, tmp_path: Path) -> Path:
    """Return a file that a test may change."""
    path = tmp_path / "people.uk"
    shutil.copy(files["people"], path)
    return path


@pytest.fixture(scope="module")
def other_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a file of another model."""
    path = tmp_path_factory.mktemp("other") / "other.uk"
    record_model(C=0.01).save(path)
    return path


@pytest.fixture
def pair(model_file: Path):
    """Return the depot of one model, and two workers that serve it."""
    names = {"people": str(model_file)}
    with make_snapshot_folder() as folder:
        ModelSnapshots(folder, names).take_snapshot("people")
        settings = Settings(names, depot=str(folder))
        workers = ServedModels(settings), ServedModels(settings)
        for worker in workers:
            worker.load_snapshots()
        yield folder, *workers


def score(models: ServedModels) -> float:
    answer = models.get("people").answerer.answer_one(RECORDS[0])
    return float(answer["score"])


def test_new_models_are_warmed_up_before_requests(pair, monkeypatch: pytest.MonkeyPatch):
    _, worker, _ = pair
    kind = type(worker.get("people").answerer)
    calls = []
    monkeypatch.setattr(kind, "answer_one", lambda self, item: calls.append((self, item)))
    worker.reload("people")
    served = worker.get("people").answerer
    assert calls == [(served, served.example)]


@pytest.mark.parametrize(
    "replace", [shutil.copyfile, lambda new_file, old: shutil.copy(new_file, f"{old}.new").replace(old)]
)
def test_all_workers_take_up_a_new_file(pair, model_file: Path, other_file: Path, replace):
    _, first_worker, second_worker = pair
    old_score = score(first_worker)
    new_file = Path(shutil.copyfile(other_file, model_file.with_name("moved.uk")))
    new_file.replace(model_file) if replace is not shutil.copyfile else replace(other_file, model_file)
    first_worker.check_files()
    assert first_worker.get("people").version == "1"  # the file may still be written
    first_worker.check_files()
    assert first_worker.get("people").version == "2"
    assert second_worker.get("people").version == "1"
    second_worker.check_files()
    assert second_worker.get("people").version == "2"
    assert score(first_worker) == score(second_worker) != old_score
    first_worker.check_files()
    second_worker.check_files()
    assert (
        first_worker.get("people").version == second_worker.get("people").version == "2"
    )  # no second copy was made


def test_a_request_keeps_the_version_that_it_has(pair, model_file: Path, other_file: Path):
    _, models, _ = pair
    old_version, old_score = models.get("people"), score(models)
    shutil.copyfile(other_file, model_file)
    models.reload("people")
    assert old_version.answerer.answer_one(RECORDS[0])["score"] == old_score != score(models)


def test_changing_the_file_does_not_affect_the_served_model(pair, model_file: Path):
    _, models, _ = pair
    old_score = score(models)
    model_file.write_bytes(b"")  # if the file were memory-mapped, this would crash the process
    assert score(models) == old_score
    model_file.unlink()
    models.check_files()
    models.check_files()
    assert score(models) == old_score
    assert "No such file or directory" in models.describe("people")["refused"]
    with pytest.raises(RequestError, match="No such file or directory; version 1 stays in use"):
        models.reload("people")


@pytest.mark.parametrize("damage", ["cut", "flipped", "foreign", "empty"])
def test_a_damaged_file_is_refused(pair, model_file: Path, damage: str):
    folder, first_worker, second_worker = pair
    data = bytearray(model_file.read_bytes())
    if damage == "flipped":
        data[-9] ^= 64
    model_file.write_bytes(
        {"cut": data[:-40], "flipped": data, "foreign": b"PK\3\4" * 50, "empty": b""}[damage]
    )
    old_score = score(first_worker)
    with pytest.raises(RequestError, match=r"people\.uk.*; version 1 stays in use") as refused:
        first_worker.reload("people")
    assert refused.value.status == 409
    assert str(folder) not in refused.value.reason
    second_worker.check_files()
    assert second_worker.describe("people")["refused"] is not None
    assert score(first_worker) == score(second_worker) == old_score
    assert sorted(path.name for path in folder.glob("*.uk")) == ["0.1.uk"]


def test_a_good_file_after_a_damaged_one_is_taken_up(pair, model_file: Path, other_file: Path):
    _, models, _ = pair
    model_file.write_bytes(b"no model")
    models.check_files()
    models.check_files()
    assert models.describe("people")["refused"] is not None
    shutil.copyfile(other_file, model_file)
    models.check_files()
    models.check_files()
    assert (models.get("people").version, models.describe("people")["refused"]) == ("2", None)


def test_reloads_on_a_full_disk_are_reported_and_retried(
    pair, model_file: Path, other_file: Path, monkeypatch
):
    _, models, _ = pair
    shutil.copyfile(other_file, model_file)

    def fail_on_full_disk(*_):
        raise OSError(28, "No space left on device", "the copy")

    with monkeypatch.context() as patched:
        patched.setattr(model_snapshots.shutil, "copyfile", fail_on_full_disk)
        models.check_files()
        models.check_files()
        with pytest.raises(RequestError, match="No space left on device; version 1 stays in use"):
            models.reload("people")
    models.check_files()
    assert models.get("people").version == "2"


def test_copies_are_private_and_old_copies_are_removed(pair, model_file: Path):
    folder, models, _ = pair
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    for version in range(2, 6):
        assert models.reload("people").version == str(version)
    assert sorted(path.name for path in folder.glob("*.uk")) == ["0.5.uk"]


def test_depots_of_killed_servers_are_removed(tmp_path: Path, monkeypatch):
    monkeypatch.setattr(model_snapshots.tempfile, "tempdir", str(tmp_path))
    stale = tmp_path / "unkernel-serve-killed"
    stale.mkdir()
    (stale / "alive").touch()
    with make_snapshot_folder() as running, make_snapshot_folder():
        assert not stale.exists()
        assert running.exists()
    assert list(tmp_path.iterdir()) == []


def test_load_is_an_endpoint(model_file: Path, other_file: Path):
    with served({"people": model_file}) as client:
        old_answer = client.post("/models/people/predict", json=RECORDS[0]).json()
        shutil.copyfile(other_file, model_file)
        assert client.post("/models/people/load").json()["version"] == "2"
        assert client.post("/models/people/predict", json=RECORDS[0]).json() != old_answer
        model_file.write_bytes(b"no model")
        refused = client.post("/models/people/load")
        assert refused.status_code == 409
        assert client.post("/models/people/predict", json=RECORDS[0]).headers["x-model-version"] == "2"
        assert "unkernel_model_loads_total" in client.get("/metrics").text
        assert client.post("/models/nobody/load").status_code == 404
