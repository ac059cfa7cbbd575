"""Configuration of the site: Sphinx reads the pages of this folder and generates the reference from the code.

sphinx-build -W docs build/site

With the tag ``-t unexecuted`` the entries of the gallery, the notebooks and the run of a page are not executed. The
tests execute all of these. The pages then have no figures and outputs; all else is built and checked.
"""

import re
import shlex
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE), str(HERE.parent)]

from reference.pages import write_pages  # noqa: E402

import meanfield  # noqa: E402

EXECUTED = not tags.has("unexecuted")  # noqa: F821  Sphinx defines the tags

project = "meanfield"
copyright = "the meanfield maintainers"
release = version = meanfield.__version__

extensions = [
    "myst_nb",
    "sphinx.ext.mathjax",
    "sphinx-mathjax-offline",
    "sphinx_gallery.gen_gallery",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "numpydoc",
]
autodoc_typehints = "none"  # the sections of docstrings state the types
autodoc_preserve_defaults = True
numpydoc_show_class_members = False  # templates/autosummary/class.rst lists them
templates_path = ["templates"]
sphinx_gallery_conf = {
    "examples_dirs": "../gallery/entries",
    "gallery_dirs": "gallery",
    "plot_gallery": EXECUTED,
    "filename_pattern": r"\.py$",
    "thumbnail_size": (420, 290),  # pixels
    "capture_repr": (),
    "download_all_examples": False,
    "show_signature": False,
    "image_scrapers": ("matplotlib",),
    "reset_modules": ("matplotlib",),
    "write_computation_times": False,
}
exclude_patterns = ["reference/*.py", "paper/*", "gallery/**/*.py", "gallery/**/*.ipynb"]
html_theme = "furo"
html_title = f"meanfield {version}"
html_show_sphinx = False
html_static_path = ["static"]
html_css_files = ["site.css"]
nb_execution_mode = "force" if EXECUTED else "off"
nb_execution_excludepatterns = ["trained_transformer.ipynb"]  # needs PyTorch; tests/project/test_notebooks.py runs it
nb_execution_in_temp = True
nb_execution_timeout = 300
nb_execution_raise_on_error = True
nb_output_stderr = "warn"  # an error with -W
nb_ipywidgets_js = {}  # pages load no script from the network
myst_heading_anchors = 3
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
suppress_warnings = ["myst.xref_missing"]  # tests/project/test_readme.py checks links to files of the repository


def link_entries(app, page, source):
    """Replace links to the scripts of the gallery by links to their pages on the site."""
    source[0] = re.sub(r"\(\.\./gallery/entries/(\w+/\w+)\.py\)", r"(gallery/\1.rst)", source[0])


def write_run(app, exception):
    """Write the page of a run that browser.md embeds, by the commands of browser.md."""
    if exception is not None or app.builder.format != "html" or not EXECUTED:
        return
    (block,) = re.findall(r"^```bash\n(.*?)^```$", (HERE / "browser.md").read_text("utf-8"), re.MULTILINE | re.DOTALL)
    with TemporaryDirectory() as folder:
        for command in block.split("&&"):
            words = [sys.executable, "-m", *shlex.split(command)]
            subprocess.run(words, cwd=folder, check=True, stdout=subprocess.DEVNULL)
        for page in Path(folder).glob("*.html"):
            (app.outdir / page.name).write_bytes(page.read_bytes())


def setup(app):
    """Write the reference before Sphinx lists the pages, and the page of a run after the site."""
    app.connect("config-inited", lambda app, config: write_pages(Path(app.srcdir) / "reference"))
    app.connect("source-read", link_entries)
    app.connect("build-finished", write_run)
