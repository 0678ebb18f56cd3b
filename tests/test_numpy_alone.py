"""Loading compiled models and predicting needs only numpy and nanobind-backend: no scipy, no scikit-learn."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
from importlib.metadata import distribution
from pathlib import Path

import numpy as np

import unkernel
from unkernel.data import read_svmlight
from unkernel.models import KernelModel, TreeModel

GOLDEN = Path(__file__).parent / "golden"
PARSERS = Path(__file__).parent / "parsing" / "golden"
# Modules that must not be imported; None in sys.modules makes their import an ImportError.
BLOCKED = ("scipy", "sklearn", "pandas", "joblib", "zstandard", "typer", "rich", "dask", "matplotlib")
BLOCK = f"import sys; sys.modules.update(dict.fromkeys({BLOCKED!r}))\n"

ROWS = sorted(
    path.name
    for path in GOLDEN.glob("*.model")
    if not path.name.startswith("svmlight-tk") and path.name != "libsvm-precomputed.model"
)
TREES = sorted(path.name for path in GOLDEN.glob("svmlight-tk-*.model"))

ASK_ROWS = BLOCK + textwrap.dedent("""
    import json
    import numpy as np
    import unkernel
    given = np.load(sys.argv[1])
    asked = {}
    for path in sys.argv[2:]:
        fast = unkernel.load(path)
        X = given[:, : fast.n_features_in_]
        X = np.pad(X, ((0, 0), (0, fast.n_features_in_ - X.shape[1])))
        ids = np.flatnonzero(X[0])
        found = {
            "scores": fast.decision_function(X).tolist(),
            "classes": fast.predict(X).tolist(),
            "lists": fast.predict(X.tolist()).tolist(),
            "one": fast.score_one(ids, X[0, ids]),
            "ids": fast.score_one([0, 2, 3]),
            "worker": fast.worker().score_one([0, 2, 3]),
            "probability": fast.predict_proba(X).tolist() if hasattr(fast, "predict_proba") else None,
        }
        try:
            found["explained"] = fast.explain(ids.tolist()).score
        except ValueError as refused:
            found["explained"] = str(refused)
        asked[path] = found
    print(json.dumps(asked))
""")

ASK_TREES = BLOCK + textwrap.dedent("""
    import json
    import unkernel
    tree = "(S (NP (D the) (N dog)) (VP (V sees) (NP (N cats))))"
    asked = {}
    for path in sys.argv[2:]:
        fast = unkernel.load(path)
        forest = unkernel.Forest({name: [tree] for name in fast.model.support.trees} or [tree])
        found = {
            "scores": fast.decision_function(forest).tolist(),
            "classes": fast.predict(forest).tolist(),
        }
        try:
            found["explained"] = fast.explain(forest).score
        except ValueError as refused:
            found["explained"] = str(refused)
        asked[path] = found
    print(json.dumps(asked))
