"""The MLflow flavour, used through MLflow."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline

import unkernel
from unkernel import PolyLogisticRegression, PolySVC, RecordEncoder, TreeSVC

mlflow = pytest.importorskip("mlflow", reason="MLflow is not installed")
pandas = pytest.importorskip("pandas")
flavour = pytest.importorskip("unkernel.mlflow")

GOLDEN = Path(__file__).parents[1] / "parsing" / "golden"
FRAME = pandas.DataFrame(
    {"age": [20, 30, 50, 60] * 10, "job": ["a", "b", "a", None] * 10, "member": [True, False] * 20}
)
LABELS = np.array(["no", "yes", "no", "yes"] * 10)


@pytest.fixture(scope="module")
def fast():
    return unkernel.compile(
        make_pipeline(RecordEncoder(), PolyLogisticRegression(degree=2)).fit(FRAME, LABELS)
    )


def test_records_as_a_function_of_frames(fast, tmp_path):
    flavour.save_model(fast, tmp_path / "model", metadata={"by": "us"})
    function = mlflow.pyfunc.load_model(str(tmp_path / "model"))
    assert (function.predict(FRAME) == fast.predict(FRAME)).all()
    shares = function.predict(FRAME, params={"method": "predict_proba"})
    assert (shares == fast.predict_proba(FRAME)).all()
    wider = FRAME[["member", "job", "age"]].assign(other=1)  # any order, and unused columns
    assert (function.predict(wider) == fast.predict(FRAME)).all()
    with pytest.raises(ValueError, match="method must be one of predict, predict_proba, decision_function"):
        function.predict(FRAME, params={"method": "fit"})
    assert function.metadata.metadata == {"by": "us"}
    assert function.metadata.signature.inputs.input_names() == ["age", "job", "member"]


def test_a_saved_folder_has_no_pickle_and_predicts_like_the_model(fast, tmp_path):
    flavour.save_model(fast, tmp_path / "model")
    names = {path.name for path in (tmp_path / "model").iterdir()}
    assert names == {"MLmodel", "model.uk", "requirements.txt", "python_env.yaml"}
    loaded = flavour.load_model(str(tmp_path / "model"))
    assert loaded.predict_one({"age": 20, "job": "a"}) == fast.predict_one({"age": 20, "job": "a"})
    with pytest.raises(FileExistsError, match="is not empty"):
        flavour.save_model(fast, tmp_path / "model")


def test_a_logged_model(fast, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"file://{tmp_path / 'runs'}")
    mlflow.set_tracking_uri(f"file://{tmp_path / 'runs'}")
    with mlflow.start_run():
        message = flavour.log_model(fast, name="income")
    assert "unkernel" in message.flavors
    assert (flavour.load_model(message.model_uri).predict(FRAME) == fast.predict(FRAME)).all()
    assert (mlflow.pyfunc.load_model(message.model_uri).predict(FRAME) == fast.predict(FRAME)).all()


def test_rows_and_trees(tmp_path):
    X = np.eye(4)
    rows = PolySVC(degree=2).fit(X, [0, 1, 0, 1])
    flavour.save_model(rows, tmp_path / "rows")
    function = mlflow.pyfunc.load_model(str(tmp_path / "rows"))
    assert function.predict(X).tolist() == [0, 1, 0, 1]
    scores = function.predict(X, params={"method": "decision_function"})
    assert scores == pytest.approx(rows.decision_function(X))
    with pytest.raises(mlflow.exceptions.MlflowException):
        function.predict(np.eye(3))
    trees = ["(S (A b))", "(S (C d))"]
    flavour.save_model(TreeSVC().fit(trees, ["x", "y"]), tmp_path / "trees")
    function = mlflow.pyfunc.load_model(str(tmp_path / "trees"))
    assert list(function.predict(pandas.DataFrame({"tree": trees}))) == ["x", "y"]


def test_texts(tmp_path):
    parser = unkernel.load(GOLDEN / "text-parser.uk")
    flavour.save_model(parser, tmp_path / "text")
    function = mlflow.pyfunc.load_model(str(tmp_path / "text"))
    text = (GOLDEN / "text.raw").read_text()
    (parsed,) = function.predict(pandas.DataFrame({"text": [text]}))
    assert len(str(parsed)) > len(text)
