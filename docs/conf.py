"""How the docs site is built: Sphinx with the furo theme. ``make docs`` builds it, and every warning fails."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT)]

import graphsnd  # noqa: E402

project = "graphsnd"
author = "The graphsnd authors"
project_copyright = f"2026 {author}, MIT licence"
release = version = graphsnd.__version__

extensions = [
    "myst_parser",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",  # a page for each package that reference.md lists
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "sphinx_design",
    "_site.links",  # from pages to files of the repository, and from docstrings to names
    "_site.formulas",  # MathML, made when the site is built
    "_site.reference",  # pages of commands, log columns and names
    "_site.figures",  # the pictures of images/drawn/
]
exclude_patterns = ["runs", "_site", "reference/names.md"]
templates_path = ["_site/templates"]
autosummary_ignore_module_all = False
smartquotes = False  # two hyphens begin an option
nitpicky = True  # a reference that names nothing is a warning, and so an error

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "attrs_block"]
myst_heading_anchors = 4
autodoc_member_order = "bysource"
autodoc_typehints = "signature"
autodoc_default_options = {"members": True}
# Their classes are bases and arguments of the adapters; the pages need neither.
autodoc_mock_imports = ["jax", "flax", "stable_baselines3", "ray", "tree", "triton", "wandb", "mlflow"]
napoleon_google_docstring, napoleon_numpy_docstring, napoleon_use_ivar = True, False, True
# Names that modules import for type checkers only.
nitpick_ignore_regex = [("py:class", r"Array|NDArray|Axes|Figure|Path|Tensor|Tree|np\..*")]
python_use_unqualified_type_names = True
python_maximum_signature_line_length = 88
add_module_names = True
toc_object_entries_show_parents = "hide"
copybutton_prompt_text, copybutton_prompt_is_regexp = r">>> |\.\.\. |\$ ", True
copybutton_exclude = ".linenos, .gp, .go"

html_theme = "furo"
html_title = f"graphsnd {release}"
html_static_path = ["_site/static"]
html_css_files, html_favicon = ["site.css"], "_site/static/icon.svg"
html_extra_path = ["../paper/results/verdicts.html"]
html_theme_options = {
    "light_css_variables": {"color-brand-primary": "#0072B2", "color-brand-content": "#0072B2"}
    | {"color-api-name": "#0072B2", "color-api-pre-name": "#5F6771"},
    "dark_css_variables": {"color-brand-primary": "#4FA8E8", "color-brand-content": "#4FA8E8"}
    | {"color-api-name": "#4FA8E8", "color-api-pre-name": "#9AA4B0"},
}
html_copy_source = html_show_sphinx = False
pygments_style, pygments_dark_style = "default", "github-dark"
