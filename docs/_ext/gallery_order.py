"""The order in which the gallery shows its sections and scripts: what most readers need comes first."""

from __future__ import annotations

SECTIONS = ["tables", "classification", "speed", "ranking", "text", "trees", "scale"]
SCRIPTS = [
    "plot_models.py",
    *("plot_sparse_rows.py", "plot_conjunctions.py", "plot_l1_path.py", "plot_calibration.py"),
    *("plot_objectives.py", "plot_report.py", "plot_dense_rows.py"),
    *("plot_one_record.py", "plot_engines.py"),
    *("plot_parse.py", "plot_chunks.py", "plot_who_did_it.py"),
    *("plot_out_of_core.py", "plot_dask.py"),
]


class ReadingOrder:
    """Places of scripts, for sphinx-gallery; what is not in the list comes last, by name."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, script: str) -> tuple[int, str]:
        return (SCRIPTS.index(script) if script in SCRIPTS else len(SCRIPTS), script)