""")


def predict_without_packages(program: str, rows: Path, paths: list[Path]) -> dict[str, dict]:
    completed = subprocess.run(
        [sys.executable, "-c", program, rows, *paths], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    return json.loads(completed.stdout)


def compiled(names: list[str], folder: Path) -> dict[Path, object]:
    """Compile and save models, kernel models with every engine that supports them; return them by path."""
    classifiers = {}
    for name in names:
        model = unkernel.read_model(GOLDEN / name)
        engines = ["auto"]
        if isinstance(model, KernelModel):
            engines += ["inverted", "bitsliced", "expanded", "split"]
        for engine in engines:
            try:
                fast = unkernel.compile(model, engine, measure=False)
            except ValueError:  # an engine that does not support this model
                continue
            path = folder / f"{name}-{engine}.uk"
            fast.save(path)
            classifiers[path] = fast
        if not isinstance(model, KernelModel | TreeModel):
            model.save(folder / f"{name}.uk")
            classifiers[folder / f"{name}.uk"] = unkernel.CompiledClassifier(model)
    return classifiers


def test_models_of_rows(tmp_path):
    dense = read_svmlight(GOLDEN / "multi.test.svm").X.toarray()[:20]
    np.save(tmp_path / "rows.npy", dense)
    classifiers = compiled(ROWS, tmp_path)
    assert len(classifiers) > 2 * len(ROWS)
    learner = unkernel.PolySVC(degree=2).fit(dense > 0, np.arange(20) % 3)
    learner.save(tmp_path / "learned.uk")
    classifiers[tmp_path / "learned.uk"] = unkernel.load(tmp_path / "learned.uk")
    for path, answers in predict_without_packages(ASK_ROWS, tmp_path / "rows.npy", list(classifiers)).items():
        fast = classifiers[Path(path)]
        X = dense[:, : fast.n_features_in_]
        X = np.pad(X, ((0, 0), (0, fast.n_features_in_ - X.shape[1])))
        np.testing.assert_array_equal(np.array(answers["scores"]), fast.decision_function(X))
        assert answers["classes"] == answers["lists"] == fast.predict(X).tolist()
        np.testing.assert_allclose(answers["one"], fast.decision_function(X[:1])[0], rtol=1e-9, atol=1e-9)
        assert answers["ids"] == answers["worker"] == fast.score_one([0, 2, 3])
        assert (answers["probability"] is None) == (fast.decision.probability is None)
        if answers["probability"] is not None:
            np.testing.assert_array_equal(np.array(answers["probability"]), fast.predict_proba(X))
        ids = np.flatnonzero(X[0]).tolist()
        try:
            assert answers["explained"] == fast.explain(ids).score
        except ValueError as refused:
            assert answers["explained"] == str(refused)


def test_models_of_trees(tmp_path):
    classifiers = {}
    for name in TREES:
        try:
            model = unkernel.read_model(GOLDEN / name)
        except unkernel.FormatError:  # some golden files are of kinds that are refused
            continue
        classifiers |= {tmp_path / f"{name}.uk": unkernel.compile(model)}
        unkernel.compile(model).save(tmp_path / f"{name}.uk")
    assert len(classifiers) > 20
    tree = "(S (NP (D the) (N dog)) (VP (V sees) (NP (N cats))))"
    for path, answers in predict_without_packages(ASK_TREES, tmp_path, list(classifiers)).items():
        fast = classifiers[Path(path)]
        forest = unkernel.Forest({name: [tree] for name in fast.model.support.trees} or [tree])
        np.testing.assert_array_equal(np.array(answers["scores"]), fast.decision_function(forest))
        assert answers["classes"] == fast.predict(forest).tolist()
        try:
            assert answers["explained"] == fast.explain(forest).score
        except ValueError as refused:
            assert answers["explained"] == str(refused)


def test_parsers_and_chunkers():
    """Files of earlier versions are loaded, used and explained."""
    program = BLOCK + textwrap.dedent("""
        from pathlib import Path
        import unkernel
        from unkernel.data import read_bunsetsu, read_chunks, read_conllu
        readers = {
            ".conllu": read_conllu,
            ".knp": read_bunsetsu,
            ".txt": lambda path: read_chunks(path, tagged=True),
            ".raw": lambda path: path.read_bytes().decode(),
        }
        golden = Path(sys.argv[1])
        texts = {
            "trees": "trees.conllu", "bunsetsu": "bunsetsu.knp", "chunks": "chunks.txt", "text": "text.raw"
        }
        for path in sorted(golden.glob("*.uk")):
            task, _, name = path.stem.partition("-")
            own = golden / f"{name}.conllu"
            text = own if own.exists() else golden / texts[task]
            corpus = readers[text.suffix](text)
            parser = unkernel.load(path)
            assert parser.parse(corpus).to_bytes() == path.with_suffix(".parsed").read_bytes(), path.stem
            some = corpus if isinstance(corpus, str) else corpus[:1]
            assert parser.explain(some, top=2), path.stem
            print(path.stem)
    """)
    completed = subprocess.run(
        [sys.executable, "-c", program, PARSERS], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert completed.stdout.split() == sorted(path.stem for path in PARSERS.glob("*.uk"))


def test_answers_bring_in_no_more_than_they_need():
    """Parsing imports no code for explanations, notebooks or masked arrays, so that it starts fast."""
    program = textwrap.dedent("""
        import sys
        import numpy
        before = set(sys.modules)  # some versions of numpy bring numpy.ma in
        import unkernel
        golden, kind = sys.argv[1:]
        parser = unkernel.load(f"{golden}/{kind}.uk")
        text = {"trees": "trees.conllu", "bunsetsu": "bunsetsu.knp", "chunks": "chunks.txt"}
        parser.parse(f"{golden}/{text[kind.partition('-')[0]]}")
        print(*sorted(set(sys.modules) - before))
    """)
    needless = {"numpy.ma", "html", "unkernel.engines.trees.classifier", "unkernel.engines.explain.fragments"}
    needless |= {"unkernel.engines.explain.explanation", "unkernel.parsing.explanation"}
    for kind in ("trees-rich", "bunsetsu-svm", "chunks-svm"):
        completed = subprocess.run(
            [sys.executable, "-c", program, PARSERS, kind], capture_output=True, text=True, check=False
        )
        assert completed.returncode == 0, completed.stderr
        assert "unkernel.parsing.parser_model" in completed.stdout.split()
        assert not needless & set(completed.stdout.split()), kind


def test_compiling_a_model_needs_no_more(tmp_path):
    """Chunkers are compiled when they are loaded, so compiling must need no other package."""
    unkernel.read_model(GOLDEN / "libsvm-poly2.model").save(tmp_path / "m.uk")
    program = BLOCK + textwrap.dedent("""
        import unkernel
        from unkernel.models import load_model
        for engine in ("auto", "split"):
            print(unkernel.compile(load_model(sys.argv[1]), engine).score_one([1, 2]))
    """)
    completed = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "m.uk"], capture_output=True, text=True, check=False
    )
    assert completed.returncode == 0, completed.stderr
    assert len(completed.stdout.split()) == 2


def test_sparse_rows_are_taken_where_the_caller_has_scipy(tmp_path):
    """The order of imports does not matter: scipy may be imported after the first prediction."""
    unkernel.compile(GOLDEN / "libsvm-poly2.model").save(tmp_path / "m.uk")
    program = textwrap.dedent("""
        import sys
        import numpy as np
        import unkernel
        fast = unkernel.load(sys.argv[1])
        X = np.eye(3, fast.n_features_in_)
        dense = fast.decision_function(X)
        assert "scipy" not in sys.modules
        from scipy import sparse
        for kind in (sparse.csr_matrix, sparse.csr_array, sparse.csc_array, sparse.coo_matrix):
            assert (fast.decision_function(kind(X)) == dense).all()
    """)
    subprocess.run([sys.executable, "-c", program, tmp_path / "m.uk"], check=True)


def test_the_blocked_modules_cannot_be_imported():
    program = BLOCK + textwrap.dedent("""
        import importlib
        for name in [name for name, module in sys.modules.items() if module is None]:
            try:
                importlib.import_module(name)
            except ModuleNotFoundError:
                print(name)
    """)
    completed = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert set(completed.stdout.split()) == set(BLOCKED)


def run_with(packages: tuple[str, ...], folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run Python with only these packages installed, like with ``pip install --no-deps``."""
    for package in ("unkernel", *packages):
        installed = distribution(package)
        tops = {file.parts[0] for file in installed.files or () if file.parts[0] not in ("..", "__pycache__")}
        for top in tops:
            (folder / top).symlink_to(installed.locate_file(top))
    return subprocess.run(
        [sys.executable, "-S", *arguments],
        env=os.environ | {"PYTHONPATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )


MODEL = str(PARSERS / "bunsetsu-svm.uk")
PARSE = "import sys, unkernel; print(unkernel.load(sys.argv[1]).parse(sys.argv[2]).to_bytes() != b'')"


def test_numpy_and_the_backend_of_nanobind_are_all_that_loading_needs(tmp_path):
    completed = run_with(
        ("numpy", "nanobind-backend"), tmp_path, "-c", PARSE, MODEL, str(PARSERS / "bunsetsu.knp")
    )
    assert (completed.returncode, completed.stdout) == (0, "True\n"), completed.stderr


def test_errors_without_nanobind_backend_say_what_to_install(tmp_path):
    completed = run_with(("numpy",), tmp_path, "-c", PARSE, MODEL, "none")
    assert completed.stderr.splitlines()[-1].startswith("ImportError: ")
    assert "pip install nanobind-backend" in completed.stderr.splitlines()[-1]


def test_the_command_line_names_missing_packages(tmp_path):
    completed = run_with(("numpy", "nanobind-backend"), tmp_path, "-m", "unkernel", "inspect", MODEL)
    assert (completed.returncode, completed.stdout) == (2, "")
    assert completed.stderr == (
        "unkernel: error: the command line needs rich, scikit-learn, scipy, typer, zstandard, which are not "
        "installed: pip install rich scikit-learn scipy typer zstandard\n"
    )
