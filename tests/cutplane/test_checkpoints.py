"""Checkpoints: runs that are killed and resumed, and checkpoints that are damaged or of another problem."""

from __future__ import annotations

import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest

from reference.damage import join_file, read_settings, replace_settings, split_file
from reference.patience import wait_for
from unkernel import CuttingPlaneSVC, FormatError, RankSVM, write_svmlight
from unkernel.cutplane.checkpoints import Checkpoint
from unkernel.models import container

HARD = {"C": 1.0, "tol": 1e-4}


class Killed(BaseException):
    """A BaseException, like KeyboardInterrupt: no handler of Exception catches it."""


def make_rows(classes=2, rows=400, features=30):
    rng = np.random.default_rng(3)
    X = rng.normal(size=(rows, features)) * (rng.random((rows, features)) < 0.5)
    value = X @ rng.normal(size=features) + 2 * rng.normal(size=rows)
    return X, np.digitize(value, np.quantile(value, np.linspace(0, 1, classes + 1)[1:-1]))


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "kept"


@pytest.fixture
def kill_after(monkeypatch):
    """Return a function that makes the next run end after this number of rounds of a problem, once they are
    stored.
    """
    original = Checkpoint.make_observer

    def arm(rounds, problem=0):
        def observer(self, bundle, rounds_before):
            observe = original(self, bundle, rounds_before)

            def observe_and_die(weights, objective, bound, n_rounds):
                observe(weights, objective, bound, n_rounds)
                if n_rounds == rounds and self.folder.name == f"problem-{problem}":
                    raise Killed

            return observe_and_die

        monkeypatch.setattr(Checkpoint, "make_observer", observer)

    yield arm
    monkeypatch.undo()


@pytest.fixture
def killed(folder, kill_after, monkeypatch):
    """Return the folder of a killed run, and a description of the run."""
    X, y = make_rows()
    learner = CuttingPlaneSVC(checkpoint=folder, **HARD)
    kill_after(12)
    with pytest.raises(Killed):
        learner.fit(X, y)
    monkeypatch.undo()
    return learner, X, y


def count_new_passes(learner, *arguments):
    """Fit the learner, and return the passes of this fit; n_iter_ includes those of earlier runs."""
    passes = []
    original = Checkpoint.make_observer

    def observer(self, bundle, rounds_before):
        observe = original(self, bundle, rounds_before)

        def observe_and_count(*news):
            passes.append(news[-1])
            observe(*news)

        return observe_and_count

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoint, "make_observer", observer)
        learner.fit(*arguments)
    return len(passes)


LEARNERS = {
    "hinge": CuttingPlaneSVC,
    "squared_hinge": lambda **options: CuttingPlaneSVC(loss="squared_hinge", **options),
    "f1": lambda **options: CuttingPlaneSVC(objective="f1", **(options | {"C": 0.1})),
    "pairs": RankSVM,
}


@pytest.mark.parametrize("kind", LEARNERS)
def test_a_killed_run_resumes(kind, folder, kill_after, monkeypatch):
    X, y = make_rows()
    uninterrupted = LEARNERS[kind](**HARD).fit(X, y)
    learner = LEARNERS[kind](checkpoint=folder, **HARD)
    passes_before = uninterrupted.n_iter_ // 2
    kill_after(passes_before)
    with pytest.raises(Killed):
        learner.fit(X, y)
    monkeypatch.undo()
    assert (folder / "problem-0" / "state.uk").exists()
    passes_after = count_new_passes(learner, X, y)
    assert passes_after < uninterrupted.n_iter_
    assert learner.n_iter_ == passes_before + passes_after
    assert learner.gap_ <= 1e-4
    assert learner.objective_ == pytest.approx(uninterrupted.objective_, rel=1.1e-4)
    assert not folder.exists()


