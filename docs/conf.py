"""How Sphinx builds the site: ``make docs``."""

from __future__ import annotations

import os
import sys
from importlib.metadata import distribution
from pathlib import Path

DOCS = Path(__file__).parent
sys.path.insert(0, str(DOCS / "_ext"))

from gallery_order import SECTIONS  # noqa: E402
from inventories import packed  # noqa: E402

from unkernel import __version__  # noqa: E402

project = "unkernel"
author = "The unkernel developers"
project_copyright = author
version = release = __version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.intersphinx",
    "sphinx.ext.mathjax",
    "numpydoc",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "api_index",
    "command_pages",
    "inline_pictures",
    "project_links",
]
exclude_patterns = ["pictures"]
templates_path = ["_templates"]
default_role = "literal"
smartquotes = False  # they would make a dash of the hyphens of options

# --- Pages -------------------------------------------------------------------------------------------

myst_enable_extensions = ["amsmath", "colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 5
# What is copied from an example has no prompts and no output.
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True
copybutton_selector = "div:not(.highlight-output) > div.highlight pre"
copybutton_line_continuation_character = "\\"

# --- The reference -------------------------------------------------------------------------------------

autosummary_generate = True
# Names that differ in case alone need files of different names.
autosummary_filename_map = {"unkernel.report.report": "unkernel.report.report-function"}
autodoc_mock_imports = ["kserve", "mlflow", "mlserver"]  # the servers that adapters are for
autodoc_typehints = "none"  # the docstrings name the types
autodoc_member_order = "bysource"
toc_object_entries_show_parents = "hide"
numpydoc_show_class_members = False  # the template of classes lists them
numpydoc_xref_param_type = False

INVENTORIES = packed(DOCS / "inventories", DOCS.parent / "build" / "inventories")
ADDRESSES = {
    "dask": "https://docs.dask.org/en/stable/",
    "numpy": "https://numpy.org/doc/stable/",
    "python": "https://docs.python.org/3/",
    "scipy": "https://docs.scipy.org/doc/scipy/",
    "sklearn": "https://scikit-learn.org/stable/",
}
intersphinx_mapping = {name: (ADDRESSES[name], str(path)) for name, path in INVENTORIES.items()}

# --- The gallery -----------------------------------------------------------------------------------------

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "backreferences_dir": "gallery/backreferences",
    "filename_pattern": r"/plot_",
    "ignore_pattern": r"(^|/)(?!plot_)[^/]*\.py$",
    "subsection_order": [f"../examples/{section}" for section in SECTIONS],
    "within_subsection_order": "gallery_order.ReadingOrder",
    "doc_module": ("unkernel",),
    "reference_url": {"unkernel": None},
    "parallel": True,
    "image_srcset": ["2x"],  # figures are sharp on fine screens, too
    "thumbnail_size": (640, 360),  # about twice what the style sheet shows, of figures that are wide
    "download_all_examples": False,
    "remove_config_comments": True,
    "min_reported_time": 1,
    "write_computation_times": False,  # its page would load scripts from elsewhere
    "abort_on_example_error": False,
}

# --- How it looks ------------------------------------------------------------------------------------------

html_theme = "pydata_sphinx_theme"
html_title = "unkernel"
html_logo = html_favicon = "_static/logo.svg"
# One file of MathJax, which sets formulas without loading any other: the site is complete in itself.
MATHJAX = "sphinx-mathjax-offline/static/mathjax/tex-svg.js"
html_static_path = ["_static", str(distribution("sphinx-mathjax-offline").locate_file(MATHJAX))]
mathjax_path = "tex-svg.js"
mathjax3_config = {"options": {"enableMenu": False}}  # what its menu offers would be loaded from elsewhere
html_css_files = ["unkernel.css"]
html_show_sourcelink = False
html_copy_source = False
html_theme_options = {
    "logo": {"text": "unkernel"},
    "header_links_before_dropdown": 6,
    "navbar_persistent": ["search-button"],
    "navbar_end": ["version", "theme-switcher", "navbar-icon-links"],
    "show_toc_level": 2,
    "navigation_with_keys": False,
    "secondary_sidebar_items": ["page-toc"],
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-light",
    "pygments_dark_style": "a11y-dark",
}
html_sidebars = {page: [] for page in ("index", "start", "results", "changelog", "security", "contributing")}

# The repository, where the build knows it: GitHub's workflows set this.
if repository := os.environ.get("GITHUB_REPOSITORY"):
    address = f"{os.environ.get('GITHUB_SERVER_URL', 'https://github.com')}/{repository}"
    html_theme_options["icon_links"] = [
        {"name": "Repository", "url": address, "icon": "fa-brands fa-github", "type": "fontawesome"}
    ]

# Where the site is published, with a slash at the end. Readers can then switch to other versions, which
# _static/versions.json.jinja lists.
if site := os.environ.get("UNKERNEL_SITE"):
    html_baseurl = site
    html_context = {"site": site}
    html_theme_options["switcher"] = {"json_url": f"{site}_static/versions.json", "version_match": version}
    html_theme_options["navbar_end"] = ["version-switcher", "theme-switcher", "navbar-icon-links"]
    html_theme_options["check_switcher"] = False  # it is not there before the first build is published
