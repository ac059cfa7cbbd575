"""Licenses of the packages that an installation of the core requires, and traces of GPL code in compiled libraries.

Extras (gpu, sweep, transformer, test) are the user's choice and are not read. docs/licenses.md states the rules.
"""

import re
from importlib.metadata import Distribution, distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement

DOCS = Path(__file__).parents[2] / "docs" / "licenses.md"
COMPILED = re.compile(r"\.(so(\.[\d.]+)?|a|dylib|dll|pyd)$")
TEXT_LENGTH = 100  # a longer field is the text of a license, which may mention other licenses

# Bytes that remain in a library whose symbols are stripped: names in tables and in messages of GPL or LGPL code.
TRACES = {
    "FFTW (GPL)": rb"fftw[fl]?_(codelet|wisdom|plan_)",
    "GSL (GPL)": rb"gsl_(error_handler|set_error_handler|vector_alloc|integration_)",
    "Readline (GPL)": rb"rl_(completion_matches|line_buffer|insert_text)",
    "GLPK (GPL)": rb"glp_(create_prob|simplex)",
    "UMFPACK, CHOLMOD (GPL)": rb"(umfpack_(di|dl|zi|zl)|cholmod_l?_?super)_",
    "x264, x265 (GPL)": rb"x26[45]_encoder_(open|encode)",
    "libimagequant (GPL)": rb"liq_(image_create|attr_create)",
    "GMP, MPFR (LGPL)": rb"(__gmpz_init|mpfr_init2)",
    "license text (GPL)": rb"GNU (Affero )?General Public License",
}


def core(name: str = "meanfield-transformers", found: dict[str, Distribution] | None = None) -> dict[str, Distribution]:
    """Return the distribution and all of its requirements without extras, by name."""
    found = {} if found is None else found
    key = re.sub(r"[-_.]+", "-", name).lower()
    if key not in found:
        found[key] = distribution(name)
        for line in found[key].requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
                core(requirement.name, found)
    return found


def stated(package: Distribution) -> list[str]:
    """Return the licenses in a distribution's own metadata: the expression, or the field and the classifiers."""
    expression = package.metadata["License-Expression"]
    if expression:
        return [expression]
    field = package.metadata["License"] or ""
    classifiers = [line for line in package.metadata.get_all("Classifier") or [] if line.startswith("License ::")]
    return [*classifiers, *([field] if 0 < len(field) <= TEXT_LENGTH else [])]


def is_refused(license: str) -> bool:
    """Return whether every alternative is GPL, AGPL or LGPL without the exception for GCC's runtime libraries."""
    without = re.sub(r"\bGPL-\S+?[ -]with[ -]gcc-exception\S*", "", license, flags=re.IGNORECASE)
    copyleft = re.compile(r"[AL]?GPL|(Affero|Lesser|General) Public License", re.IGNORECASE)
    return all(copyleft.search(alternative) for alternative in re.split(r"\bOR\b", without))


def traces(data: bytes) -> list[str]:
    return [name for name, pattern in TRACES.items() if re.search(pattern, data)]


def compiled(package: Distribution) -> list[Path]:
    """Return the libraries, also static ones, that a distribution has installed."""
    files = [Path(str(package.locate_file(file))) for file in package.files or [] if COMPILED.search(file.name)]
    return [path for path in files if path.is_file()]


def bundled(package: Distribution) -> set[str]:
    """Return names of third-party shared libraries, which wheels keep in a separate folder: libz of libz-1a2b.so.1."""
    apart = [path for path in compiled(package) if path.parent.name.endswith((".libs", ".dylibs"))]
    return {re.split(r"[-.]", path.name)[0] for path in apart}


def license_lines(package: Distribution) -> list[str]:
    """Return the lines "License: …" in a wheel's license files, which name the licenses of its parts."""
    texts = [file for file in package.files or [] if ".dist-info" in str(file) and "LICEN" in str(file).upper()]
    paths = [Path(str(package.locate_file(file))) for file in texts]
    lines = [line for path in paths if path.is_file() for line in path.read_text(errors="replace").splitlines()]
    return [line.split(":", 1)[1].strip() for line in lines if re.match(r"License: \S", line)]