@pytest.mark.hostile
def test_a_run_resumes_after_several_kills(folder, kill_after, monkeypatch):
    X, y = make_rows()
    uninterrupted_fit = CuttingPlaneSVC(**HARD).fit(X, y)
    for _ in range(4):
        kill_after(4)
        with pytest.raises(Killed):
            CuttingPlaneSVC(checkpoint=folder, **HARD).fit(X, y)
        monkeypatch.undo()
        names = {path.name for path in (folder / "problem-0").iterdir()}
        assert len(names) <= 4 * 5 + 1  # one cut per round and one at the start of each run
    learner = CuttingPlaneSVC(checkpoint=folder, **HARD)
    assert count_new_passes(learner, X, y) < uninterrupted_fit.n_iter_
    assert learner.objective_ == pytest.approx(uninterrupted_fit.objective_, rel=1.1e-4)


def test_a_run_with_a_checkpoint_is_the_run_without(folder):
    X, y = make_rows(3)
    with_checkpoint = CuttingPlaneSVC(checkpoint=folder, **HARD).fit(X, y)
    without_checkpoint = CuttingPlaneSVC(**HARD).fit(X, y)
    assert np.array_equal(with_checkpoint.coef_, without_checkpoint.coef_)
    assert not folder.exists()


def test_a_run_that_is_killed_while_it_removes_its_checkpoint(folder, monkeypatch):
    unlink = Path.unlink

    def remove_a_cut_and_die(path, missing_ok=False):
        unlink(path, missing_ok=missing_ok)
        if path.name.startswith("cut-") and not (path.parent / "state.uk").exists():
            raise Killed

    X, y = make_rows()
    monkeypatch.setattr(Path, "unlink", remove_a_cut_and_die)
    with pytest.raises(Killed):
        CuttingPlaneSVC(checkpoint=folder, **HARD).fit(X, y)
    monkeypatch.undo()
    refitted = CuttingPlaneSVC(checkpoint=folder, **HARD).fit(X, y)
    assert np.array_equal(refitted.coef_, CuttingPlaneSVC(**HARD).fit(X, y).coef_)
    assert not folder.exists()


@pytest.mark.parametrize("problem", [0, 1, 2])
def test_runs_of_many_classes_resume(problem, folder, kill_after, monkeypatch):
    """The run resumes in the class where it was killed; earlier classes stay unchanged."""
    X, y = make_rows(3)
    options = HARD | {"loss": "squared_hinge"}
    uninterrupted_fit = CuttingPlaneSVC(checkpoint=folder, **options)
    everything = count_new_passes(uninterrupted_fit, X, y)
    learner = CuttingPlaneSVC(checkpoint=folder, **options)
    kill_after(12, problem)
    with pytest.raises(Killed):
        learner.fit(X, y)
    monkeypatch.undo()
    assert (folder / f"problem-{problem}" / "state.uk").exists()
    assert count_new_passes(learner, X, y) < everything
    assert learner.objective_ == pytest.approx(uninterrupted_fit.objective_, rel=2e-4)
    assert not folder.exists()


def test_a_run_stopped_by_max_iter_resumes(folder):
    X, y = make_rows()
    learner = CuttingPlaneSVC(checkpoint=folder, max_iter=10, **HARD)
    with pytest.warns(UserWarning, match="max_iter=10"):
        learner.fit(X, y)
    assert learner.n_iter_ == 10
    objective = learner.objective_
    with pytest.warns(UserWarning, match="max_iter=10"):
        learner.fit(X, y)  # has no passes left
    assert learner.n_iter_ == 10
    assert learner.objective_ == pytest.approx(objective, rel=1e-9)
    assert 0 < learner.gap_ <= 1
    learner.set_params(max_iter=1000).fit(X, y)
    assert learner.gap_ <= 1e-4
    assert not folder.exists()


def test_another_cost_or_tolerance_resumes_from_the_same_cuts(killed):
    learner, X, y = killed
    learner.set_params(C=0.8, tol=1e-3, max_cuts=50).fit(X, y)
    uninterrupted_fit = CuttingPlaneSVC(C=0.8, tol=1e-3).fit(X, y)
    assert learner.objective_ == pytest.approx(uninterrupted_fit.objective_, rel=1.1e-3)


def test_max_cuts_may_be_lower_than_the_number_of_stored_cuts(killed):
    learner, X, y = killed
    learner.set_params(max_cuts=4, max_iter=5000, tol=1e-3).fit(X, y)
    assert learner.gap_ <= 1e-3


@pytest.mark.parametrize(
    "change",
    [
        lambda learner, X, y: learner.fit(X, 1 - y),
        lambda learner, X, y: learner.fit(X, y, np.full(len(y), 2.0)),
        lambda learner, X, y: learner.fit(X[::-1], y),
        lambda learner, X, y: learner.fit(np.where(X.max() == X, 9.0, X), y),
        lambda learner, X, y: learner.fit(X[:, 1:], y),
        lambda learner, X, y: learner.fit(X[1:], y[1:]),
        lambda learner, X, y: learner.set_params(loss="squared_hinge").fit(X, y),
        lambda learner, X, y: learner.set_params(objective="f1").fit(X, y),
        lambda learner, X, y: learner.set_params(fit_intercept=False).fit(X, y),
        lambda learner, X, y: learner.set_params(intercept_scaling=2.0).fit(X, y),
        lambda learner, X, y: learner.set_params(class_weight="balanced").fit(X, np.arange(len(y)) % 3 // 2),
        lambda learner, X, y: RankSVM(checkpoint=learner.checkpoint).fit(X, y),
    ],
    ids=[
        "labels", "weights", "order", "values", "columns", "rows", "loss", "objective", "no intercept",
        "constant", "classes", "learner",
    ],
)  # fmt: skip
def test_checkpoints_of_other_rows_labels_or_losses_are_refused(killed, folder, change):
    learner, X, y = killed
    old_files = {path: path.read_bytes() for path in (folder / "problem-0").iterdir()}
    with pytest.raises(ValueError, match=r"kept.*problem-0: the checkpoint is of other rows"):
        change(learner, X, y)
    assert {path: path.read_bytes() for path in (folder / "problem-0").iterdir()} == old_files


def test_checkpoints_of_earlier_versions_are_refused(killed, folder):
    learner, X, y = killed
    path = folder / "problem-0" / "state.uk"
    kind, arrays, settings = container.read(path)
    del settings["checksums"]
    container.write(path, kind, {name: np.array(array) for name, array in arrays.items()}, settings)
    old_content = path.read_bytes()
    with pytest.raises(ValueError, match=r"problem-0: .*earlier version.*delete"):
        learner.fit(X, y)
    assert path.read_bytes() == old_content


@pytest.mark.parametrize(
    "change",
    [{"pair_weight": {(1, 0): 2.0}}, {"qid": True}, {"sample_weight": True}, {"labels": True}],
    ids=str,
)
def test_checkpoints_of_other_pairs_are_refused(change, folder, kill_after, monkeypatch):
    X, y = make_rows(3)
    kill_after(5)
    with pytest.raises(Killed):
        RankSVM(checkpoint=folder, **HARD).fit(X, y)
    monkeypatch.undo()
    ranker = RankSVM(checkpoint=folder, pair_weight=change.get("pair_weight"), **HARD)
    qid = np.arange(len(y)) % 2 if "qid" in change else None
    weights = np.arange(len(y)) % 3 + 1.0 if "sample_weight" in change else None
    with pytest.raises(ValueError, match="the checkpoint is of other rows"):
        ranker.fit(X, y % 2 if "labels" in change else y, qid, weights)


def test_checkpoints_of_changed_files_are_refused(folder, tmp_path, kill_after, monkeypatch):
    X, y = make_rows()
    path = tmp_path / "rows.svm"
    write_svmlight(path, X, y)
    learner = CuttingPlaneSVC(checkpoint=folder, **HARD)
    kill_after(10)
    with pytest.raises(Killed):
        learner.fit(path)
    monkeypatch.undo()
    content = path.read_bytes()
    path.write_bytes(content + b"1 1:1\n")
    with pytest.raises(ValueError, match="the checkpoint is of other rows"):
        learner.fit(path)
    path.unlink()
    write_svmlight(tmp_path / "other.svm", X, y)
    with pytest.raises(ValueError, match="the checkpoint is of other rows"):
        learner.fit(tmp_path / "other.svm")


def test_training_on_files_resumes(folder, tmp_path, kill_after, monkeypatch):
    X, y = make_rows()
    path = tmp_path / "rows.svm"
    write_svmlight(path, X, y)
    uninterrupted_fit = CuttingPlaneSVC(**HARD).fit(path)
    learner = CuttingPlaneSVC(checkpoint=folder, **HARD)
    kill_after(10)
    with pytest.raises(Killed):
        learner.fit(path)
    monkeypatch.undo()
    assert count_new_passes(learner, path) < uninterrupted_fit.n_iter_
    assert learner.objective_ == pytest.approx(uninterrupted_fit.objective_, rel=1.1e-4)
    assert not folder.exists()


# --- Damage --------------------------------------------------------------------------------------------


def refuse_or_go_on(learner, X, y):
    """Return whether `fit` names the damage in an error."""
    try:
        learner.fit(X, y)
    except (FormatError, ValueError) as error:
        assert "kept" in str(error)
        return True
    return False


def find_fourth_cut(folder):
    return sorted((folder / "problem-0").glob("cut-*.uk"))[3]


@pytest.mark.parametrize("size", [0, 7, 64, -8])
@pytest.mark.parametrize("which", ["state", "cut"])
def test_truncated_checkpoint_files_are_refused(killed, folder, which, size):
    learner, X, y = killed
    path = folder / "problem-0" / "state.uk" if which == "state" else find_fourth_cut(folder)
    path.write_bytes(path.read_bytes()[:size])
    with pytest.raises(FormatError, match="delete its folder") as caught:
        learner.fit(X, y)
    assert caught.value.file == str(path)


def exchange_cuts(cuts):
    first_cut, second_cut = (path.read_bytes() for path in cuts[:2])
    cuts[0].write_bytes(second_cut)
    cuts[1].write_bytes(first_cut)


def repeat_first_cut(cuts):
    for path in cuts[1:]:
        path.write_bytes(cuts[0].read_bytes())


@pytest.mark.parametrize("mix", [exchange_cuts, repeat_first_cut])
def test_exchanged_and_repeated_cuts_are_refused(killed, folder, mix):
    """Each cut is valid, but its mass in the state belongs to another cut, so the bound would be wrong."""
    learner, X, y = killed
    mix(sorted((folder / "problem-0").glob("cut-*.uk")))
    with pytest.raises(FormatError, match="not the cut that the checkpoint names"):
        learner.fit(X, y)


def test_two_runs_do_not_share_a_checkpoint(folder):
    X, y = make_rows()
    with (
        Checkpoint.open(folder, 0, {}),
        pytest.raises(ValueError, match=r"kept: another training uses this checkpoint"),
    ):
        CuttingPlaneSVC(checkpoint=folder, **HARD).fit(X, y)
    CuttingPlaneSVC(checkpoint=folder, **HARD).fit(X, y)
    assert not folder.exists()


def test_files_of_the_user_in_the_folder_of_cuts_are_kept(folder):
    X, y = make_rows()
    user_files = [folder / "problem-0" / name for name in ("thesis.txt", "cut-final.uk")]
    user_files[0].parent.mkdir(parents=True)
    for path in user_files:
        path.write_text("mine")
    CuttingPlaneSVC(checkpoint=folder, **HARD).fit(X, y)
    assert sorted(folder.rglob("*")) == [user_files[0].parent, *sorted(user_files)]


def test_missing_cuts_are_named(killed, folder):
    learner, X, y = killed
    path = find_fourth_cut(folder)
    path.unlink()
    with pytest.raises(FormatError, match="delete") as caught:
        learner.fit(X, y)
    assert caught.value.file == str(path)


def test_another_kind_of_file_is_refused(killed, folder):
    learner, X, y = killed
    CuttingPlaneSVC().fit(X, y).save(folder / "problem-0" / "state.uk")
    with pytest.raises(FormatError, match="not a checkpoint"):
        learner.fit(X, y)


@pytest.mark.parametrize(
    "change",
    [
        {"cuts": 3},
        {"cuts": []},
        {"cuts": [None] * 3},
        {"rounds": -1},
        {"rounds": "many"},
        {"rounds": 10**40},
        {"identity": None},
        {"cuts": "first only"},
        {"cuts": "no names"},
        {"cuts": "elsewhere"},
    ],
    ids=str,
)
def test_damaged_settings_are_refused(killed, folder, change):
    learner, X, y = killed
    path = folder / "problem-0" / "state.uk"
    header, arrays = split_file(path.read_bytes())
    stored = read_settings(header)
    match change.get("cuts"):
        case "first only":
            change = {"cuts": stored["cuts"][:1]}
        case "no names":
            change = {"cuts": [""] * len(stored["cuts"])}
        case "elsewhere":
            change = {"cuts": ["../../../" + name for name in stored["cuts"][:-1]] + ["/etc/passwd"]}
    path.unlink()
    path.write_bytes(join_file(replace_settings(header, stored | change), arrays))
    assert refuse_or_go_on(learner, X, y)


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
@pytest.mark.parametrize("name", ["weights", "masses", "offsets"])
@pytest.mark.parametrize("how", ["nan", "too short", "negative"])
def test_damaged_arrays_are_refused(killed, folder, name, how):
    learner, X, y = killed
    path = folder / "problem-0" / "state.uk"
    header, arrays = split_file(path.read_bytes())
    numbers = np.frombuffer(arrays[name]).copy()
    numbers = {"nan": numbers * np.nan, "too short": numbers[1:], "negative": -np.abs(numbers) - 1}[how]
    arrays[name] = numbers.tobytes()
    path.unlink()
    path.write_bytes(join_file(header, arrays))
    harmless = how == "negative" and name == "weights"  # training can start from any weights
    assert refuse_or_go_on(learner, X, y) != harmless
    if harmless:
        assert learner.objective_ == pytest.approx(CuttingPlaneSVC(**HARD).fit(X, y).objective_, rel=1.1e-4)


def test_a_folder_that_cannot_be_made_is_named(folder):
    X, y = make_rows()
    folder.write_text("a file")
    with pytest.raises(OSError, match="kept"):
        CuttingPlaneSVC(checkpoint=folder).fit(X, y)


def test_other_files_in_the_checkpoint_folder_are_kept(folder):
    X, y = make_rows()
    folder.mkdir()
    (folder / "notes.txt").write_text("mine")
    CuttingPlaneSVC(checkpoint=folder).fit(X, y)
    assert [path.name for path in folder.iterdir()] == ["notes.txt"]


# --- A process that is killed --------------------------------------------------------------------------

PROGRAM = """
    import signal, sys
    import numpy as np
    from unkernel import {learner}
    from unkernel.cutplane.checkpoints import Checkpoint
    original = Checkpoint.make_observer
    rounds = 0
    def that_never_ends(self, bundle, rounds_before):
        observe = original(self, bundle, rounds_before)
        def store(*news):
            global rounds
            observe(*news)
            rounds += 1
            if rounds == 12:
                signal.pause()
        return store
    Checkpoint.make_observer = that_never_ends
    stored = np.load(sys.argv[1])
    {learner}(C=1.0, tol=1e-4, checkpoint=sys.argv[2]).fit(stored["X"], stored["y"])
"""


@pytest.mark.hostile
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs SIGKILL")
@pytest.mark.parametrize("learner", [CuttingPlaneSVC, RankSVM])
def test_a_killed_process_resumes(learner, folder, tmp_path):
    X, y = make_rows()
    np.savez(tmp_path / "rows.npz", X=X, y=y)
    program = textwrap.dedent(PROGRAM.format(learner=learner.__name__))
    process = subprocess.Popen([sys.executable, "-c", program, str(tmp_path / "rows.npz"), str(folder)])
    cuts = folder / "problem-0"
    wait_for(lambda: process.poll() is not None or len(list(cuts.glob("cut-*.uk"))) >= 8)
    process.kill()
    assert process.wait() == -signal.SIGKILL
    uninterrupted = learner(**HARD).fit(X, y)
    resumed = learner(checkpoint=folder, **HARD)
    assert count_new_passes(resumed, X, y) < uninterrupted.n_iter_
    assert resumed.objective_ == pytest.approx(uninterrupted.objective_, rel=1.1e-4)
    assert not folder.exists()