PACKAGES = core()
LIBQUADMATH = "LGPL-2.1-or-later"  # a separate shared library, which users may replace


def test_the_core_requires_what_the_project_lists():
    assert {"numpy", "scipy", "numba", "llvmlite", "h5py", "matplotlib", "pillow", "tqdm", "pot"} <= set(PACKAGES)
    assert not {"finufft", "torch", "cupy-cuda13x", "pytest"} & set(PACKAGES)


@pytest.mark.parametrize("name", PACKAGES)
def test_licenses_are_permissive(name):
    licenses = stated(PACKAGES[name])
    assert licenses, f"{name} states no license"
    assert not [license for license in licenses if is_refused(license)]
    parts = [line for line in license_lines(PACKAGES[name]) if is_refused(line)]
    assert set(parts) <= {LIBQUADMATH}, f"{name} holds parts under {parts}"


@pytest.mark.parametrize("name", PACKAGES)
def test_libraries_hold_no_gpl_code(name):
    found = {path.name: traces(path.read_bytes()) for path in compiled(PACKAGES[name])}
    assert not {library: names for library, names in found.items() if names}


@pytest.mark.parametrize("name", PACKAGES)
def test_bundled_libraries_are_listed(name):
    """A library that docs/licenses.md does not list has to be examined first."""
    listed = set(re.findall(r"^\| `(\w+)`", DOCS.read_text(encoding="utf-8"), flags=re.MULTILINE))
    assert bundled(PACKAGES[name]) <= listed, f"{name}: not in docs/licenses.md"


@pytest.mark.parametrize(("text", "name"), [
    (b"fftw_codelet_t1_16", "FFTW (GPL)"),
    (b"fftwf_wisdom", "FFTW (GPL)"),
    (b"gsl_set_error_handler_off", "GSL (GPL)"),
    (b"rl_completion_matches", "Readline (GPL)"),
    (b"glp_create_prob", "GLPK (GPL)"),
    (b"umfpack_di_solve", "UMFPACK, CHOLMOD (GPL)"),
    (b"x264_encoder_open_164", "x264, x265 (GPL)"),
    (b"liq_image_create_rgba", "libimagequant (GPL)"),
    (b"__gmpz_init", "GMP, MPFR (LGPL)"),
    (b"under the GNU General Public License", "license text (GPL)"),
])  # fmt: skip
def test_traces_are_found(text, name, tmp_path):
    library = tmp_path / "libother-1a2b.so.3"
    library.write_bytes(b"\x7fELF" + bytes(1000) + text + b"\0" + bytes(1000))
    assert traces(library.read_bytes()) == [name]


@pytest.mark.parametrize("text", [b"fribidi_get_bracket_types", b"pocketfft", b"shifftw_x", b"_gfortran_st_write"])
def test_names_of_permissive_code_are_no_traces(text):
    assert traces(b"\x7fELF" + text + b"\0") == []


@pytest.mark.parametrize(("name", "found"), [
    ("libfftw3.a", True), ("x.cpython-311-x86_64-linux-gnu.so", True), ("libz-1a.so.1.2.13", True), ("a.dylib", True),
    ("also.py", False), ("data.so.txt", False),
])  # fmt: skip
def test_compiled_files_are_known_by_their_names(name, found):
    assert bool(COMPILED.search(name)) == found


@pytest.mark.parametrize(("license", "refused"), [
    ("GPL-3.0-or-later", True), ("AGPL-3.0", True), ("LGPL-2.1-or-later", True), ("BSD-3-Clause AND GPL-2.0", True),
    ("License :: OSI Approved :: GNU General Public License v2 (GPLv2)", True),
    ("GPL-3.0-or-later WITH GCC-exception-3.1", False), ("MIT OR GPL-2.0", False), ("MPL-2.0 AND MIT", False),
    ("BSD-3-Clause", False), ("GPL-3.0-with-GCC-exception", False),
    ("GPL-3.0-or-later WITH GCC-exception-3.1 AND LGPL-2.1", True),
])  # fmt: skip
def test_copyleft_is_refused(license, refused):
    assert is_refused(license) == refused
